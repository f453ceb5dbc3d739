import type { LockService } from '../../lib/nest/lock.service';
import { PostgresLockStore, type PostgresLockStoreOptions, type PostgresPool } from '../../lib/postgres/index';
import { healthWith } from '../support/health-with';
import { makeLocks } from '../support/make-locks';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let server: PostgresServer;
let proxy: TcpProxy;
let stores: PostgresLockStore[];

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query('CREATE DATABASE other');
});
afterAll(() => server.stop());
beforeEach(async () => {
  stores = [];
  proxy = await TcpProxy.start(server.port);
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await proxy.stop();
});

const throughProxy = (): PostgresPool => server.pool({ connectionString: server.urlFor('postgres', proxy.port) });
const otherDatabase = (): PostgresPool => server.pool({ connectionString: server.url.replace(/postgres$/, 'other') });

/** It counts for connections from now on. */
async function setReadOnly(to: 'on' | 'off'): Promise<void> {
  await server.query(`ALTER DATABASE other SET default_transaction_read_only = ${to}`);
  await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'other'");
}

async function openLocks(pools: PostgresPool | PostgresPool[], options: PostgresLockStoreOptions = {}): Promise<LockService> {
  const store = new PostgresLockStore(pools, options);
  stores.push(store);
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  return makeLocks(store);
}

test('a database that is there answers all that is known of it', async () => {
  const locks = await openLocks(server.pool());
  const health = await healthWith(locks);
  expect(health).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    server: 'PostgreSQL',
    latencyMs: expect.any(Number),
    hearsTurns: true,
    clockSkewMs: expect.any(Number),
    heldHere: 0,
    waitingHere: 0,
  });
  // The server has the clock of this machine.
  expect(Math.abs(health.clockSkewMs as number)).toBeLessThan(60_000);
  expect(JSON.stringify(health)).not.toContain('127.0');
});

/** A database in which statements find these functions before PostgreSQL's own. */
async function posingAs(name: string, functions: string): Promise<PostgresPool> {
  await server.query(`CREATE DATABASE ${name}`);
  const pool = server.pool({ connectionString: server.url.replace(/postgres$/, name), options: '-c search_path=posing,pg_catalog' });
  await pool.query(`CREATE SCHEMA posing; ${functions}`);
  return pool;
}

test('a server that is compatible with PostgreSQL is named in the health and in a warning at the start, before it is found too little', async () => {
  const pool = await posingAs(
    'cockroach',
    `CREATE FUNCTION posing.version() RETURNS text LANGUAGE sql AS $$ SELECT 'CockroachDB CCL v25.2.22 (x86_64-pc-linux-gnu)' $$`,
  );
  const warnings: string[] = [];
  const store = new PostgresLockStore(pool);
  stores.push(store);
  const open = (): Promise<void> => store.open({ prefix: 'lock', warn: (text) => warnings.push(text) });
  await expect(open()).rejects.toThrow('has no locks in the schema');
  expect(warnings.filter((text) => text.startsWith('CockroachDB has no LISTEN and NOTIFY'))).toHaveLength(1);
  await store.ensureSchema();
  await open();
  expect(await makeLocks(store).operations.health()).toMatchObject({ reachable: true, server: 'CockroachDB' });
});

test('Aurora is known by its function, and is no warning', async () => {
  const pool = await posingAs('aurora', `CREATE FUNCTION posing.aurora_version() RETURNS text LANGUAGE sql AS $$ SELECT '15.4.1' $$`);
  const warnings: string[] = [];
  const store = new PostgresLockStore(pool);
  stores.push(store);
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: (text) => warnings.push(text) });
  expect(await makeLocks(store).operations.health()).toMatchObject({ server: 'Aurora' });
  expect(warnings.join()).not.toMatch(/Aurora|CockroachDB/);
});

test('a database that is gone is degraded at first, down when it has been gone for long, and up again', async () => {
  const locks = await openLocks(throughProxy());
  await healthWith(locks);
  proxy.mode = 'refuse';
  expect(await locks.operations.health({ downAfter: '10m' })).toMatchObject({ status: 'degraded', reachable: false });
  await until('down', async () => (await locks.operations.health({ downAfter: 300 })).status === 'down');
  proxy.mode = 'pass';
  expect(await healthWith(locks)).toMatchObject({ status: 'up', reachable: true, hearsTurns: true });
});

test('a database that answers nothing is found within a second or so', async () => {
  const locks = await openLocks(throughProxy());
  await healthWith(locks);
  proxy.mode = 'blackhole';
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reachable: false });
});

test('a process that hears no turns is degraded', async () => {
  const locks = await openLocks(throughProxy());
  await healthWith(locks);
  proxy.mode = 'deafen';
  expect(await healthWith(locks, 'polls')).toMatchObject({ status: 'degraded', reachable: true, hearsTurns: false });
});

test('a database that is read-only is down without a call, and up again with its next answer', async () => {
  const locks = await openLocks(otherDatabase());
  await healthWith(locks);
  await setReadOnly('on');
  try {
    expect(await healthWith(locks, 'readOnly')).toMatchObject({ reachable: true, refuses: 'readOnly' });
    expect(await locks.operations.health({ downAfter: '10m' })).toMatchObject({ status: 'degraded' });
    await until('down', async () => (await locks.operations.health({ downAfter: 300 })).status === 'down');
  } finally {
    await setReadOnly('off');
  }
  expect(await healthWith(locks)).toMatchObject({ status: 'up' });
});

test('a process that was told to poll is up, and nothing is said of turns', async () => {
  const health = await healthWith(await openLocks(server.pool(), { listen: false }));
  expect(health.status).toBe('up');
  expect(health).not.toHaveProperty('hearsTurns');
});

test('one of two databases that is away degrades it', async () => {
  const locks = await openLocks([throughProxy(), otherDatabase()]);
  expect(await healthWith(locks)).toMatchObject({ members: [{ reachable: true }, { reachable: true }] });
  proxy.mode = 'refuse';
  const health = await healthWith(locks, 'membersAway', 'polls');
  expect(health).toMatchObject({ status: 'degraded', reachable: true, members: [{ reachable: false }, { reachable: true }] });
});

test('one of two databases that is read-only degrades it', async () => {
  const locks = await openLocks([server.pool(), otherDatabase()]);
  await healthWith(locks);
  await setReadOnly('on');
  try {
    const members = JSON.stringify([{ reachable: true }, { reachable: true, refuses: 'readOnly' }]);
    await until('a database that is read-only', async () => JSON.stringify((await locks.operations.health()).members) === members);
    expect(await healthWith(locks, 'membersAway')).toMatchObject({ status: 'degraded' });
  } finally {
    await setReadOnly('off');
  }
  expect(await healthWith(locks)).toMatchObject({ status: 'up' });
});
