import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { PostgresLockStore } from '../../lib/postgres/index';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';
import { PostgresServer } from '../support/postgres-server';
import { until } from '../support/until';

const CONNECTIONS = 3;
const TTL_MS = 60_000;
/** How much of a lease may be over when the test looks, in milliseconds. */
const LATE_MS = 20_000;

/**
 * States that the last user of a connection can leave behind there. Each is put on every connection of a pool before
 * every call. `loses`: the server answers with an error, which is about one connection; the next call has another
 * one.
 */
const STATES: Readonly<Record<string, { statements: readonly string[]; loses?: true }>> = {
  'a time zone': { statements: ["SET TimeZone = 'Asia/Kathmandu'"] },
  'other texts of times': { statements: ["SET DateStyle = 'German, DMY'", "SET IntervalStyle = 'sql_standard'"] },
  'few digits': { statements: ['SET extra_float_digits = -15', "SET bytea_output = 'escape'"] },
  'another encoding': { statements: ["SET client_encoding = 'LATIN1'"] },
  'another encoding that has few characters': { statements: ["SET client_encoding = 'WIN1251'"] },
  'functions with names of the server': { statements: ['SET search_path = strange, pg_catalog'] },
  'no search path': { statements: ["SET search_path = ''"] },
  'other texts': { statements: ['SET standard_conforming_strings = off', 'SET backslash_quote = off', 'SET quote_all_identifiers = on'] },
  'NULL as a text': { statements: ['SET array_nulls = off'] },
  'NULL as a value': { statements: ['SET transform_null_equals = on'] },
  'strict functions': { statements: ["SET plpgsql.extra_errors = 'all'", "SET plpgsql.extra_warnings = 'all'"] },
  'no notices': { statements: ['SET client_min_messages = error'] },
  'another plan': {
    statements: ['index', 'indexonly'].map((name) => `SET enable_${name}scan = off`),
  },
  'new plans and little memory': {
    statements: ["SET plan_cache_mode = 'force_custom_plan'", 'SET jit_above_cost = 0', "SET work_mem = '64kB'"],
  },
  'no wait for locks': { statements: ["SET lock_timeout = '1ms'"] },
  'statements of a millisecond': { statements: ["SET statement_timeout = '1ms'"], loses: true },
  'sessions that only read': { statements: ['SET default_transaction_read_only = on'], loses: true },
  'serializable transactions': { statements: ["SET default_transaction_isolation = 'serializable'"] },
  'transactions that can be deferred': { statements: ['SET default_transaction_deferrable = on'] },
  'a transaction': { statements: ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT FROM distributed_lock.lease'] },
  'a transaction that failed': { statements: ['BEGIN', 'SELECT 1 / 0'] },
  'commits that wait for nothing': { statements: ['SET synchronous_commit = off'] },
  'the part of a replica': { statements: ["SET session_replication_role = 'replica'"] },
  'another role': { statements: ['SET ROLE nobody'], loses: true },
  'another user': { statements: ["SET SESSION AUTHORIZATION 'nobody'"], loses: true },
  'security that raises errors': { statements: ['SET row_security = off'] },
  'a channel, a cursor and a lock': {
    statements: [
      'LISTEN news',
      'DECLARE open CURSOR WITH HOLD FOR SELECT 1',
      'SELECT pg_advisory_lock(pg_backend_pid())',
      'PREPARE one AS SELECT 1',
    ],
  },
  'a table of the same name': { statements: ['CREATE TEMPORARY TABLE lease (key text)'] },
};

let server: PostgresServer;
let others: PostgresLockStore;

beforeAll(async () => {
  server = await PostgresServer.start();
  others = new PostgresLockStore(server.pool());
  await others.ensureSchema();
  await others.open({ prefix: 'lock', warn: () => undefined });
  for (const sql of [
    'CREATE ROLE nobody',
    'CREATE SCHEMA strange',
    `CREATE FUNCTION strange.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT timestamptz 'epoch'$$`,
    `CREATE FUNCTION strange.pg_client_encoding() RETURNS name LANGUAGE sql AS $$SELECT name 'none'$$`,
  ]) {
    await server.query(sql);
  }
});
afterAll(async () => {
  await others.close();
  await server.stop();
});

/** Leaves a state on each connection of a pool. */
async function leave(pool: Pool, statements: readonly string[]): Promise<void> {
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()));
  for (const client of clients) {
    for (const sql of statements) {
      // Some of it is there already.
      await client.query(sql).catch(() => undefined);
    }
    client.release();
  }
}

/** How long the lease goes on by the clock of the server, in milliseconds. */
async function leftMs(key: string): Promise<number> {
  const sql = `SELECT extract(epoch FROM ends - clock_timestamp()) * 1000 AS left FROM distributed_lock.lease WHERE key = 'lock:{${key}}'`;
  const [row] = await server.query<{ left: string }>(sql);
  return Number(row?.left);
}

describe.each(Object.entries(STATES))('connections that were given back with %s', (name, { statements, loses }) => {
  let pool: Pool;
  let store: PostgresLockStore;
  beforeAll(async () => {
    pool = server.pool({ max: CONNECTIONS });
    store = new PostgresLockStore(pool);
    if (!loses) {
      await leave(pool, statements);
    }
    await store.open({ prefix: 'lock', warn: () => undefined });
  });
  afterAll(() => store.close());

  /** Sends it on a connection with that state. */
  async function spoiled<T>(call: (store: PostgresLockStore) => Promise<T>): Promise<T> {
    await leave(pool, statements);
    for (let left = loses ? 10 * CONNECTIONS : 0; ; left--) {
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
    const left = await leftMs(key);
    expect(left).toBeGreaterThan(TTL_MS - LATE_MS);
    expect(left).toBeLessThanOrEqual(TTL_MS);
    return { ...hold, fence };
  }

  test('exclude, and each operation answers as elsewhere', async () => {
    for (const round of [1, 2]) {
      const key = `é ${name}`;
      const held = await granted(key);
      expect((await patient(others).acquire(newHold(key))).fence).toBeUndefined();
      expect(await spoiled((one) => one.inspect(key))).toMatchObject({ fence: held.fence, holds: 1 });
      expect((await patient(others).inspect(key))?.remainingMs).toBeGreaterThan(TTL_MS - LATE_MS);
      expect(await spoiled((one) => one.renew([held]))).toEqual([true]);
      expect(await leftMs(key)).toBeGreaterThan(TTL_MS - LATE_MS);
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
      // Together, as one statement.
      const replies = await spoiled((one) => Promise.all([key, `${key} 2`].map((each) => one.acquire(newHold(each, { ttlMs: 1 })))));
      expect(replies[0]?.fence).toBeUndefined();
      expect((await patient(others).inspect(key))?.waiters).toEqual([]);
      expect(await patient(others).release(other)).toBe(true);
    }
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
    });
    expect(found).toEqual([key]);
    await held.release();
    await (await waiting).release();
  });

  test('answer with the time of the server', async () => {
    const { clockSkewMs = Infinity } = await spoiled((one) => one.health());
    expect(Math.abs(clockSkewMs)).toBeLessThan(LATE_MS);
  });
});
