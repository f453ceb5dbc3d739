import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { MySqlLockStore } from '../../lib/mysql/index';
import type { PostgresLockStore } from '../../lib/postgres/index';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';
import { until } from '../support/until';

type Store = MySqlLockStore | PostgresLockStore;

/**
 * States that the last user of a connection can leave behind there. Each is put on every connection of a pool before
 * every call. `loses`: the server answers with an error, which is about one connection; the next call has another
 * one. `refuses`: why such a connection takes no locks.
 */
export type States = Readonly<Record<string, { statements: readonly string[]; loses?: true; refuses?: 'readOnly' }>>;

/** A database whose connections are given back with a state. */
export interface UntidyDatabase {
  /** How many connections a pool has. */
  readonly connections: number;
  /** How many of them nobody keeps while a call waits. */
  readonly idle: number;
  /** A store on other connections, which nobody spoils. It is not open yet. */
  readonly others: Store;
  /** A store with a pool of its own, not open yet, and what leaves a state on so many connections of that pool. */
  newStore(): { store: Store; leave: (statements: readonly string[], count: number) => Promise<void> };
  /** How long the lease goes on by the clock of the server, in milliseconds. */
  leftMs(key: string): Promise<number>;
  stop(): Promise<void>;
}

export const TTL_MS = 60_000;
/** How much of a lease may be over when the test looks, in milliseconds. */
export const LATE_MS = 20_000;

/** The rules for a store whose connections were given back with one of the states. */
export function givenBackSuite(start: () => Promise<UntidyDatabase>, states: States): void {
  let database: UntidyDatabase;
  let others: Store;
  beforeAll(async () => {
    database = await start();
    ({ others } = database);
    await others.ensureSchema();
    await others.open({ prefix: 'lock', warn: () => undefined });
  });
  afterAll(async () => {
    await others.close();
    await database.stop();
  });

  describe.each(Object.entries(states))('connections that were given back with %s', (name, { statements, loses, refuses }) => {
    let store: Store;
    let leave: (statements: readonly string[], count: number) => Promise<void>;
    beforeAll(async () => {
      ({ store, leave } = database.newStore());
      if (!loses) {
        await leave(statements, database.connections);
      }
      await store.open({ prefix: 'lock', warn: () => undefined });
    });
    afterAll(() => store.close());

    /** Sends it on a connection with that state. */
    async function spoiled<T>(call: (store: Store) => Promise<T>, count = database.connections): Promise<T> {
      await leave(statements, count);
      for (let left = loses ? 10 * database.connections : 0; ; left--) {
        try {
          return await call(patient(store));
        } catch (error) {
          if (left === 0) {
            throw error;
          }
          await sleep(50);
        }
      }
    }

    async function granted(key: string): Promise<HoldRecord> {
      const hold = newHold(key, { ttlMs: TTL_MS });
      const { fence = 0 } = await spoiled((one) => one.acquire(hold));
      expect(fence).toBeGreaterThan(0);
      const left = await database.leftMs(key);
      expect(left).toBeGreaterThan(TTL_MS - LATE_MS);
      expect(left).toBeLessThanOrEqual(TTL_MS);
      return { ...hold, fence };
    }

    test('exclude, and each operation answers as elsewhere', async () => {
      // The first of a key that is new; then, in MySQL, plain statements, and then the procedures.
      for (const round of [1, 2, 3]) {
        const key = `é ${name}`;
        const held = await granted(key);
        expect((await patient(others).acquire(newHold(key))).fence).toBeUndefined();
        expect(await spoiled((one) => one.inspect(key))).toMatchObject({ fence: held.fence, holds: 1 });
        expect((await patient(others).inspect(key))?.remainingMs).toBeGreaterThan(TTL_MS - LATE_MS);
        expect(await spoiled((one) => one.renew([held]))).toEqual([true]);
        expect(await database.leftMs(key)).toBeGreaterThan(TTL_MS - LATE_MS);
        const guest = newHold(key, { owner: held.owner, fence: held.fence, ttlMs: TTL_MS });
        if (round > 1) {
          expect(await spoiled((one) => one.join(guest))).toBe(true);
          expect(await spoiled((one) => one.release(guest))).toBe(true);
        }
        expect(await spoiled((one) => one.release(held))).toBe(true);
        expect(await spoiled((one) => one.release(held))).toBe(true);
        expect(await spoiled((one) => one.inspect(key))).toBeNull();
        // A command that comes late is refused by the done mark.
        expect((await patient(others).acquire(held)).fence).toBeUndefined();
        const other = newHold(key, { ttlMs: TTL_MS });
        expect((await patient(others).acquire(other)).fence).toBeGreaterThan(held.fence);
        expect((await spoiled((one) => one.acquire(newHold(key)))).fence).toBeUndefined();
        // Together, as one statement where the store has batches.
        const replies = await spoiled((one) => Promise.all([key, `${key} 2`].map((each) => one.acquire(newHold(each, { ttlMs: 1 })))));
        expect(replies[0]?.fence).toBeUndefined();
        expect((await patient(others).inspect(key))?.waiters).toEqual([]);
        expect(await patient(others).release(other)).toBe(true);
      }
    });

    test('do not keep a lease that is over from being lost', async () => {
      const key = `lost ${name}`;
      const hold = newHold(key, { ttlMs: 100 });
      expect((await spoiled((one) => one.acquire(hold))).fence).toBeGreaterThan(0);
      await until('that it is over', async () => (await others.inspect(key)) === null);
      expect(await spoiled((one) => one.release(hold))).toBe(false);
    });

    test('wait for a lock, and find it in a search', async () => {
      const key = `waits ${name}`;
      const [locks, otherLocks] = [makeLocks(store), makeLocks(others)];
      const held = await otherLocks.acquire(key, { ttl: TTL_MS });
      const waiting = spoiled(() => locks.acquire(key, { wait: 30_000 }));
      await until('that it queues', async () => (await others.inspect(key))?.waiters.length === 1);
      const found = await spoiled(async (one) => {
        const keys: string[] = [];
        for await (const some of one.search(key)) {
          keys.push(...some.map((lock) => lock.key));
        }
        return keys;
      }, database.idle);
      expect(found).toEqual([key]);
      await held.release();
      await (await waiting).release();
    });

    test('answer with the time of the server', async () => {
      const health = await spoiled((one) => one.health());
      expect(Math.abs(health.clockSkewMs ?? Infinity)).toBeLessThan(LATE_MS);
      expect(health.refuses).toBe(refuses);
    });
  });
}
