import { expect } from '@jest/globals';
import { cliUntil } from '../support/cli';
import { startLaterProcess, type LaterProcess } from '../support/later-process';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';

let server: RedisServer;
let later: LaterProcess;
let store: RedisLockStore;
let locks: ReturnType<typeof makeLocks>;

beforeAll(async () => {
  server = await RedisServer.start();
  later = await startLaterProcess(server.url);
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
  await locks.acquire('later:held', { ttl: 600_000 });
  await later.sendOthers();
});
afterAll(async () => {
  await locks.shutdown();
  await store.close();
  await later.stop();
  await server.stop();
});

test.each<[string, readonly string[], readonly string[]]>([
  ['top', [], ['3 processes answer.', 'bare:held', 'later:held', 'later:<id>']],
  ['list', [], ['bare:held', 'later:held', 'not said (pid 0)']],
  ['inspect', ['later:held'], ['Later.run in later:7:00000000#1, for 1.0 s']],
  ['processes', [], ['9.0.0', 'frostbitten thawing membersAway constructor', 'not said']],
  ['incidents', [], ['evaporated: sunspots', 'lost: eclipse', 'cycle', 'not said']],
  ['doctor', [], ['ok    store: It answers']],
])(
  '%s shows the words of a process of a later version as they are',
  async (command, words, shown) => {
    const ran = await cliUntil(
      { LOCKS_REDIS: server.url },
      [command, ...words],
      ({ code, out }) => code === 0 && shown.every((word) => out.includes(word)),
    );
    expect(ran.err).toBe('');
    expect(ran.out).not.toMatch(/undefined|NaN/);
  },
  120_000,
);
