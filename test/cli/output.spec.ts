import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { cli } from '../support/cli';
import { RedisServer } from '../support/redis-server';

let server: RedisServer;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await RedisServer.start();
  env = { LOCKS_REDIS: server.url };
});
afterAll(() => server.stop());

test.each([
  [['inspect', 'nope'], 1],
  [['release', 'nope', '--fence', '1', '--yes', '--json'], 1],
  [['list'], 0],
  [['--version'], 0],
])('where nobody reads the output of %j, it ends with the code of the command: %d', async (words, code) => {
  expect(await cli(env, words, '', 'nobody')).toMatchObject({ code, err: expect.not.stringContaining('EPIPE') });
});

test.each([
  [['inspect', 'nope'], 1],
  [['list'], 3],
  [['--version'], 3],
])('where the output of %j cannot be written, it says so and ends with %d', async (words, code) => {
  const { code: ended, err } = await cli(env, words, '', 'full disk');
  expect(err).toMatch(/^The output could not be written: ENOSPC.*\n$/);
  expect(ended).toBe(code);
});

test.each([
  [['list', '--limit', 'x'], 2],
  [['list', '--redis', 'redis://127.0.0.1:1'], 3],
])('an error that cannot be told ends %j with its code all the same: %d', async (words, code) => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, ['dist/esm/cli/main.js', ...words], { stdio: ['ignore', 'ignore', full] });
  closeSync(full);
  expect(await once(child, 'close')).toEqual([code, null]);
});
