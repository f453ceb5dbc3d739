import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'mysql2';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { MySqlLockStore } from '../../lib/mysql/index';
import { makeLocks } from '../support/make-locks';
import { DATABASE, MySqlServer, PRODUCT_NAME } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';
import { until } from '../support/until';

/** More than a sleeper keeps. */
const CONNECTIONS = 4;
const TTL_MS = 60_000;
/** How much of a lease may be over when the test looks, in milliseconds. */
const LATE_MS = 20_000;

/**
 * States that the last user of a connection can leave behind there. Each is put on every connection of a pool before
 * every call. `loses`: the server answers with an error, which is about one connection; the next call has another
 * one.
 */
const STATES: Readonly<Record<string, { statements: readonly string[]; loses?: true }>> = {
  'a clock in the past': { statements: ['SET timestamp = 1000000'] },
  'a clock in the future': { statements: ['SET timestamp = 2000000000'] },
  'a clock that stands still': { statements: ['SET timestamp = @@timestamp'] },
  'a clock that stands still a second ago': { statements: ['SET timestamp = @@timestamp - 0.9'] },
  'a clock that stands still in another time zone': { statements: ["SET timestamp = 1000000, time_zone = '+05:45'"] },
  'a time zone': { statements: ["SET time_zone = '-12:00'"] },
  'a character set': { statements: ['SET NAMES gbk'] },
  'a character set of results': { statements: ['SET character_set_results = gbk'] },
  'results without a character set': { statements: ['SET character_set_results = NULL'] },
  'a collation with two bytes for each letter': { statements: ['SET collation_connection = utf16_general_ci'] },
  'a collation that is not that of the tables': { statements: ['SET collation_connection = latin1_german2_ci'] },
  'another database': { statements: ['USE mysql'] },
  'strange modes': {
    statements: [
      "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION'",
    ],
  },
  'no precision of divisions': { statements: ['SET div_precision_increment = 0'] },
  'short groups and sorts': { statements: ['SET group_concat_max_len = 4, max_sort_length = 64'] },
  'safe updates': { statements: ['SET sql_safe_updates = 1'] },
  'small joins only': { statements: ['SET sql_big_selects = 0, max_join_size = 1'] },
  'one row': { statements: ['SET sql_select_limit = 1'] },
  'no row': { statements: ['SET sql_select_limit = 0'] },
  'an automatic NULL': { statements: ['SET sql_auto_is_null = 1'] },
  'an inserted id': { statements: ['SET last_insert_id = 77, insert_id = 88'] },
  'no checks': { statements: ['SET foreign_key_checks = 0, unique_checks = 0'] },
  'big tables and another plan': {
    statements: ["SET tmp_table_size = 1024, optimizer_switch = 'derived_merge=off,index_merge=off,materialization=off'"],
  },
  'no wait for rows': { statements: ['SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1'] },
  'no commit': { statements: ['SET autocommit = 0'] },
  'a transaction': { statements: ['START TRANSACTION', `SELECT 1 FROM ${DATABASE}.distributed_lock_lease`] },
  'a transaction that only reads': { statements: ['START TRANSACTION READ ONLY', `SELECT 1 FROM ${DATABASE}.distributed_lock_lease`] },
  'sessions that only read': { statements: ['SET SESSION TRANSACTION READ ONLY'] },
  'a next transaction that only reads': { statements: ['SET TRANSACTION READ ONLY'] },
  'serializable transactions': { statements: ['SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'] },
  'reads of what is not committed': { statements: ['SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED'] },
  'commits that begin another transaction': { statements: ["SET completion_type = 'CHAIN'"] },
  'commits that end the connection': { statements: ["SET completion_type = 'RELEASE'"] },
  'tables locked for reading': { statements: ['LOCK TABLES $table READ'] },
  'tables locked for writing': { statements: ['LOCK TABLES $table WRITE'] },
  'a handler': { statements: ['HANDLER $table OPEN'] },
  'an XA transaction': { statements: ["XA START '$id'"] },
  'an XA transaction that has written': { statements: ["XA START '$id'", 'INSERT INTO $table VALUES (1)'] },
  'an XA transaction that is ended': { statements: ["XA START '$id'", 'INSERT INTO $table VALUES (1)', "XA END '$id'"] },
  'changes of the session that are reported': { statements: ["SET session_track_system_variables = '*', session_track_schema = 1"] },
  'a role without rights': { statements: ['SET ROLE NONE'], loses: true },
};

let server: MySqlServer;
let others: MySqlLockStore;
let count = 0;
const tables = new Set<string>();

beforeAll(async () => {
  server = await MySqlServer.start();
  others = new MySqlLockStore(server.pool());
  await others.ensureSchema();
  await others.open({ prefix: 'lock', warn: () => undefined });
  for (const sql of [
    'CREATE USER clerk',
    'CREATE ROLE locking',
    `GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE, LOCK TABLES ON ${DATABASE}.* TO locking`,
    `GRANT SELECT ON mysql.* TO clerk`,
    'GRANT locking TO clerk',
    `SET DEFAULT ROLE locking ${PRODUCT_NAME === 'MySQL' ? 'TO' : 'FOR'} clerk`,
  ]) {
    await server.query(sql);
  }
});
afterAll(async () => {
  await others.close();
  await server.stop();
});

/** Leaves a state on each connection of a pool, or on so many. */
async function leave(pool: Pool, statements: readonly string[], length = CONNECTIONS): Promise<void> {
  const connections = await Promise.all(Array.from({ length }, () => pool.promise().getConnection()));
  for (const connection of connections) {
    // Of its own: one waits for what another one has locked.
    const table = `${DATABASE}.of_${connection.threadId}`;
    if (statements.join().includes('$table') && !tables.has(table)) {
      tables.add(table);
      await server.query(`CREATE TABLE ${table} (id INT) ENGINE = InnoDB`);
    }
    const id = `${process.pid} ${++count}`;
    for (const sql of statements) {
      // Some of it is there already.
      await connection.query(sql.replace('$id', id).replace('$table', table)).catch(() => undefined);
    }
    connection.release();
  }
}

/** How long the lease goes on by the clock of the server, in milliseconds. */
async function leftMs(key: string): Promise<number> {
  const sql = `SELECT (ends / 1000000 - unix_timestamp(now(6))) * 1000 AS left_ms FROM ${DATABASE}.distributed_lock_lease WHERE name = ?`;
  const [row] = await server.query<{ left_ms: string }>(sql, [Buffer.from(`lock:{${key}}`)]);
  return Number(row?.left_ms);
}

describe.each(Object.entries(STATES))('connections that were given back with %s', (_name, { statements, loses }) => {
  let pool: Pool;
  let store: MySqlLockStore;
  beforeAll(async () => {
    pool = server.pool({ connectionLimit: CONNECTIONS, user: 'clerk' });
    store = new MySqlLockStore(pool);
    if (!loses) {
      await leave(pool, statements);
    }
    await store.open({ prefix: 'lock', warn: () => undefined });
  });
  afterAll(async () => {
    await store.close();
    pool.end(() => undefined);
  });

  /** Sends it on a connection with that state. */
  async function spoiled<T>(call: (store: MySqlLockStore) => Promise<T>, length?: number): Promise<T> {
    await leave(pool, statements, length);
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
    // The first of a key that is new, then plain statements, then the procedures.
    for (const round of [1, 2, 3]) {
      const key = `é ${_name}`;
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
      expect((await spoiled((one) => one.acquire(newHold(key)))).fence).toBeUndefined();
      expect(await patient(others).release(other)).toBe(true);
    }
  });

  test('do not keep a lease that is over from being lost', async () => {
    const key = `lost ${_name}`;
    const hold = newHold(key, { ttlMs: 100 });
    expect((await spoiled((one) => one.acquire(hold))).fence).toBeGreaterThan(0);
    await until('that it is over', async () => (await others.inspect(key)) === null);
    expect(await spoiled((one) => one.release(hold))).toBe(false);
  });

  test('wait for a lock, and find it in a search', async () => {
    const key = `waits ${_name}`;
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
      // A sleeper has the others.
    }, CONNECTIONS - 2);
    expect(found).toEqual([key]);
    await held.release();
    await (await waiting).release();
  });

  test('answer with the time of the server', async () => {
    const { clockSkewMs = Infinity, refuses } = await spoiled((one) => one.health());
    expect(Math.abs(clockSkewMs)).toBeLessThan(LATE_MS);
    expect(refuses).toBeUndefined();
  });
});

test('a server that was started with sysdate-is-now does not follow the clock of a session either', async () => {
  const own = await MySqlServer.start('--sysdate-is-now');
  const pool = own.pool({ connectionLimit: CONNECTIONS });
  const store = new MySqlLockStore(pool);
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  for (const key of ['a', 'a', 'b']) {
    const hold = newHold(key, { ttlMs: TTL_MS });
    const clock = ['SET timestamp = 1000000'];
    await leave(pool, clock);
    expect((await patient(store).acquire(hold)).fence).toBeGreaterThan(0);
    await leave(pool, clock);
    expect((await patient(store).inspect(key))?.remainingMs).toBeGreaterThan(TTL_MS - LATE_MS);
    await leave(pool, clock);
    expect(await patient(store).release(hold)).toBe(true);
  }
  await store.close();
  await own.stop();
});
