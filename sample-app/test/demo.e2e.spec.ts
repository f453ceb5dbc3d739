import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RedisServer } from '../src/demo/redis-server.js';
import { startTestRedis } from './test-redis.js';

/** Bundled from the sources, so that the test needs no build before it; below the root, where packages are found. */
async function bundleDemo(): Promise<string> {
  await mkdir('.cache', { recursive: true });
  const folder = await mkdtemp(join('.cache', 'demo-'));
  await build({
    entryPoints: ['sample-app/src/demo/main.ts', 'sample-app/src/demo/worker.ts'],
    tsconfig: 'sample-app/tsconfig.json',
    alias: { 'nestjs-distributed-lock': './lib/index.ts' },
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

describe('npm run demo', () => {
  let folder: string;
  let redis: RedisServer;
  let output: string;

  const run = async (environment: NodeJS.ProcessEnv) => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'main.js')], { env: environment });
    return stdout;
  };

  beforeAll(async () => {
    folder = await bundleDemo();
    redis = await startTestRedis();
    output = await run({ ...process.env, REDIS_URL: redis.url });
  }, 60_000);
  afterAll(async () => {
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  it('two processes lose updates without the lock, and none with it', () => {
    const [plan = '', unlocked = '', locked = ''] = output.split(/^WITH(?:OUT)? THE LOCK.*$/m);
    expect(plan).toMatch(/They run in 2 processes, A \(pid \d+\) and B \(pid \d+\)/);
    expect(unlocked).toMatch(/up to \d+ ran at the same time/);
    expect(unlocked).toMatch(/should be 200\.00: [1-9] of 10 updates were lost/);
    expect(locked).toContain('They ran one after the other.');
    expect(locked).toContain('The balance is 200.00, as it should be: no update was lost.');
  });

  it('no line is wider than a hundred columns', () => {
    expect(Math.max(...output.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it('without Redis it says so in its first line and runs in one process', async () => {
    const alone = await run({ ...process.env, REDIS_URL: '', PATH: '/nowhere' });
    expect(alone).toMatch(/^There is no redis-server on the PATH and no REDIS_URL: the demo runs in one process/);
    expect(alone).toContain('The balance is 200.00, as it should be: no update was lost.');
  }, 60_000);

  it('a Redis that does not answer stops it with one line', async () => {
    await expect(run({ ...process.env, REDIS_URL: 'redis://127.0.0.1:1' })).rejects.toMatchObject({
      code: 1,
      stderr: 'Redis at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1. Check REDIS_URL, or leave it out.\n',
    });
  });
});
