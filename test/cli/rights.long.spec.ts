import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli, cliUntil } from '../support/cli';
import { newHold } from '../support/new-hold';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

let server: RedisServer;
let store: RedisLockStore;

beforeAll(async () => {
  server = await RedisServer.start();
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  await until('a lock', () =>
    store.acquire(newHold('held', { ttlMs: 600_000, limitMs: 2_500 })).then(
      () => true,
      () => false,
    ),
  );
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

/** The environment of a user who lacks these rights. */
async function without(...rights: string[]): Promise<NodeJS.ProcessEnv> {
  const name = `user${rights.join('').replaceAll(/\W/g, '')}`;
  await server.client.call('ACL', 'SETUSER', name, 'on', '>secret', 'allkeys', 'allchannels', 'allcommands', ...rights);
  return { LOCKS_REDIS: `redis://${name}:secret@127.0.0.1:${server.port}` };
}

const OUTAGE = /does not answer|did not answer|can be reached/;

test.each([['list'], ['inspect', 'held'], ['top'], ['incidents'], ['processes'], ['release', 'held', '--fence', '1', '--yes']])(
  '%s names the command that is refused, and no outage',
  async (...words) => {
    const { code, out, err } = await cli(await without('-time'), words);
    expect({ code, out }).toEqual({ code: 3, out: '' });
    expect(err).toMatch(/^Redis refused .*'time'.* Grant the rights that .*\n$/);
    expect(err).not.toMatch(OUTAGE);
  },
);

test('the doctor names the command that is refused, and no outage', async () => {
  for (const right of ['-time', '-@all']) {
    const { code, out, err } = await cli(await without(right), ['doctor']);
    // Once in a finding is enough: nothing is said beside it.
    expect({ code, err }).toEqual({ code: 1, err: '' });
    expect(out).toMatch(/^FAIL {2}store: Redis refused .*'time'.* Grant the rights that /m);
    expect(out).not.toMatch(OUTAGE);
  }
});

test.each([
  ['-publish', "'publish'"],
  ['-subscribe', "'subscribe'"],
  ['resetchannels', 'channels'],
])('without %s, commands that ask processes end with 3, and list and inspect say what is missing', async (right, named) => {
  const env = await without(right);
  const refusal = new RegExp(`^Processes cannot be asked: Redis refused .*${named}.* Grant the rights that .*\n$`);
  for (const command of ['top', 'incidents', 'processes']) {
    expect(await cliUntil(env, [command, '--json'], ({ err }) => refusal.test(err))).toMatchObject({ code: 3, out: '' });
  }
  const listed = await cliUntil(env, ['list'], ({ err }) => refusal.test(err));
  expect(listed).toMatchObject({ code: 0, out: expect.stringMatching(/^held .* no$/m) });
  const inspected = await cliUntil(env, ['inspect', 'held'], ({ err }) => refusal.test(err));
  expect(inspected).toMatchObject({ code: 0, out: expect.stringMatching(/^Key +held$/m) });
});

test('list does not say that no locks are held where it may not look', async () => {
  for (const [right, named] of [
    ['-scan', 'Grant +scan'],
    ['-hmget', 'HMGET'],
  ] as const) {
    const { code, out, err } = await cli(await without(right), ['list', '--json']);
    expect({ code, out }).toEqual({ code: 3, out: '' });
    expect(err).toContain(named);
  }
  expect((await cli(await without('-scan'), ['list'])).out).not.toContain('No locks are held');
});
