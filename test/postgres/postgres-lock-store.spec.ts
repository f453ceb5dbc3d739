import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { jest } from '@jest/globals';
import type { Pool, PoolConfig } from 'pg';
import { LockConfigurationError, LockStoreError } from '../../lib/core/words/errors';
import { PostgresLockStore, type PostgresLockStoreOptions } from '../../lib/postgres/index';
import { MOST_FENCES } from '../../lib/core/seam/lock-store';
import { makeLocks } from '../support/make-locks';
import { noWarning } from '../support/no-warning';
import { patient } from '../support/patient';
import { connected, PostgresServer } from '../support/postgres-server';
import { refusalOf } from '../support/refusal-of';
import { until } from '../support/until';
import { saying } from '../support/saying';
import { newHold } from '../support/new-hold';

let server: PostgresServer;
let pool: Pool;
const opened: PostgresLockStore[] = [];
const blocking: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
beforeEach(async () => {
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
  pool = server.pool();
});
afterEach(async () => {
  await Promise.all(blocking.map((unlock) => unlock()));
  await Promise.all(opened.splice(0).map((store) => store.close()));
});
afterAll(() => server.stop());

async function open(config?: PoolConfig | Pool, options?: PostgresLockStoreOptions): Promise<PostgresLockStore> {
  const store = new PostgresLockStore(await connected(config && 'connect' in config ? config : server.pool(config)), options);
  await store.open({ prefix: 'lock', warn: (message) => noWarning(message, 'fsync is off') });
  opened.push(store);
  return store;
}

async function somebodyListens(): Promise<boolean> {
  const rows = await server.query(
    `SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid()
     AND (query LIKE 'LISTEN%' OR pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'))`,
  );
  return rows.length > 0;
}

/** Locks the row of a key, and returns what unlocks it. */
async function blockRow(key: string): Promise<() => Promise<void>> {
  const client = await server.pool().connect();
  client.on('error', () => undefined);
  await client.query(`BEGIN; SELECT FROM distributed_lock.lease WHERE key = 'lock:{${key}}' FOR UPDATE`);
  const unlock = async (): Promise<void> => {
    await client.query('COMMIT');
    client.release();
    blocking.splice(0);
  };
  blocking.push(unlock);
  return unlock;
}

describe('what is stored', () => {
  test('a lock is a row that stays when it is free, with its fence and without its owner', async () => {
    const store = await open();
    const locks = makeLocks(store);
    const fence = await locks.withLock('balance:42', { ttl: 7_000 }, async (lock) => {
      const [row] = await server.query('SELECT * FROM distributed_lock.lease');
      expect(row).toMatchObject({ key: 'lock:{balance:42}', fence: String(lock.fence), ttl_ms: '7000', holds: [expect.any(String)] });
      return lock.fence;
    });
    const [row] = await server.query('SELECT * FROM distributed_lock.lease');
    expect(row).toMatchObject({ key: 'lock:{balance:42}', owner: null, fence: String(fence), holds: null, processes: null });
    await server.query(`UPDATE distributed_lock.lease SET fence = fence + 1000000000000`);
    expect(await locks.withLock('balance:42', (lock) => lock.fence)).toBe(fence + 1_000_000_000_000 + MOST_FENCES);
  });

  test('who holds a lock may have any name, also in a renewal, beside others', async () => {
    const store = patient(await open());
    const holds = await Promise.all(
      ['a\0b', 'another'].map(async (by) => {
        const hold = newHold(`by ${by.length}`, { by });
        return { ...hold, fence: (await store.acquire(hold)).fence ?? 0 };
      }),
    );
    expect(await store.renew(holds)).toEqual([true, true]);
    expect((await store.inspect('by 3'))?.by).toBe('ab');
  });

  test('a key may hold any character, and no two keys share a row', async () => {
    const store = patient(await open());
    const keys = ['\0', '%00', '%', '%25', '%2500', 'a\0b', 'a%00b', `}'{"\\`, '%\0'.repeat(512)];
    const granted = await Promise.all(keys.map((key) => store.acquire(newHold(key, { ttlMs: 60_000 }))));
    expect(granted.map(({ fence = 0 }) => fence > 0)).toEqual(keys.map(() => true));
    const notified: string[] = [];
    store.onForced((key) => notified.push(key));
    await Promise.all(keys.map((key, at) => store.forceRelease(key, granted[at]?.fence ?? 0)));
    await until('that all were notified', () => notified.length === keys.length);
    expect(new Set(notified)).toEqual(new Set(keys));
  });

  test('a purge takes away what has been free for long, and the next fence is higher all the same', async () => {
    const store = await open();
    const old = await makeLocks(store).acquire('old');
    await old.release();
    await makeLocks(store).withLock('young', () => undefined);
    const held = await makeLocks(store).acquire('held');
    await server.query(`UPDATE distributed_lock.lease SET ends = ends - interval '2 minutes' WHERE key = 'lock:{old}'`);
    await server.query(
      `INSERT INTO distributed_lock.lease (key, ends) SELECT 'lock:{many ' || n || '}', 'epoch' FROM generate_series(1, 2500) AS n`,
    );
    await server.query(`INSERT INTO distributed_lock.lease (key, ends) VALUES ('other:{k}', 'epoch')`);
    expect(await store.purge({ olderThan: '1m' })).toBe(2_501);
    const left = await server.query<{ key: string }>('SELECT key FROM distributed_lock.lease ORDER BY key');
    expect(left.map(({ key }) => key)).toEqual(['lock:{held}', 'lock:{young}', 'other:{k}']);
    await makeLocks(store).withLock('old', (lock) => expect(lock.fence).toBeGreaterThan(old.fence));
    await held.release();
    await expect(store.purge({ olderThan: 10 })).rejects.toThrow('olderThan is 10, which is not a duration from 60000');
  });

  test('a purge takes an age that is longer than any timer', async () => {
    const store = await open();
    await server.query(
      `INSERT INTO distributed_lock.lease (key, ends) SELECT 'lock:{' || days || '}', now() - days * interval '1 day' FROM unnest(ARRAY[29, 31]) AS days`,
    );
    expect(await store.purge({ olderThan: '30d' })).toBe(1);
    expect(await server.query('SELECT key FROM distributed_lock.lease')).toEqual([{ key: 'lock:{29}' }]);
    expect(await store.purge({ olderThan: '100y' })).toBe(0);
    await expect(store.purge({ olderThan: '101y' })).rejects.toThrow(
      "olderThan is '101y', which is not a duration from 60000 to 3155760000000 ms",
    );
  });

  test('a purge takes an age that is no whole number of milliseconds', async () => {
    const store = await open();
    await server.query(`INSERT INTO distributed_lock.lease (key, ends) VALUES ('lock:{k}', 'epoch')`);
    expect(await store.purge({ olderThan: '1.1h' })).toBe(1);
  });
});

describe('done marks that have run out', () => {
  const later = globalThis.setTimeout;

  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Lets each run follow soon. */
  function hurry(): void {
    jest
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((act: () => void, ms: number) => later(act, ms === 15_000 ? 100 : ms)) as never);
  }

  /** The runs that would follow in a while. */
  function followingRuns(): (() => void)[] {
    const runs: (() => void)[] = [];
    const timerOf = (act: () => void): object => {
      const refresh = (): void => void runs.push(act);
      refresh();
      return { refresh, unref: () => timer };
    };
    let timer: object;
    jest
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((act: () => void, ms: number) => (ms === 15_000 ? (timer = timerOf(act)) : later(act, ms))) as never);
    return runs;
  }

  async function makeOld(count: number): Promise<void> {
    await server.query(
      `INSERT INTO distributed_lock.done SELECT gen_random_uuid(), 1, clock_timestamp() - interval '1 s' FROM generate_series(1, ${count})`,
    );
  }

  async function noneIsOld(): Promise<boolean> {
    return (await server.query('SELECT FROM distributed_lock.done WHERE ends < clock_timestamp()')).length === 0;
  }

  test('are all taken away, however many there are, and also where a lock is only ever exchanged', async () => {
    hurry();
    const store = patient(await open());
    const first = newHold('k');
    await store.acquire(first);
    await makeOld(2_500);
    await store.exchange(first, newHold('k'), { name: 'place' }, true);
    await until('that none is old', noneIsOld);
  });

  test('are taken away outside of the context of the call that made the first one', async () => {
    hurry();
    const own = server.pool();
    const store = await open(own, { listen: false });
    const context = new AsyncLocalStorage<string>();
    const contexts: (string | undefined)[] = [];
    const connect = own.connect.bind(own) as (...args: unknown[]) => void;
    jest.spyOn(own, 'connect').mockImplementation(((...args: unknown[]) => {
      contexts.push(context.getStore());
      return connect(...args);
    }) as never);
    await context.run('request', () => store.release(newHold('k')));
    await until('that it tidied', () => contexts.length > 1);
    expect(contexts.slice(0, 2)).toEqual([undefined, undefined]);
  });

  test('are taken away also where nobody releases any more', async () => {
    const runs = followingRuns();
    const store = patient(await open());
    await store.release(newHold('k'));
    await makeOld(1);
    runs.pop()?.();
    await until('that another run follows', () => runs.length === 1);
    expect(await noneIsOld()).toBe(true);
    // As the last ones do, which had not run out yet.
    await makeOld(1);
    runs.pop()?.();
    await until('that none is old any more', noneIsOld);
    expect(runs).toEqual([]);
  });

  test('are taken away also where the last run fails', async () => {
    const runs = followingRuns();
    const store = patient(await open());
    await store.release(newHold('k'));
    runs.pop()?.();
    await until('that another run follows', () => runs.length === 1);
    await makeOld(1);
    await server.query('ALTER SCHEMA distributed_lock RENAME TO away');
    runs.pop()?.();
    await until('that another run follows', () => runs.length === 1).finally(() =>
      server.query('ALTER SCHEMA away RENAME TO distributed_lock'),
    );
    runs.pop()?.();
    await until('that none is old any more', noneIsOld);
  });
});

describe('statements', () => {
  test('an acquire that its caller gave up, and that is carried out later, leaves nothing behind', async () => {
    const store = patient(await open());
    await makeLocks(store).withLock('k', () => undefined);
    const unlock = await blockRow('k');
    const late = newHold('k', { limitMs: 500 });
    // A busy machine may have no connection for it in time.
    await until('that it was sent', async () => {
      const error: unknown = await store.acquire(late).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'LOCK_STORE' });
      return (error as LockStoreError).unknown;
    });
    const released = store.release(late).catch(() => undefined);
    await sleep(100);
    await unlock();
    // It may have waited for too long itself.
    if ((await released) === undefined) {
      await store.release({ ...late, limitMs: 1_000 });
    }
    await until('that both are carried out', async () => (await store.inspect('k')) === null);
    expect((await store.acquire({ ...late, limitMs: 1_000 })).fence).toBeUndefined();
    expect(await store.inspect('k')).toBeNull();
  });

  test('a connection that waits for its reply is not given to the next statement, and is free again after a second', async () => {
    const store = await open({ max: 1 }, { listen: false });
    await makeLocks(store).withLock('k', () => undefined);
    await blockRow('k');
    await Promise.all([
      expect(store.acquire(newHold('k', { limitMs: 100 }))).rejects.toThrow(saying(/no reply within (100|\d\d) ms/)),
      expect(store.acquire(newHold('other', { limitMs: 200 }))).rejects.toThrow(
        saying(/all 1 of the pool have been in use for 200 ms; raise its max/),
      ),
    ]);
    await until('that it is free', () => store.inspect('other').then((found) => found === null).catch(() => false)); // prettier-ignore
  });

  test('a pool that is exhausted is named as such, and a call that gave up keeps no connection', async () => {
    const store = patient(await open(server.pool({ max: 2 }), { listen: false }));
    const busy = server.pool({ max: 2 });
    const other = patient(await open(busy, { listen: false }));
    const clients = await Promise.all([busy.connect(), busy.connect()]);
    const failed = await other.acquire(newHold('k', { limitMs: 200 })).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(LockStoreError);
    expect(failed).toMatchObject({ unknown: false, detail: expect.stringContaining('all 2 of the pool have been in use for 200 ms') });
    clients.forEach((client) => client.release());
    expect((await other.acquire(newHold('k'))).fence).toBeGreaterThan(0);
    await until('that both are idle', () => busy.idleCount === 2);
    expect((await store.inspect('k'))?.holds).toBe(1);
  });

  test('ten thousand statements that waited for a connection in vain hand it on, one after the other', async () => {
    const own = server.pool({ max: 1 });
    const store = await open(own, { listen: false });
    const client = await own.connect();
    const inVain = await Promise.allSettled(Array.from({ length: 10_000 }, () => store.inspect('k')));
    expect(inVain.every(({ status }) => status === 'rejected')).toBe(true);
    client.release();
    await until('that one is answered', () => store.inspect('k').then((found) => found === null).catch(() => false), 120_000); // prettier-ignore
    // A busy machine takes half a minute for them.
  }, 180_000);

  test('a connection that was given back within a transaction is not used, since nobody would see what is granted there', async () => {
    const own = server.pool({ max: 1 });
    const store = await open(own, { listen: false });
    const client = await own.connect();
    await client.query('BEGIN');
    client.release();
    await makeLocks(store).acquire('k');
    expect((await (await open(pool)).inspect('k'))?.holds).toBe(1);
  });

  test.each([['repeatable read'], ['serializable']])('%s as the default isolation level makes no difference', async (level) => {
    const config = { options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` };
    const stores = (await Promise.all([open(config), open(config)])).map(patient);
    for (let round = 0; round < 10; round++) {
      // Those that got in each other's way were refused by the server, and are sent again.
      const holds = Array.from({ length: 6 }, () => newHold(`k${round % 2}`));
      const replies = await Promise.all(holds.map((wanted, at) => (stores[at % 2] as PostgresLockStore).acquire(wanted)));
      expect(replies.filter(({ fence }) => fence !== undefined)).toHaveLength(1);
      const released = await Promise.all(holds.map((wanted, at) => (stores[at % 2] as PostgresLockStore).release(wanted)));
      expect(released).toEqual(replies.map(({ fence }) => fence !== undefined));
    }
  });

  test('the hold of another owner is neither released nor exchanged', async () => {
    const store = patient(await open());
    for (const key of ['one hold', 'two holds']) {
      const first = newHold(key);
      const held = { ...first, fence: (await store.acquire(first)).fence ?? 0 };
      await (key === 'two holds' && store.join({ ...held, id: randomUUID() }));
      const stranger = { ...held, owner: randomUUID() };
      const { released, reply } = await store.exchange(stranger, newHold(key), { name: 'place' }, true);
      expect([released, (await reply).fence]).toEqual([false, undefined]);
      await store.leave(key, 'place');
      expect(await store.release(stranger)).toBe(false);
      expect(await store.renew([held])).toEqual([true]);
    }
  });

  test('a release by another owner alone does not free the lock', async () => {
    const store = patient(await open());
    const first = newHold('k');
    const held = { ...first, fence: (await store.acquire(first)).fence ?? 0 };
    expect(await store.release({ ...held, owner: randomUUID() })).toBe(false);
    expect(await store.renew([held])).toEqual([true]);
    expect(await store.release(held)).toBe(true);
  });

  test('renewals of the same locks in opposite orders do not wait for each other for ever', async () => {
    const [one, two] = [patient(await open()), patient(await open())];
    const keys = Array.from({ length: 100 }, (_, at) => `k${at}`);
    const holds = await Promise.all(
      keys.map(async (key) => {
        const first = newHold(key, { ttlMs: 60_000 });
        return { ...first, fence: (await one.acquire(first)).fence ?? 0 };
      }),
    );
    const guests = holds.map((first) => ({ ...first, id: randomUUID() }));
    for (const guest of guests) {
      await two.join(guest);
    }
    for (let round = 0; round < 10; round++) {
      const renewed = await Promise.all([one.renew(holds), two.renew(guests.toReversed())]);
      // Of a row that was locked for long, it is unknown.
      expect(renewed.flat()).not.toContain(false);
    }
    const [{ deadlocks } = { deadlocks: '' }] = await server.query<{ deadlocks: string }>(
      'SELECT sum(deadlocks)::text AS deadlocks FROM pg_stat_database',
    );
    expect(deadlocks).toBe('0');
  });

  test('no owner and no hold shows in an error, though the server adds the row to it', async () => {
    const store = patient(await open());
    const wanted = newHold('k', { owner: 'secret-owner', id: 'secret-hold' });
    const granted = { ...wanted, fence: (await store.acquire(wanted)).fence ?? 0 };
    await server.query('ALTER TABLE distributed_lock.lease ADD CONSTRAINT nobody CHECK (fence < 0) NOT VALID');
    for (const call of [() => store.release(granted), () => store.join({ ...granted, id: 'secret-guest' })]) {
      const error = await call().catch((failure: unknown) => failure);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
      expect(inspect(error)).toContain('Lock "k": PostgreSQL failed: new row for relation "lease" violates check constraint "nobody"');
    }
    await server.query('ALTER TABLE distributed_lock.lease DROP CONSTRAINT nobody');
  });

  test('an acquire and its release are one statement each', async () => {
    const own = server.pool({ max: 1 });
    const store = await open(own, { listen: false });
    let sent = 0;
    own.on('acquire', () => sent++);
    for (let round = 0; round < 10; round++) {
      await makeLocks(store).withLock(`k${round}`, () => undefined);
    }
    expect(sent).toBe(20);
  });
});

describe('several databases', () => {
  test('a key has its place by its name and the order of the pools', async () => {
    for (const database of ['east', 'west']) {
      await server.query(`CREATE DATABASE ${database}`);
    }
    const [east, west] = ['east', 'west'].map((name) => server.pool({ connectionString: server.url.replace(/postgres$/, name) })) as [
      Pool,
      Pool,
    ];
    const store = patient(new PostgresLockStore([east, west]));
    await store.ensureSchema();
    opened.push(store);
    await store.open({ prefix: 'lock', warn: () => undefined });
    const keys = Array.from({ length: 40 }, (_, at) => `balance:${at}`);
    const holds = await Promise.all(
      keys.map(async (key) => {
        const first = newHold(key, { ttlMs: 60_000 });
        return { ...first, fence: (await store.acquire(first)).fence ?? 0 };
      }),
    );
    const namesIn = async (at: Pool): Promise<string[]> =>
      (await at.query<{ key: string }>("SELECT key FROM distributed_lock.lease WHERE key LIKE 'lock:{%'")).rows.map(({ key }) =>
        key.slice(6, -1),
      );
    const inWest = new Set(await namesIn(west));
    // By the first four bytes of the SHA-256: another place would be another lock.
    expect(
      keys
        .slice(0, 12)
        .map((key) => Number(inWest.has(key)))
        .join(''),
    ).toBe('011100000011');
    expect([...inWest, ...(await namesIn(east))].toSorted()).toEqual(keys.toSorted());

    await west.query('ALTER SCHEMA distributed_lock RENAME TO away');
    await west.end();
    expect(await store.renew(holds)).toEqual(keys.map((key) => (inWest.has(key) ? undefined : true)));
    const inEast = keys.find((key) => !inWest.has(key)) as string;
    expect((await store.inspect(inEast))?.holds).toBe(1);
    await expect(store.inspect([...inWest][0] as string)).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
    await expect(store.renew(holds.filter(({ key }) => inWest.has(key)))).rejects.toBeInstanceOf(LockStoreError);
  });
});

describe('configuration', () => {
  test.each([[undefined], [null], [{}], ['postgres://localhost'], [[]], [{ connect() {}, query() {} }]])(
    '%p is refused as a pool',
    (source) => {
      expect(() => new PostgresLockStore(source as never)).toThrow(LockConfigurationError);
    },
  );

  test('an address in the place of a pool, or too many of them, does not show its password', () => {
    const address = 'postgres://app:secret@localhost/app';
    expect(() => new PostgresLockStore(address as never)).toThrow('the pool is a string. Pass a Pool of pg');
    expect(() => new PostgresLockStore([pool, server.pool()], { listen: address })).toThrow('listen names a string for 2 pool(s)');
  });

  test('one pool given twice, and addresses for other pools than there are, are refused', () => {
    expect(() => new PostgresLockStore([pool, pool])).toThrow('a pool is in the list twice');
    expect(() => new PostgresLockStore([pool, server.pool()], { listen: server.url })).toThrow('for 2 pool(s)');
    expect(() => new PostgresLockStore(pool, { listen: [server.url, server.url] })).toThrow('for 1 pool(s)');
    expect(() => new PostgresLockStore(pool, { listen: 5432 as never })).toThrow('listen names 5432');
    expect(() => new PostgresLockStore(pool, null as never)).toThrow('the options are null');
    const bare = { connect() {}, query: async () => undefined, on() {}, removeListener() {}, options: {} };
    expect(() => new PostgresLockStore(bare)).toThrow('the pool has no Client');
    expect(new PostgresLockStore(bare, { listen: false }).expires).toBe(true);
  });

  test('a pool with a wrong password or database fails the start, and one whose server is away is worth a warning', async () => {
    const wrong = new PostgresLockStore(server.pool({ connectionString: server.url.replace(/postgres$/, 'nowhere') }));
    expect(await refusalOf(() => wrong.open({ prefix: 'lock', warn: () => undefined }))).toEqual(
      saying(/database "nowhere" does not exist.*Correct the user/),
    );
    const warnings: string[] = [];
    const away = new PostgresLockStore(server.pool({ connectionString: server.urlFor('postgres', 1) }));
    opened.push(away);
    await away.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    expect(warnings).toEqual([expect.stringMatching(/no connection: connect ECONNREFUSED.*Locked calls fail until then/)]);
  });

  test('a start that fails in one database leaves no listener in another one that is slow', async () => {
    await until('that nobody listens', async () => !(await somebodyListens()));
    const slow = server.pool();
    const listeners = slow.listenerCount('error');
    const blocker = await pool.connect();
    await blocker.query('BEGIN; LOCK TABLE distributed_lock.lease');
    const store = new PostgresLockStore([slow, server.pool({ connectionString: server.url.replace(/postgres$/, 'nowhere') })]);
    opened.push(store);
    expect(await refusalOf(() => store.open({ prefix: 'lock', warn: () => undefined }))).toEqual(
      saying('database "nowhere" does not exist'),
    );
    await blocker.query('COMMIT');
    blocker.release();
    await sleep(1_000);
    // The listening connection of a start which was repeated may still end.
    await until('that nobody listens', async () => !(await somebodyListens()));
    expect(slow.listenerCount('error')).toBe(listeners);
  });

  test('the pool is never closed, and none of its listeners stays', async () => {
    const before = pool.listenerCount('error');
    const store = await open(pool);
    await makeLocks(store).withLock('k', () => undefined);
    await store.close();
    expect(pool.listenerCount('error')).toBe(before);
    expect((await pool.query('SELECT 1')).rowCount).toBe(1);
    await until('that it listens no more', async () => !(await somebodyListens()));
    await store.open({ prefix: 'lock', warn: () => undefined });
    await makeLocks(store).withLock('k', () => undefined);
  });
});
