import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { MySqlLockStore } from '../../lib/mysql/index';
import { makeLocks } from '../support/make-locks';
import { modesOf, MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { until } from '../support/until';

/** Each changes what SQL means, of one product or of both. */
const MODES = modesOf([
  '',
  'ALLOW_INVALID_DATES',
  'ANSI_QUOTES',
  'EMPTY_STRING_IS_NULL',
  'ERROR_FOR_DIVISION_BY_ZERO',
  'HIGH_NOT_PRECEDENCE',
  'IGNORE_BAD_TABLE_OPTIONS',
  'IGNORE_SPACE',
  'NO_AUTO_VALUE_ON_ZERO',
  'NO_BACKSLASH_ESCAPES',
  'NO_UNSIGNED_SUBTRACTION',
  'NO_ZERO_DATE',
  'NO_ZERO_IN_DATE',
  'ONLY_FULL_GROUP_BY',
  'ORACLE',
  'PAD_CHAR_TO_FULL_LENGTH',
  'PIPES_AS_CONCAT',
  'REAL_AS_FLOAT',
  'SIMULTANEOUS_ASSIGNMENT',
  'STRICT_ALL_TABLES',
  'TIME_ROUND_FRACTIONAL',
  'TIME_TRUNCATE_FRACTIONAL',
  'TRADITIONAL',
]);

let server: MySqlServer;
let databases = 0;

beforeAll(async () => {
  server = await MySqlServer.start();
});
afterAll(() => server.stop());

/** A store whose sessions have the mode that the server has now. */
async function open(database: string): Promise<MySqlLockStore> {
  const store = new MySqlLockStore(server.pool({ database }));
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: (message) => noWarning(message, 'innodb_flush') });
  return store;
}

async function makeDatabase(charset: string): Promise<string> {
  const database = `modes_${++databases}`;
  await server.query(`CREATE DATABASE ${database} CHARACTER SET ${charset}`);
  return database;
}

/** Acquires what has to be free. */
async function granted(store: MySqlLockStore, hold: HoldRecord): Promise<HoldRecord> {
  const { fence = 0 } = await store.acquire(hold);
  expect(fence).toBeGreaterThan(0);
  return { ...hold, fence };
}

describe.each([
  ...MODES.map((mode) => [`sql_mode '${mode}' of the server`, mode, 'utf8mb4'] as const),
  ...['latin1', 'gbk', 'utf16', 'utf32'].map((charset) => [`character set ${charset} of the database`, '', charset] as const),
])('with %s', (_name, mode, charset) => {
  let database: string;
  let store: MySqlLockStore;
  let other: MySqlLockStore;
  beforeAll(async () => {
    database = await makeDatabase(charset);
    await server.query('SET GLOBAL sql_mode = ?', [mode]);
    [store, other] = [await open(database), await open(database)];
  });
  afterAll(async () => {
    await Promise.all([store.close(), other.close()]);
    await server.query(`SET GLOBAL sql_mode = DEFAULT`);
  });

  test('a schema is made, and each operation does and answers what it does elsewhere', async () => {
    const key = `it's "\\ é 漢 \0 ||`;
    const held = await granted(store, newHold(key, { by: 'tester "x"' }));
    expect(await other.acquire(newHold(key))).toMatchObject({ holder: { by: 'tester "x"' } });
    const another = { ...held, owner: newHold('').owner };
    expect(await store.renew([held, another, { ...held, by: '' }])).toEqual([true, false, true]);
    const guest = newHold(key, { owner: held.owner, fence: held.fence });
    expect(await other.join(guest)).toBe(true);
    expect(await other.join({ ...guest, id: 'x', fence: held.fence - 1 })).toBe(false);
    expect(await other.inspect(key)).toMatchObject({ fence: held.fence, holds: 2, by: 'tester "x"', waiters: [] });
    expect(await store.release({ ...another, id: 'another' })).toBe(false);
    expect(await store.release(held)).toBe(true);
    expect(await store.release(held)).toBe(true);
    expect((await store.acquire(newHold(key))).fence).toBeUndefined();
    expect(await other.release(guest)).toBe(true);
    expect((await store.acquire(held)).fence).toBeUndefined();
    expect(await store.inspect(key)).toBeNull();
    const first = await granted(store, newHold(key, { ttlMs: 60_000 }));
    expect(await store.renew([{ ...first, ttlMs: 3_000, lingering: true }])).toEqual([true]);
    expect((await store.inspect(key))?.remainingMs).toBeLessThanOrEqual(3_000);
    const next = newHold(key);
    const { released, reply } = await store.exchange(first, next, { name: 'place' }, true);
    expect(released).toBe(true);
    const fence = (await reply).fence ?? 0;
    expect(fence).toBeGreaterThan(first.fence);
    expect(await other.forceRelease(key, first.fence)).toBe(false);
    expect(await other.forceRelease(key, fence)).toBe(true);
    expect(await store.renew([{ ...next, fence }])).toEqual([false]);
    const found = [];
    await granted(store, newHold(`${key} 2`, { by: '' }));
    for await (const locks of other.search('it')) {
      found.push(...locks.map((lock) => [lock.key, lock.by]));
    }
    expect(found).toEqual([[`${key} 2`, '']]);
    expect(await store.purge({ olderThan: '1m' })).toBe(0);
  });

  test('a process that sleeps while it waits is handed the lock before anybody else', async () => {
    const [locks, others] = [makeLocks(store), makeLocks(other)];
    const held = await locks.acquire('k');
    const waiting = others.acquire('k', { wait: 60_000 });
    const stored = async (): Promise<Record<string, Buffer | null>> =>
      (
        await server.query<Record<string, Buffer | null>>(
          `SELECT queue, turn, owner FROM ${database}.distributed_lock_lease WHERE name = 'lock:{k}'`,
        )
      )[0] ?? {};
    await until('that it sleeps', async () => (await stored())['queue']?.includes('~') === false);
    await held.release();
    // Reserved for it, or granted to it.
    const { turn, owner } = await stored();
    expect(turn ?? owner).not.toBeNull();
    const next = await waiting;
    expect(next.fence).toBeGreaterThan(held.fence);
    await next.release();
  });
});
