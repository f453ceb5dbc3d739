import { LockConfigurationError } from '../../lib/core/words/errors';
import { PostgresLockStore, schemaSql } from '../../lib/postgres/index';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';
import { connected, PostgresServer } from '../support/postgres-server';
import { saying } from '../support/saying';

let server: PostgresServer;
const opened: PostgresLockStore[] = [];

beforeAll(async () => {
  server = await PostgresServer.start();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await server.query('DROP SCHEMA IF EXISTS distributed_lock CASCADE');
});
afterAll(() => server.stop());

async function open(user = 'postgres', schema?: string): Promise<string[]> {
  const warnings: string[] = [];
  const store = new PostgresLockStore(await connected(server.pool({ connectionString: server.urlFor(user) })), { schema });
  opened.push(store);
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  return warnings;
}

test('ten processes may make the tables at once, again and again, and no lock is lost by it', async () => {
  const stores = Array.from({ length: 10 }, () => new PostgresLockStore(server.pool({ max: 2 })));
  opened.push(...stores);
  await Promise.all(stores.map((store) => store.ensureSchema()));
  await stores[0]?.open({ prefix: 'lock', warn: () => undefined });
  const lock = await makeLocks(stores[0] as PostgresLockStore).acquire('k', { ttl: 60_000 });
  await Promise.all(stores.map((store) => store.ensureSchema()));
  expect((await patient(stores[1] as PostgresLockStore).inspect('k'))?.fence).toBe(lock.fence);
  await lock.release();
});

test('without its tables, a store says how to make them, and opens once they are there', async () => {
  await expect(open()).rejects.toThrow(/no locks in the schema "distributed_lock".*ensureSchema\(\).*schemaSql\(\)/);
  await server.query(schemaSql());
  await open();
});

test('the SQL for migrations by hand may be run statement by statement', async () => {
  const psql = schemaSql({ schema: 'shop_locks' });
  expect(psql).toMatch(/^BEGIN;[^]*COMMIT;\n$/);
  expect(psql).not.toContain('SCHEMA.');
  await server.query(psql);
  await open('postgres', 'shop_locks');
  await server.query('DROP SCHEMA shop_locks CASCADE');
});

test('what is there already is left alone: it waits for no VACUUM, stops no lock and needs no right', async () => {
  await server.query(schemaSql());
  await server.query('CREATE ROLE guest LOGIN');
  await server.query('GRANT USAGE ON SCHEMA distributed_lock TO guest');
  const vacuum = await server.pool().connect();
  await vacuum.query('BEGIN; LOCK TABLE distributed_lock.lease, distributed_lock.done IN SHARE UPDATE EXCLUSIVE MODE');
  await new PostgresLockStore(server.pool({ connectionString: server.urlFor('guest') })).ensureSchema();
  await server.query(schemaSql());
  await vacuum.query('ROLLBACK');
  vacuum.release();
});

test('keys are ordered by bytes whatever the database does, and a table of row locks that is there already serves as it is', async () => {
  await server.query('CREATE SCHEMA distributed_lock; CREATE TABLE distributed_lock.row_lock (key text PRIMARY KEY)');
  const collations = (): Promise<{ name: string; collation: string }[]> =>
    server.query(
      `SELECT c.relname AS name, l.collname AS collation FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
         JOIN pg_collation AS l ON l.oid = a.attcollation
       WHERE c.relnamespace = 'distributed_lock'::regnamespace AND c.relkind = 'r' AND a.attname IN ('key', 'hold') ORDER BY name`,
    );
  const others = ['done', 'lease'].map((name) => ({ name, collation: 'C' }));
  const shared = { name: 'shared', collation: 'C' };
  await server.query(schemaSql());
  expect(await collations()).toEqual([...others, { name: 'row_lock', collation: 'default' }, shared]);
  await server.query("BEGIN; SELECT distributed_lock.lock_rows(ARRAY['b', 'a'], 1000); COMMIT");
  await server.query('DROP TABLE distributed_lock.row_lock');
  await server.query(schemaSql());
  expect(await collations()).toEqual([...others, { name: 'row_lock', collation: 'C' }, shared]);
});

test('functions of the user with names of the server do not get in between', async () => {
  await server.query(
    `CREATE FUNCTION public.array_remove(anyarray, anyelement) RETURNS anyarray LANGUAGE sql AS 'SELECT ARRAY(SELECT x FROM unnest($1) AS x)'`,
  );
  try {
    await server.query(schemaSql());
    await open();
    const store = patient(opened.at(-1) as PostgresLockStore);
    const [first, next] = [newHold('k'), newHold('k')];
    await store.acquire(first);
    expect(await store.acquire(next, { name: 'place' })).toMatchObject({ holder: { by: 'tester' } });
    expect(await store.release(first)).toBe(true);
    expect((await store.acquire(next, { name: 'place' })).fence).toBeGreaterThan(0);
  } finally {
    await server.query('DROP FUNCTION public.array_remove(anyarray, anyelement)');
  }
});

test('functions of the same version that were made by another source are made anew, and so is a table that is gone', async () => {
  await server.query(schemaSql());
  const store = new PostgresLockStore(server.pool());
  await server.query('CREATE OR REPLACE FUNCTION distributed_lock.is_done(_hold text) RETURNS boolean LANGUAGE sql AS $$SELECT true$$');
  await server.query("CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 1 -- another'");
  await store.ensureSchema();
  expect(await server.query("SELECT distributed_lock.is_done('none') AS done")).toEqual([{ done: false }]);
  await server.query('DROP TABLE distributed_lock.row_lock');
  await store.ensureSchema();
  expect(await server.query('SELECT FROM distributed_lock.row_lock')).toEqual([]);
});

test('functions of the same version that a later source has made are left alone', async () => {
  await server.query(schemaSql());
  const [made] = await server.query<{ source: string }>(
    "SELECT prosrc AS source FROM pg_proc WHERE oid = to_regprocedure('distributed_lock.version()')",
  );
  const later = (made?.source ?? '').replace(/revision (\d+), \w+/, (_, revision: string) => `revision ${Number(revision) + 1}, another`);
  expect(later).toContain('another');
  await server.query('CREATE OR REPLACE FUNCTION distributed_lock.is_done(_hold text) RETURNS boolean LANGUAGE sql AS $$SELECT true$$');
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS '${later}'`);
  await new PostgresLockStore(server.pool()).ensureSchema();
  expect(await server.query("SELECT distributed_lock.is_done('none') AS done")).toEqual([{ done: true }]);
  // One that an earlier source has made is not.
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 1 -- revision 0, another'`);
  await new PostgresLockStore(server.pool()).ensureSchema();
  expect(await server.query("SELECT distributed_lock.is_done('none') AS done")).toEqual([{ done: false }]);
});

test('a schema from before keys were shared gets what is new, keeps its locks, and sessions that are open go on', async () => {
  await server.query(schemaSql());
  const pool = server.pool({ max: 1 });
  const store = patient(new PostgresLockStore(pool, { listen: false }));
  opened.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  const held = newHold('k', { ttlMs: 60_000 });
  const { fence = 0 } = await store.acquire(held);
  await server.query('DROP TABLE distributed_lock.shared');
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 1 -- revision 5, another'`);
  await store.ensureSchema();
  expect(await store.renew([{ ...held, fence }])).toEqual([true]);
  expect((await store.acquire(newHold('k', { shares: 'read' }))).fence).toBeUndefined();
  expect(await store.release(held)).toBe(true);
  expect((await store.acquire(newHold('k', { shares: 'read' }))).fence).toBeGreaterThan(fence);
});

test('functions of the same version that have another name now are dropped, and those of the user are not', async () => {
  const functionsOf = async (schema: string): Promise<string[]> => {
    const rows = await server.query<{ name: string }>(
      'SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = $1::regnamespace ORDER BY name',
      [schema],
    );
    return rows.map(({ name }) => name);
  };
  await server.query(schemaSql());
  const ours = await functionsOf('distributed_lock');
  const attempt = 'text, text, text, text, bigint, text, text, boolean';
  for (const former of [
    `pass(${attempt}, text, boolean, bigint)`,
    'let_go(distributed_lock.lease, text)',
    'tell(text, text)',
    'release(text, text)',
    'release(text, text, text)',
    'take_out(distributed_lock.lease, text, text)',
    'renew(text[], text[], bigint[], text[], bigint[], boolean[], bigint)',
    'contend(distributed_lock.lease, text, text, text, bigint, text, text, boolean, bigint)',
  ]) {
    await server.query(`CREATE FUNCTION distributed_lock.${former} RETURNS int LANGUAGE sql AS 'SELECT 1'`);
  }
  await server.query(`CREATE FUNCTION distributed_lock.pass(int) RETURNS int LANGUAGE sql AS 'SELECT 1'`);
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 1 -- another'`);
  await new PostgresLockStore(server.pool()).ensureSchema();
  expect(await functionsOf('distributed_lock')).toEqual([...ours, 'distributed_lock.pass(integer)'].toSorted());
});

test('sessions that are read-only by default fail the start', async () => {
  await server.query(schemaSql());
  const store = new PostgresLockStore(await connected(server.pool({ options: '-c default_transaction_read_only=on' })));
  const opening = store.open({ prefix: 'lock', warn: () => undefined });
  await expect(opening).rejects.toThrow('default_transaction_read_only is on. Set it to off for the user, the database or the pool');
  await expect(opening).rejects.toBeInstanceOf(LockConfigurationError);
});

test('databases in another order than in another process fail the start, and so does one of them alone', async () => {
  await server.query('CREATE DATABASE first');
  await server.query('CREATE DATABASE second');
  const pools = ['first', 'second'].map((name) => server.pool({ connectionString: server.url.replace(/postgres$/, name) }));
  const openAll = async (list: typeof pools, prefix = 'lock'): Promise<void> => {
    const store = new PostgresLockStore(list);
    opened.push(store);
    await store.open({ prefix, warn: () => undefined });
  };
  await new PostgresLockStore(pools).ensureSchema();
  await openAll(pools);
  await openAll(pools);
  const opening = openAll(pools.toReversed());
  await expect(opening).rejects.toThrow(/pool \d of 2 leads to a database that other processes know as \d of 2/);
  await expect(opening).rejects.toBeInstanceOf(LockConfigurationError);
  await expect(openAll(pools.slice(0, 1))).rejects.toThrow('pool 1 of 1 leads to a database that other processes know as 1 of 2');
  // Other locks.
  await openAll(pools.toReversed(), 'other');
  const [, cure] = /then run (DELETE .*) in each of them/.exec(String(await opening.catch((error: unknown) => error))) ?? [];
  await Promise.all(pools.map((pool) => pool.query(cure as string)));
  await openAll(pools.toReversed());
});

test('tables of another version are refused, and those of a later one are not touched', async () => {
  await server.query(schemaSql());
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 0'`);
  await expect(open()).rejects.toThrow('has version 0, and this library needs 1. Call ensureSchema()');
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 2'`);
  await expect(open()).rejects.toThrow('has version 2, and this library needs 1. Use the later version');
  const store = new PostgresLockStore(server.pool());
  await expect(store.ensureSchema()).rejects.toThrow(saying('has version 2, and this library knows 1'));
  await expect(store.ensureSchema()).rejects.toBeInstanceOf(LockConfigurationError);
  await server.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 0'`);
  await store.ensureSchema();
  await open();
});

test('a user without the rights gets an error that names them, and needs no more than the documented rights', async () => {
  await server.query(schemaSql());
  await server.query('CREATE ROLE app LOGIN');
  await expect(open('app')).rejects.toThrow(LockConfigurationError);
  await server.query('GRANT USAGE ON SCHEMA distributed_lock TO app');
  await server.query('GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA distributed_lock TO app');
  await expect(open('app')).rejects.toThrow(/the user lacks DELETE on (lease|done), DELETE on (lease|done)/);
  await server.query('GRANT DELETE ON ALL TABLES IN SCHEMA distributed_lock TO app');
  expect(await open('app')).toEqual([expect.stringContaining('fsync is off')]);
  const store = opened.at(-1) as PostgresLockStore;
  await makeLocks(store).withLock('k', () => undefined);
  expect(await store.purge({ olderThan: '1m' })).toBe(0);
  const denied = await new PostgresLockStore(server.pool({ connectionString: server.urlFor('app') }), { schema: 'other' })
    .ensureSchema()
    .catch((error: Error) => error);
  expect(denied).toBeInstanceOf(LockConfigurationError);
});

test.each([['Locks'], ['pg_locks'], ['a b'], [''], ['a"; DROP TABLE lease'], [42]])('%p is refused as a schema', (schema) => {
  expect(() => schemaSql({ schema: schema as string })).toThrow(LockConfigurationError);
});

test('a standby, and settings that may lose a lock, are worth a warning', async () => {
  await server.query(schemaSql());
  expect(await open()).toEqual([expect.stringContaining('may lose locks in a crash: fsync is off')]);
  const standby = await server.startStandby();
  const store = new PostgresLockStore(await connected(standby.pool({ options: '-c synchronous_commit=off' })));
  const warnings: string[] = [];
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  expect(warnings).toEqual([expect.stringContaining('read-only standby'), expect.stringContaining('fsync and synchronous_commit is off')]);
  await expect(makeLocks(store).acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  await store.close();
  await standby.stop();
});
