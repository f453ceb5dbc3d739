import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisLockStore } from 'nestjs-distributed-lock';
import { run } from '../package/run';
import { makeLocks } from '../support/make-locks';
import { freePort, RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { blocksOf, readPage } from './pages';

const SHOP = 'shop';
/** A file of the application that was pasted into, as a process. */
const CREDITS = `
  import { NestFactory } from '@nestjs/core';
  import { AppModule, BalanceService } from './app.module.js';
  void NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] }).then(async (app) => {
    app.enableShutdownHooks();
    const balances = app.get(BalanceService);
    await Promise.all([balances.credit('42', 5), balances.credit('43', 6).then(() => console.log('43 is done'))]);
    await app.close();
  });`;

/** How long a credit takes, in the code that is pasted. */
const SECTION_MS = 2_000;

/** Calls the route as the README's `curl` does; the status of its answer. */
async function credit(port: number): Promise<number> {
  const [, path = ''] = /^curl -X POST localhost:3000(\S+)/m.exec(readPage('README.md').text) ?? [];
  const { status } = await fetch(`http://localhost:${port}${path}`, { method: 'POST' });
  return status;
}

let folder: string;
let redis: RedisServer;

/** The application that `nest new` makes, with the packages of this project in place of an installation. */
async function newApplication(type: string): Promise<string> {
  const args = ['@nestjs/schematics:application', `--name=${SHOP}`, `--type=${type}`, '--language=ts', '--observe=false'];
  const cwd = join(folder, type);
  const shop = join(cwd, SHOP);
  mkdirSync(cwd);
  symlinkSync(join(process.cwd(), 'node_modules'), join(cwd, 'node_modules'));
  await run(join(process.cwd(), 'node_modules/.bin/schematics'), args, { cwd });
  mkdirSync(join(shop, 'node_modules'));
  symlinkSync(process.cwd(), join(shop, 'node_modules/nestjs-distributed-lock'));
  // The new application's types are those of vitest too, where it is of type esm.
  symlinkSync(join(process.cwd(), 'test/node_modules/vitest'), join(shop, 'node_modules/vitest'));
  return shop;
}

/** Writes each block of the README that names its file into that file, with this test's Redis. */
function paste(shop: string): readonly string[] {
  const pasted = blocksOf(readPage('README.md'), 'ts').flatMap((block) => {
    const [, name] = /^\/\/ (src\/.*)\n/.exec(block) ?? [];
    if (name === undefined) {
      return [];
    }
    writeFileSync(join(shop, name), block.replace('redis://localhost:6379', redis.url));
    return [name];
  });
  writeFileSync(join(shop, 'src/credits.ts'), CREDITS);
  return pasted;
}

function start(path: string, env: NodeJS.ProcessEnv = {}): { readonly child: ChildProcess; readonly text: () => string } {
  const child = fork(path, [], { silent: true, env: { ...process.env, ...env } });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data) => (text += String(data)));
  }
  return { child, text: () => text };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quick-start-'));
  redis = await RedisServer.start();
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

test.each(['esm', 'cjs'])(
  'the quick start of the README, pasted into a new Nest application (%s), compiles, locks in Redis and serves HTTP',
  async (type) => {
    const shop = await newApplication(type);
    expect(paste(shop)).toEqual(['src/app.module.ts', 'src/main.ts']);
    await run(process.execPath, [join(process.cwd(), 'node_modules/@nestjs/cli/bin/nest.js'), 'build'], { cwd: shop });

    const store = new RedisLockStore(redis.url);
    await store.open?.({ prefix: 'lock', warn: () => undefined });
    const elsewhere = await makeLocks(store, { ttl: 60_000 }).acquire('balance:42');
    const credits = start(join(shop, 'dist/credits.js'));
    const ended = once(credits.child, 'exit');
    await until('the call for another customer', () => credits.text().includes('43 is done'), 60_000);
    expect(credits.text()).toContain('43 gets 6');
    expect(credits.text()).not.toContain('42 gets 5');
    await elsewhere.release();
    expect(await ended).toEqual([0, null]);
    expect(credits.text()).toContain('42 gets 5');
    await store.close?.();

    const port = await freePort();
    const server = start(join(shop, 'dist/main.js'), { PORT: String(port) });
    await until('the application listens', () => server.text().includes('successfully started'), 60_000);
    const began = performance.now();
    const answers = await Promise.all([credit(port), credit(port)]);
    expect(answers).toEqual([201, 201]);
    expect(performance.now() - began).toBeGreaterThan(2 * SECTION_MS - 100);
    server.child.kill('SIGTERM');
    const [code, signal] = (await once(server.child, 'exit')) as [number | null, string | null];
    expect([code, signal]).toEqual([null, 'SIGTERM']);
    expect(server.text()).not.toMatch(/Shutdown hooks are off|ERROR/);
  },
  300_000,
);
