import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SOURCES } from '../../scripts/entry-points.mjs';
import { until } from '../../test/support/until';
import { SHARED_PLACES, type TestPlace } from './lock-places.js';

/** Bundled from the sources, so that the test needs no build before it; below the root, where packages are found. */
async function bundleDemo(): Promise<string> {
  await mkdir('.cache', { recursive: true });
  const folder = await mkdtemp(join('.cache', 'demo-'));
  await build({
    entryPoints: ['sample-app/src/demo/main.ts', 'sample-app/src/demo/worker.ts'],
    tsconfig: 'sample-app/tsconfig.json',
    alias: Object.fromEntries(Object.entries(SOURCES).map(([name, source]) => [name, `./${source}`])),
    packages: 'external',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    outdir: folder,
  });
  return folder;
}

/** Whether nobody listens on a port of this machine. */
async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}

/** The environment that tells the demo about the locks. The tests' own environment is kept out. */
type Choices = Partial<Record<'LOCK_STORE' | 'REDIS_URL' | 'REDIS_URLS' | 'DATABASE_URL' | 'MYSQL_URL' | 'PATH', string>>;

const NO_CHOICES: Choices = { LOCK_STORE: '', REDIS_URL: '', REDIS_URLS: '', DATABASE_URL: '', MYSQL_URL: '' };

describe('npm run demo', () => {
  let folder: string;

  const run = async (choices: Choices) => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'main.js')], {
      env: { ...process.env, ...NO_CHOICES, ...choices },
    });
    return stdout;
  };

  beforeAll(async () => {
    folder = await bundleDemo();
  });
  afterAll(() => rm(folder, { recursive: true }));

  const expectToShowTheLock = (output: string) => {
    const [plan = '', unlocked = '', locked = '', limited = ''] = output.split(/^WITH(?:OUT)? (?:THE LOCK|3 PERMITS).*$/m);
    expect(plan).toMatch(/They run in 2 processes, A \(pid \d+\) and B \(pid \d+\)/);
    expect(unlocked).toMatch(/up to \d+ ran at the same time/);
    expect(unlocked).toMatch(/should be 200\.00: [1-9] of 10 updates were lost/);
    expect(locked).toContain('They ran one after the other.');
    expect(locked).toContain('The balance is 200.00, as it should be: no update was lost.');
    if (/^The locks are in (?:Redis|PostgreSQL)/m.test(plan)) {
      expect(limited).toMatch(/^ {2}at once {7}[0-3]{56}$/m);
      expect(limited).toMatch(/At most [1-3] ran at the same time/);
    } else {
      expect(limited).toBe('\n');
    }
    expect(Math.max(...output.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  };

  describe('on the redis server that it is told of', () => {
    let place: TestPlace;
    beforeAll(async () => {
      place = await (SHARED_PLACES['redis'] as () => Promise<TestPlace>)();
    });
    afterAll(() => place.stop());

    it('two processes lose updates without the lock, and none with it', async () => {
      const output = await run({ REDIS_URL: (place.locks as { url: string }).url });
      expectToShowTheLock(output);
      expect(output).toContain(`The locks are in Redis at ${new URL((place.locks as { url: string }).url).host}.`);
    }, 120_000);
  });

  it.each([
    ['redis', 1, /^The locks are in Redis at 127\.0\.0\.1:\d+\.$/m],
    ['quorum', 3, /^The locks are in a quorum of 3 Redis servers: (?:127\.0\.0\.1:\d+(?:, )?){3}\.$/m],
    ['postgres', 1, /^The locks are in PostgreSQL at 127\.0\.0\.1:\d+, database postgres\.$/m],
    ['mysql', 1, /^The locks are in MySQL at 127\.0\.0\.1:\d+, database demo\.$/m],
  ])(
    'with LOCK_STORE=%s and no address it starts its own, %i in number, shows the lock, and leaves none behind',
    async (LOCK_STORE, count, place) => {
      const output = await run({ LOCK_STORE });
      expectToShowTheLock(output);
      expect(output).toMatch(place);
      // The balance is on one of the servers of the locks.
      const ports = new Set([...output.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)));
      expect(ports.size).toBe(count);
      for (const port of ports) {
        expect(await isRefused(port)).toBe(true);
      }
      if (LOCK_STORE === 'quorum') {
        expect(output).not.toContain('also between the processes');
      }
    },
    120_000,
  );

  it.each(['redis', 'postgres', 'mysql'])(
    'with LOCK_STORE=%s it takes its server along when it is stopped halfway',
    async (LOCK_STORE) => {
      const TMPDIR = await mkdtemp(join(tmpdir(), 'demo-'));
      // The server may run as another user.
      await chmod(TMPDIR, 0o755);
      const env = { ...process.env, ...NO_CHOICES, LOCK_STORE, TMPDIR };
      const demo = spawn(process.execPath, [join(folder, 'main.js')], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = once(demo, 'exit');
      let output = '';
      demo.stdout.on('data', (text) => (output += String(text)));
      await until('the plan of the demo', () => output.includes('In the pictures'), 90_000);
      demo.kill('SIGTERM');
      expect(await exited).toEqual([143, null]);
      const port = Number(/^The locks are in .* 127\.0\.0\.1:(\d+)/m.exec(output)?.[1]);
      expect(port).toBeGreaterThan(0);
      await until('the end of the server', () => isRefused(port));
      expect(await readdir(TMPDIR)).toEqual([]);
      await rm(TMPDIR, { recursive: true });
    },
    120_000,
  );

  it('without Redis it says so in its first line and runs in one process', async () => {
    const alone = await run({ PATH: '/nowhere' });
    expect(alone).toMatch(/^There is no redis-server on the PATH and no REDIS_URL: the demo runs in one process/);
    expect(alone).toContain('The balance is 200.00, as it should be: no update was lost.');
  });

  it('with LOCK_STORE=memory it says that it runs in one process, also where there is Redis', async () => {
    const alone = await run({ LOCK_STORE: 'memory' });
    expect(alone).toMatch(/^LOCK_STORE is "memory": the demo runs in one process/);
    expect(alone).toContain('The balance is 200.00, as it should be: no update was lost.');
    expect(alone).toMatch(/At most [1-3] ran at the same time/);
  });

  it.each<[Choices, string]>([
    [{ REDIS_URL: 'redis://127.0.0.1:1' }, 'Redis at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1. Check REDIS_URL, or leave it out.'],
    [
      { LOCK_STORE: 'quorum', PATH: '/nowhere' },
      'LOCK_STORE is "quorum", REDIS_URLS is not set, and no redis-server was found. Set the one or install the other.',
    ],
    [
      { LOCK_STORE: 'postgres', DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/bank' },
      'PostgreSQL at 127.0.0.1:1, database bank: connect ECONNREFUSED 127.0.0.1:1. Check DATABASE_URL, or leave it out for an embedded database.',
    ],
    [
      { LOCK_STORE: 'mysql', MYSQL_URL: 'mysql://user:secret@127.0.0.1:1/bank' },
      'MySQL at 127.0.0.1:1, database bank: connect ECONNREFUSED 127.0.0.1:1. Check MYSQL_URL, or leave it out.',
    ],
    [{ LOCK_STORE: 'etcd' }, 'LOCK_STORE is "etcd". Set it to memory, redis, quorum, postgres, mysql, or leave it out.'],
  ])('%j stops it with one line', async (choices, line) => {
    await expect(run(choices)).rejects.toMatchObject({ code: 1, stderr: `${line}\n` });
  });
});
