import type { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockTrouble } from '../../lib/core/reporter';
import type { LockService } from '../../lib/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { Load } from '../support/load';
import { makeLocks } from '../support/make-locks';
import { SentinelGroup } from '../support/redis-sentinel';

let group: SentinelGroup;
let clients: Redis[];
let stores: RedisLockStore[];
let warnings: string[];
let troubles: LockTrouble[];

beforeAll(async () => {
  group = await SentinelGroup.start();
}, 40_000);
afterAll(() => group.stop());

beforeEach(() => {
  clients = [];
  stores = [];
  warnings = [];
  troubles = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await group.recover();
  for (const client of clients) {
    // A store leaves the client that it was given alone.
    expect(client.status).not.toBe('end');
    client.disconnect();
  }
  expect(warnings).toEqual([]);
}, 30_000);

async function openLocks(): Promise<LockService> {
  const client = group.connect();
  clients.push(client);
  const store = new RedisLockStore(client);
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  stores.push(store);
  return makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;

test('a Sentinel client is accepted', async () => {
  const locks = await openLocks();
  const master = await group.master();
  await locks.withLock('k', async () => expect(await master.client.exists(lockOf('k'))).toBe(1));
});

describe('a failover', () => {
  test('is retried through by calls that may wait, and fences rise though the last grants were lost', async () => {
    const load = new Load([await openLocks(), await openLocks(), await openLocks()], ['a', 'b', 'c'], { ttl: 2_000, wait: 15_000 });
    await sleep(500);
    const replicas = await group.replicas();
    for (const replica of replicas) {
      replica.pause();
    }
    const master = await group.master();
    await master.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await load.turnRound();
    await master.kill();
    const startedAt = performance.now();
    for (const replica of replicas) {
      replica.resume();
    }
    await load.turnRound();
    console.log(`locks were granted again ${Math.round(performance.now() - startedAt)} ms after the master was killed`);
    await sleep(500);
    await load.stop();
    expect(load.longestMs).toBeGreaterThan(900);
    expect(load.failures).toEqual([]);
    expect(load.disorders).toBe(0);
  }, 40_000);
});
