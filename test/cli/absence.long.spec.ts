import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cliUntil } from '../support/cli';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

const NOBODY =
  'No process answers at the prefix "lock", and no lock is held there. An application that runs has another prefix (pass --prefix), ' +
  'another server or database number, or an older version of this library.\n';

let server: RedisServer;
let store: RedisLockStore;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await RedisServer.start();
  env = { LOCKS_REDIS: server.url };
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

// A program that runs meanwhile would answer, so there is one at a time.
test.each([
  [['list'], 0, 'No locks are held.\n'],
  [['inspect', 'free'], 1, 'Nobody holds "free".\n'],
  [['release', 'free', '--fence', '1', '--yes'], 1, '"free" was not released: it is not held at fence 1; it is free.\n'],
  [['processes'], 0, ''],
  [['incidents'], 0, ''],
] as const)('%j says that nobody answers where no lock is held', async (words, code, said) => {
  await cliUntil(env, words, (ran) => ran.code === code && ran.err === '' && ran.out === said + NOBODY);
});

test.each([
  [['list'], 0, ''],
  [['processes'], 0, '[]\n'],
] as const)('%j says so beside its JSON', async (words, code, said) => {
  await cliUntil(env, [...words, '--json'], (ran) => ran.code === code && ran.out === said && ran.err === NOBODY);
});

test('the prefix is named that was asked', async () => {
  await cliUntil(env, ['list', '--prefix', 'jobs'], ({ out }) => out.includes('No process answers at the prefix "jobs", and no lock'));
});

test('an application that answers and holds nothing is no wrong prefix', async () => {
  const own = new RedisLockStore(server.url);
  await own.open({ prefix: 'lock', warn: () => undefined });
  const locks = makeLocks(own);
  try {
    await cliUntil(env, ['list'], ({ out, err }) => out === 'No locks are held.\n' && err === '');
    await cliUntil(env, ['inspect', 'free'], ({ out, err }) => out === 'Nobody holds "free".\n' && err === '');
    await cliUntil(env, ['incidents', '--json'], ({ out, err }) => out === '' && err === '');
  } finally {
    await locks.shutdown();
    await own.close();
  }
});

test('locks without a process that answers are told from a wrong prefix', async () => {
  await until('a lock', () =>
    store.acquire(newHold('held', { ttlMs: 600_000, limitMs: 2_500 })).then(
      ({ fence }) => fence !== undefined,
      () => false,
    ),
  );
  for (const command of ['processes', 'incidents']) {
    await cliUntil(env, [command], ({ out }) => /^No process answers, but locks are held: .* See: list\.\n$/.test(out));
  }
  await cliUntil(env, ['list', 'other:'], ({ out, err }) => out === 'No locks are held.\n' && err === '');
});
