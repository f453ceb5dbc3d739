import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { Pool, PoolClient } from 'pg';
import { LockConfigurationError, type LockStoreError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import type { PostgresLockStoreOptions } from '../../lib/postgres/postgres-lock-store.options';
import { makeLocks } from '../support/make-locks';
import { connected, PostgresServer } from '../support/postgres-server';
import { freePort } from '../support/redis-server';
import { refusalOf } from '../support/refusal-of';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { saying } from '../support/saying';
import { newHold } from '../support/new-hold';

let server: PostgresServer;
let stores: PostgresLockStore[];
let warnings: string[];

beforeAll(async () => {
  server = await PostgresServer.start('fsync=on');
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterAll(() => server.stop());

beforeEach(() => {
  stores = [];
  warnings = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});

async function openLocks(pools: Pool | readonly Pool[], options: PostgresLockStoreOptions = {}): Promise<LockService> {
  const store = new PostgresLockStore(pools, options);
  stores.push(store);
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  return makeLocks(store);
}

describe('several databases, of which one is away', () => {
  let second: PostgresServer;
  let locks: LockService;
  const KEYS = Array.from({ length: 12 }, (_, at) => `key ${at}`);

  beforeEach(async () => {
    second = await PostgresServer.start('fsync=on');
    const pools = [server.pool(), second.pool({ connectionTimeoutMillis: 1_000 })];
    await new PostgresLockStore(pools).ensureSchema();
    locks = await openLocks(pools);
  });
  afterEach(() => second.stop());

  /** The keys that live in the second database. */
  async function keysOfSecond(): Promise<string[]> {
    const rows = await second.query<{ key: string }>('SELECT key FROM distributed_lock.lease');
    return KEYS.filter((key) => rows.some((row) => row.key.includes(`{${key}}`)));
  }

  test('only its own keys are unavailable, and only its own leases run out', async () => {
    const held = await Promise.all(KEYS.map((key) => locks.acquire(key, { ttl: 4_000 })));
    const away = await keysOfSecond();
    expect(away.length).toBeGreaterThan(0);
    expect(away.length).toBeLessThan(KEYS.length);
    second.pause();
    await until('that its leases have run out', () => KEYS.every((key, at) => !away.includes(key) || !held[at]?.isHeld()));
    await sleep(1_000);
    expect(KEYS.filter((_, at) => !held[at]?.isHeld())).toEqual(away);
    const available = KEYS.find((key) => !away.includes(key)) as string;
    const [first] = held.splice(KEYS.indexOf(available), 1);
    await first?.release();
    expect(await locks.withLock(available, { wait: 0 }, () => 'here')).toBe('here');
    await expect(locks.withLock(away[0] as string, { wait: 0 }, () => undefined)).rejects.toMatchObject({ code: 'LOCK_STORE' });
    second.resume();
    expect(await locks.withLock(away[0] as string, { wait: 10_000 }, () => 'again')).toBe('again');
    await Promise.all(held.map((lock) => lock.release()));
  });

  test('short leases outlive that long ones of it cannot be renewed', async () => {
    await Promise.all(KEYS.map((key) => locks.withLock(key, () => undefined)));
    const away = await keysOfSecond();
    const here = KEYS.filter((key) => !away.includes(key));
    const short = await Promise.all(here.map((key) => locks.acquire(key, { ttl: 1_200 })));
    const long = await Promise.all(away.map((key) => locks.acquire(key, { ttl: 10_000 })));
    second.pause();
    await sleep(7_000);
    expect(short.filter((lock) => !lock.isHeld())).toEqual([]);
    expect(long.filter((lock) => !lock.isHeld())).toEqual([]);
    second.resume();
    await Promise.all([...short, ...long].map((lock) => lock.release()));
  });

  test('a list of keys is refused whole, and what was acquired in the other one is released', async () => {
    await Promise.all(KEYS.map((key) => locks.withLock(key, () => undefined)));
    await second.kill();
    await expect(locks.acquire(KEYS, { wait: 500 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
    await until('that nothing is left', async () => {
      const left = await server.query('SELECT FROM distributed_lock.lease WHERE ends > clock_timestamp()');
      return left.length === 0;
    });
  });
});

describe('a server that was away at the start', () => {
  let away: PostgresServer;
  let pools: Pool[];

  beforeAll(async () => {
    away = await PostgresServer.start();
    await away.query('CREATE DATABASE other');
    pools = [away.pool(), away.pool({ connectionString: away.url.replace(/postgres$/, 'other') })];
    await new PostgresLockStore(pools).ensureSchema();
  });
  beforeEach(async () => {
    await Promise.all(pools.map((pool) => pool.query('TRUNCATE distributed_lock.lease')));
  });
  afterAll(() => away.stop());

  /** The locks of a process that starts while the server is away, which is back when it has started. */
  async function openBefore(list: readonly Pool[]): Promise<LockService> {
    await away.kill();
    const locks = await openLocks(list, { listen: false });
    await away.start();
    return locks;
  }

  test('grants nothing where its databases are in another order than elsewhere', async () => {
    await openLocks(pools, { listen: false });
    warnings = [];
    const locks = await openBefore(pools.toReversed());
    expect(warnings).toEqual(pools.map(() => expect.stringContaining('Locked calls fail until then.')));
    const acquiring = locks.acquire('k', { wait: 0 });
    await expect(acquiring).rejects.toThrow(saying(/pool \d of 2 leads to a database that other processes know as \d of 2/));
    await expect(acquiring).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(locks.operations.inspect('k')).rejects.toBeInstanceOf(LockConfigurationError);
  });

  test('grants nothing with the schema of another version, until that is mended', async () => {
    const [first] = pools as [Pool];
    await first.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 0'`);
    const locks = await openBefore([first]);
    const acquiring = locks.acquire('k', { wait: 0 });
    await expect(acquiring).rejects.toThrow(saying('has version 0, and this library needs 1. Call ensureSchema()'));
    await expect(acquiring).rejects.toBeInstanceOf(LockConfigurationError);
    await first.query(`CREATE OR REPLACE FUNCTION distributed_lock.version() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
    expect(await locks.withLock('k', { wait: 0 }, () => 'ran')).toBe('ran');
  });

  test('is checked once, and works as any other', async () => {
    const locks = await openBefore(pools);
    const keys = Array.from({ length: 12 }, (_, at) => `key ${at}`);
    const lockAll = async (): Promise<void> => {
      for (const key of keys) {
        await locks.withLock(key, { wait: 0 }, () => undefined);
      }
    };
    await lockAll();
    const numbers = await Promise.all(
      pools.map((pool) => pool.query("SELECT holder FROM distributed_lock.lease WHERE key = 'lock:database'")),
    );
    expect(numbers.map(({ rows }) => rows as unknown)).toEqual([[{ holder: '1 of 2' }], [{ holder: '2 of 2' }]]);
    let sent = 0;
    pools.forEach((pool) => pool.on('acquire', () => sent++));
    await lockAll();
    expect(sent).toBe(24);
  });
});

describe('a pool whose connections are all in use', () => {
  test('fails a call within its limit and says so; a call that waits has the lock when there is one', async () => {
    const pool = server.pool({ max: 2 });
    const locks = await openLocks(pool);
    const taken = [await pool.connect(), await pool.connect()];
    const startedAt = performance.now();
    await expect(locks.acquire('k', { wait: 0 })).rejects.toThrow(saying(/all 2 of the pool have been in use for \d+ ms; raise its max/));
    // A second, and what a busy machine takes. Nothing else would end the wait.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const waiting = locks.withLock('k', { wait: 10_000 }, () => 'ran');
    await sleep(1_500);
    taken.forEach((client) => client.release());
    expect(await waiting).toBe('ran');
    await until('that all connections are back', () => pool.idleCount === pool.totalCount && pool.waitingCount === 0);
  });

  test('because each caller holds one in a transaction of its own does not lose the lock that they have', async () => {
    const pool = server.pool({ max: 3 });
    const locks = await openLocks(pool);
    await locks.withLock('k', { ttl: 4_000 }, async (lock) => {
      const taken: PoolClient[] = [await pool.connect(), await pool.connect()];
      await sleep(4_500);
      expect(lock.isHeld()).toBe(true);
      taken.forEach((client) => client.release());
    });
  });
});

/** Gives a connection back to its pool without waiting for what was sent on it. */
async function giveBack(pool: Pool, ...sent: readonly string[]): Promise<void> {
  const client = await pool.connect();
  sent.forEach((sql) => void client.query(sql).catch(() => undefined));
  client.release();
}

describe('a connection of the pool', () => {
  test('that was given back in the middle of a transaction is not used: nobody else would see the lock', async () => {
    const pool = server.pool({ max: 1 });
    const locks = await openLocks(pool);
    const others = await openLocks(server.pool());
    const client = await pool.connect();
    await client.query('BEGIN');
    client.release();
    const lock = await locks.acquire('k');
    expect(await others.operations.inspect('k')).toMatchObject({ fence: lock.fence });
    await lock.release();
  });

  test('that was given back before its BEGIN was answered is not used either', async () => {
    const pool = await connected(server.pool({ max: 1 }));
    const locks = await openLocks(pool);
    const others = await openLocks(server.pool());
    await giveBack(pool, 'BEGIN');
    const lock = await locks.acquire('k');
    expect(await others.operations.inspect('k')).toMatchObject({ fence: lock.fence });
    await lock.release();
  });

  test('that was given back in a transaction that fails is not used either', async () => {
    const pool = await connected(server.pool({ max: 1 }));
    await openLocks(pool);
    await giveBack(pool, 'BEGIN', 'SELECT 1 / 0');
    // The store by itself: a call would ask once more.
    const [store] = stores as [PostgresLockStore];
    expect(await store.acquire(newHold('k', { ttlMs: 60_000, limitMs: 20_000 }))).toHaveProperty('fence');
  });

  test('that was given back before its BEGIN was answered does not go back once nobody waits for the lock', async () => {
    const pool = await connected(server.pool({ max: 1 }));
    await openLocks(pool);
    const client = await server.pool().connect();
    await client.query('BEGIN; LOCK TABLE distributed_lock.lease IN SHARE MODE');
    await giveBack(pool, 'BEGIN');
    const late = await (stores.at(-1) as PostgresLockStore).acquire(newHold('k', { limitMs: 75 })).catch((error: LockStoreError) => error);
    expect(late).toMatchObject({ code: 'LOCK_STORE', unknown: true });
    await client.query('COMMIT');
    client.release();
    const next = await pool.connect();
    expect(next.getTransactionStatus()).toBe('I');
    next.release();
    await until(
      'that it is free',
      async () => (await server.query('SELECT FROM distributed_lock.lease WHERE owner IS NOT NULL')).length === 0,
    );
  });

  test('that was given back before its COMMIT was answered commits', async () => {
    const pool = await connected(server.pool({ max: 1 }));
    const locks = await openLocks(pool);
    const client = await pool.connect();
    await client.query('BEGIN');
    const committed = client.query('COMMIT').then(
      ({ command }) => command,
      (error: Error) => error.message,
    );
    client.release();
    await (await locks.acquire('k')).release();
    expect(await committed).toBe('COMMIT');
  });

  test('that was given back in a transaction that goes on is ended', async () => {
    const pool = await connected(server.pool({ max: 1 }));
    const locks = await openLocks(pool);
    const client = await pool.connect();
    await client.query('BEGIN');
    client.query('SELECT pg_sleep(60)').catch(() => undefined);
    client.release();
    await (await locks.acquire('k', { wait: 30_000 })).release();
  });

  test.each(['repeatable read', 'serializable'])('whose sessions are %s by default excludes, and loses no call', async (level) => {
    const services = await Promise.all(
      [1, 2, 3].map(() => openLocks(server.pool({ max: 4, options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` }))),
    );
    let running = 0;
    const calls = services.flatMap((locks) =>
      Array.from({ length: 15 }, () =>
        locks.withLock('k', { wait: 20_000 }, async () => {
          expect(++running).toBe(1);
          await sleep(2);
          running--;
        }),
      ),
    );
    await Promise.all(calls);
  });

  test('that cannot be made for now does not stay in the way: once the network is back, calls go on', async () => {
    const proxy = await TcpProxy.start(server.port);
    const pool = server.pool({ connectionString: server.urlFor('postgres', proxy.port), max: 4, connectionTimeoutMillis: 1_000 });
    const locks = await openLocks(pool);
    proxy.mode = 'blackhole';
    await Promise.allSettled(Array.from({ length: 12 }, (_, at) => locks.acquire(`k ${at}`, { wait: 2_000 })));
    proxy.mode = 'pass';
    expect(await locks.withLock('k', { wait: 5_000 }, () => 'ran')).toBe('ran');
    await stores[0]?.close();
    await proxy.stop();
  });
});

test('a pool that would wait for ever for the connections it makes is warned of', async () => {
  await openLocks(server.pool({ connectionTimeoutMillis: 0 }));
  expect(warnings).toEqual([expect.stringMatching(/connectionTimeoutMillis is 0.*Set it, to 5000 for example/)]);
});

describe('a standby', () => {
  test('is warned of, refuses locks, and has them once it is promoted, with higher fences', async () => {
    const primary = await PostgresServer.start('fsync=on');
    await new PostgresLockStore(primary.pool()).ensureSchema();
    const first = await (await openLocks(primary.pool())).acquire('k', { ttl: '1m' });
    const standby = await primary.startStandby('fsync=on');
    const locks = await openLocks(standby.pool());
    expect(warnings).toEqual([expect.stringMatching(/read-only standby.*make sure that the pool leads to the primary/)]);
    const refusal = (await locks.acquire('other', { wait: 0 }).catch((error: unknown) => error)) as LockStoreError;
    expect(refusal).toMatchObject({ code: 'LOCK_STORE', unknown: false });
    expect(refusal.detail).toMatch(/read-only transaction|during recovery/);
    await primary.kill();
    const waiting = locks.withLock('other', { wait: 15_000 }, ({ fence }) => fence);
    await standby.query('SELECT pg_promote()');
    expect(await waiting).toBeGreaterThan(first.fence);
    // The lock that was held came along.
    expect(await locks.operations.inspect('k')).toMatchObject({ fence: first.fence });
    await stores[0]?.close();
    await primary.stop();
    await stores[1]?.close();
    await standby.stop();
  });
});

test('a connection to a standby is not used again: another one may lead to the new primary', async () => {
  const standby = await server.startStandby();
  const proxy = await TcpProxy.start(standby.port);
  const pool = server.pool({ connectionString: server.urlFor('postgres', proxy.port), max: 1, idleTimeoutMillis: 0 });
  await openLocks(await connected(pool), { listen: false });
  const store = stores.at(-1) as PostgresLockStore;
  const outcome = (): Promise<string> =>
    store.acquire(newHold('k')).then(
      () => 'granted',
      (error: LockStoreError) => error.detail,
    );
  await until('that it refuses', async () => (await outcome()).includes('read-only transaction'));
  proxy.target = server.port;
  await until('that it grants', async () => (await outcome()) === 'granted');
  await store.close();
  await proxy.stop();
  await standby.stop();
});

describe('a server that refuses', () => {
  test('the smallest rights are enough for every operation', async () => {
    await server.query('CREATE ROLE clerk LOGIN');
    await server.query('GRANT USAGE ON SCHEMA distributed_lock TO clerk');
    await server.query('GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock.lease, distributed_lock.done TO clerk');
    const locks = await openLocks(server.pool({ connectionString: server.urlFor('clerk') }));
    const call = locks.withLock('k', async (lock) => {
      await locks.withLock('k', { ticket: lock.makeTicket() }, () => undefined);
      const queued = locks.withLock('k', { reentry: 'never', wait: 50 }, () => undefined);
      await expect(queued).rejects.toMatchObject({ reason: 'busy' });
      expect(await locks.operations.inspect('k')).toMatchObject({ fence: lock.fence });
      await locks.operations.forceRelease('k', { fence: lock.fence });
      await until('that it was notified', () => lock.signal.aborted);
    });
    await expect(call).rejects.toMatchObject({ reason: 'forced' });
    await stores[0]?.purge({ olderThan: '1m' });
    expect(warnings).toEqual([]);
  });

  test.each(['SELECT', 'INSERT', 'UPDATE', 'DELETE'])('without %s the start fails with an error that names it', async (right) => {
    const role = `without_${right.toLowerCase()}`;
    await server.query(`CREATE ROLE ${role} LOGIN`);
    await server.query(`GRANT USAGE ON SCHEMA distributed_lock TO ${role}`);
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock.lease, distributed_lock.done TO ${role}`);
    await server.query(`REVOKE ${right} ON distributed_lock.lease FROM ${role}`);
    const refusal = await refusalOf(() => openLocks(server.pool({ connectionString: server.urlFor(role) })));
    expect(refusal).toBeInstanceOf(LockConfigurationError);
    expect(refusal.message).toMatch(new RegExp(`lacks ${right} on lease`));
  });

  test('rows that a policy hides is an error at once that names the policy, and no statement goes on', async () => {
    await server.query('CREATE ROLE tenant LOGIN');
    await server.query('GRANT USAGE ON SCHEMA distributed_lock TO tenant');
    await server.query('GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock.lease, distributed_lock.done TO tenant');
    await openLocks(server.pool({ connectionString: server.urlFor('tenant') }));
    const [store] = stores as [PostgresLockStore];
    const held = newHold('k');
    await store.acquire(held);
    await server.query('CREATE POLICY own_rows ON distributed_lock.lease USING (false) WITH CHECK (true)');
    await server.query('ALTER TABLE distributed_lock.lease ENABLE ROW LEVEL SECURITY');
    try {
      for (const call of [() => store.acquire(newHold('k')), () => store.release(held), () => store.forceRelease('k', 1)]) {
        const refusal = await refusalOf(call);
        expect(refusal).toBeInstanceOf(LockConfigurationError);
        expect((refusal as LockConfigurationError).detail).toMatch(
          // The server itself refuses the row that an acquire would make, and names no policy.
          /(hides the row .*: own_rows|new row violates row-level security policy .*)\. Let the policies .* or give it BYPASSRLS/,
        );
      }
      // A server calls a statement active for a moment after its answer.
      await until('that no statement runs', async () => {
        const busy = await server.query("SELECT FROM pg_stat_activity WHERE usename = 'tenant' AND state = 'active'");
        return busy.length === 0;
      });
    } finally {
      await server.query('DROP POLICY own_rows ON distributed_lock.lease');
      await server.query('ALTER TABLE distributed_lock.lease DISABLE ROW LEVEL SECURITY');
    }
  });

  test('a login for a while keeps a lock no longer than that: its release is repeated', async () => {
    await server.query('CREATE ROLE visitor LOGIN SUPERUSER');
    const locks = await openLocks(await connected(server.pool({ connectionString: server.urlFor('visitor') })), { listen: false });
    const lock = await locks.acquire('k', { ttl: '1h' });
    await server.query('ALTER ROLE visitor NOLOGIN');
    await server.terminateBackends(`usename = 'visitor'`);
    await lock.release().catch(() => undefined);
    const refusal = (await locks.acquire('other', { wait: 0 }).catch((error: unknown) => error)) as LockStoreError;
    expect(refusal.detail).toMatch(/there is no connection: .*visitor.*Correct the user, password and database of the pool/);
    expect(refusal).toMatchObject({ code: 'LOCK_STORE', unknown: false });
    await server.query('ALTER ROLE visitor LOGIN');
    await until('that it is released', async () => {
      return (await server.query('SELECT FROM distributed_lock.lease WHERE owner IS NOT NULL')).length === 0;
    });
  });

  test('a database without the tables fails the start with what to call', async () => {
    await server.query('CREATE DATABASE empty');
    const opening = openLocks(server.pool({ connectionString: server.url.replace(/postgres$/, 'empty') }));
    await expect(opening).rejects.toThrow(/Call ensureSchema\(\) of the store, or run what schemaSql\(\) returns/);
  });

  test('a server that is away at the start is a warning, and its password shows nowhere', async () => {
    const url = `postgres://clerk:secret-password@127.0.0.1:${await freePort()}/postgres`;
    const locks = await openLocks(server.pool({ connectionString: url }));
    expect(warnings).toEqual([expect.stringMatching(/connect ECONNREFUSED.*Locked calls fail until then/)]);
    const error: unknown = await locks.acquire('k', { wait: 0 }).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ code: 'LOCK_STORE', key: 'k', status: 503 });
    expect(inspect([error, warnings, stores], { depth: 12, showHidden: true })).not.toContain('secret-password');
  });

  test('an error shows neither owners nor holds', async () => {
    const locks = await openLocks(server.pool());
    const lock = await locks.acquire('k');
    const [row] = await server.query<{ owner: string; holds: string[] }>('SELECT owner, holds FROM distributed_lock.lease');
    await server.query('ALTER TABLE distributed_lock.done ADD CONSTRAINT refused CHECK (false) NOT VALID');
    const errors: unknown[] = [];
    const store = stores[0] as PostgresLockStore;
    const hold = newHold('k', { owner: row?.owner as string, id: row?.holds[0] as string, fence: lock.fence });
    await store.release(hold).catch((error: unknown) => errors.push(error));
    await server.query('ALTER TABLE distributed_lock.done DROP CONSTRAINT refused');
    expect(errors).toHaveLength(1);
    const shown = inspect(errors, { depth: 12, showHidden: true });
    expect(shown).not.toContain(hold.owner);
    expect(shown).not.toContain(hold.id);
    await lock.release();
  });
});
