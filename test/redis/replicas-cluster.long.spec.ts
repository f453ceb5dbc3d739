import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError, type LockError } from '../../lib/core/words/errors';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { noWarning } from '../support/no-warning';
import { noting } from '../support/noting';
import { RedisCluster } from '../support/redis-cluster';
import { clusterClient, type ClusterClient } from '../support/redis-source';

const KEYS = Array.from({ length: 30 }, (_, index) => `key ${index}`);

let cluster: RedisCluster;
let client: ClusterClient;
let store: RedisLockStore;
let locks: LockService;
let troubles: LockTrouble[];

beforeAll(async () => {
  cluster = await RedisCluster.start('--repl-diskless-load', 'swapdb');
});
afterAll(() => cluster.stop());

beforeEach(async () => {
  troubles = [];
  client = clusterClient(cluster.nodes);
  store = new RedisLockStore(client.source, { minReplicas: 1 });
  await store.open({ prefix: 'lock', warn: (message) => noWarning(message) });
  locks = makeLocks(store, { onTrouble: noting(troubles) });
});
afterEach(async () => {
  await store.close();
  client.close();
});

const lockOf = (key: string): string => `lock:lock:{${key}}`;

test('each shard has its own replica confirm what is granted and renewed there', async () => {
  await Promise.all(
    KEYS.map((key) =>
      locks.withLock(key, { ttl: 4_000 }, async (lock) => {
        await sleep(5_000);
        expect(lock.isHeld()).toBe(true);
      }),
    ),
  );
  // A busy machine may keep a command past its time limit: that is no loss.
  expect(troubles.filter(({ type }) => type === 'lost')).toEqual([]);
});

test('a shard whose replica is stopped grants nothing and loses what it has, and the others go on', async () => {
  const master = await cluster.masterOf(lockOf('key 0'));
  const [replica] = await cluster.replicasOf(master);
  const lock = await locks.acquire('key 0', { ttl: 1_500 });
  const other = await otherShard(master.port);
  const kept = await locks.acquire(other, { ttl: 1_500 });
  replica?.pause();
  const error: unknown = await locks.acquire(await sameShard(master.port), { ttl: 4_000, wait: 0 }).catch((failure: unknown) => failure);
  await sleep(1_800);
  replica?.resume();
  expect(error).toBeInstanceOf(LockStoreError);
  expect((error as LockError).detail).toMatch(/: 0 of 1 replicas confirmed the grant within (500|[1-4]\d\d) ms\./);
  expect([lock.isHeld(), kept.isHeld()]).toEqual([false, true]);
  await Promise.all([lock.release(), kept.release()]);
});

test('a slot that moves to another shard is followed', async () => {
  const before = await cluster.masterOf(lockOf('moved'));
  const target = (await cluster.masters()).find((master) => master !== before);
  await locks.withLock('moved', { ttl: 20_000 }, () => undefined);
  await cluster.reshard(lockOf('moved'), target as NonNullable<typeof target>);
  const lock = await locks.acquire('moved', { ttl: 2_000, wait: 3_000 });
  await sleep(2_500);
  expect(lock.isHeld()).toBe(true);
  await lock.release();
});

test('a failover of a shard keeps what was granted there', async () => {
  const master = await cluster.masterOf(lockOf('key 0'));
  const lock = await locks.acquire('key 0', { ttl: 60_000, renew: false });
  const promoted = await cluster.failover(master);
  expect(await promoted.client.hget(lockOf('key 0'), 'fence')).toBe(String(lock.fence));
  expect(await locks.tryAcquire('key 0').catch(() => null)).toBeNull();
  await cluster.restart(master);
  await lock.release();
  expect(await locks.withLock('key 0', { ttl: 4_000, wait: 10_000 }, () => 1)).toBe(1);
});

async function sameShard(port: number): Promise<string> {
  return shardKey(async (key) => (await cluster.masterOf(lockOf(key))).port === port);
}

async function otherShard(port: number): Promise<string> {
  return shardKey(async (key) => (await cluster.masterOf(lockOf(key))).port !== port);
}

async function shardKey(fits: (key: string) => Promise<boolean>): Promise<string> {
  for (let count = 0; ; count++) {
    if (await fits(`other ${count}`)) {
      return `other ${count}`;
    }
  }
}
