import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, isDeepStrictEqual } from 'node:util';
import { jest } from '@jest/globals';
import type { Pool, PoolOptions } from 'mysql2';
import { LockConfigurationError, LockStoreError } from '../../lib/core/words/errors';
import { MOST_FENCES } from '../../lib/core/seam/lock-store';
import { MySqlLockStore, schemaSql, type MySqlLockStoreOptions } from '../../lib/mysql/index';
import { makeLocks } from '../support/make-locks';
import { DATABASE, modesOf, MySqlServer } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { patient } from '../support/patient';
import { saying } from '../support/saying';
import { until } from '../support/until';

const LEASE = `${DATABASE}.distributed_lock_lease`;
const DONE = `${DATABASE}.distributed_lock_done`;

let server: MySqlServer;
const opened: MySqlLockStore[] = [];
const blocking: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await MySqlServer.start();
  await new MySqlLockStore(server.pool()).ensureSchema();
});
beforeEach(async () => {
  await server.query(`DELETE FROM ${LEASE}`);
  await server.query(`DELETE FROM ${DONE}`);
});
afterEach(async () => {
  await Promise.all(blocking.map((unlock) => unlock()));
  await Promise.all(opened.splice(0).map((store) => store.close()));
});
afterAll(() => server.stop());

async function open(config: PoolOptions | Pool = {}, options?: MySqlLockStoreOptions): Promise<MySqlLockStore> {
  const store = new MySqlLockStore('getConnection' in config ? config : server.pool(config), options);
  await store.open({ prefix: 'lock', warn: (message) => noWarning(message, 'innodb_flush_log_at_trx_commit') });
  opened.push(store);
  return store;
}

/** Locks the row of a key, and returns what unlocks it. */
async function blockRow(key: string): Promise<() => Promise<void>> {
  const connection = await server.pool().promise().getConnection();
  await connection.query('START TRANSACTION');
  await connection.query('SELECT 1 FROM distributed_lock_lease WHERE name = ? FOR UPDATE', [Buffer.from(`lock:{${key}}`)]);
  const unlock = async (): Promise<void> => {
    await connection.query('COMMIT');
    connection.release();
    blocking.splice(0);
  };
  blocking.push(unlock);
  return unlock;
}

/** How many statements of a kind the server was asked. */
async function countOf(kind: string): Promise<number> {
  const [row] = await server.query<{ Value: string }>(`SHOW GLOBAL STATUS LIKE '${kind}'`);
  return Number(row?.Value);
}

describe('what is stored', () => {
  test('a lock is a row that stays when it is free, with its fence and without its owner', async () => {
    const locks = makeLocks(await open());
    const fence = await locks.withLock('balance:42', { ttl: 7_000 }, async (lock) => {
      const [row] = await server.query(`SELECT * FROM ${LEASE}`);
      expect(row).toMatchObject({ name: Buffer.from('lock:{balance:42}'), fence: lock.fence, ttl_ms: 7_000, holds: expect.any(Buffer) });
      return lock.fence;
    });
    const [row] = await server.query<Record<string, number>>(`SELECT * FROM ${LEASE}`);
    expect(row).toMatchObject({ owner: null, fence, holds: null, turn: null, queue: null, done_ends: 0 });
    expect(await server.query(`SELECT hold FROM ${DONE}`)).toEqual([]);
    await server.query(`UPDATE ${LEASE} SET fence = fence + 1000000000000`);
    expect(await locks.withLock('balance:42', (lock) => lock.fence)).toBe(fence + 1_000_000_000_000 + MOST_FENCES);
  });

  test('the release of an unanswered hold leaves its mark, of which the row of its key knows', async () => {
    const store = await open();
    const holds = [1, 2, 3].map(() => newHold('k'));
    for (const hold of holds) {
      expect((await store.acquire(hold)).fence).toBeGreaterThan(0);
      expect(await store.release(hold)).toBe(true);
    }
    expect(await server.query(`SELECT hold FROM ${DONE}`)).toHaveLength(3);
    const [row] = await server.query<Record<string, number>>(`SELECT * FROM ${LEASE}`);
    // An acquire of the same hold may arrive so much later.
    expect((row?.['done_ends'] ?? 0) - (row?.['ends'] ?? 0)).toBe(10_000_000);
    for (const hold of holds) {
      expect(await store.release(hold)).toBe(true);
      expect((await store.acquire(hold)).fence).toBeUndefined();
    }
    expect(await store.inspect('k')).toBeNull();
  });

  test('a purge takes away what has been free for long, and the next fence is higher all the same', async () => {
    const store = await open();
    const old = await makeLocks(store).acquire('old');
    await old.release();
    await makeLocks(store).withLock('young', () => undefined);
    const held = await makeLocks(store).acquire('held');
    await server.query(`UPDATE ${LEASE} SET ends = ends - 120000000 WHERE name = 'lock:{old}'`);
    await server.query(`INSERT INTO ${LEASE} (name) VALUES ?`, [Array.from({ length: 2_500 }, (_, at) => [`lock:{many ${at}}`])]);
    await server.query(`INSERT INTO ${LEASE} (name) VALUES ('other:{k}')`);
    expect(await store.purge({ olderThan: '1m' })).toBe(2_501);
    const left = await server.query<{ name: Buffer }>(`SELECT name FROM ${LEASE} ORDER BY name`);
    expect(left.map(({ name }) => name.toString())).toEqual(['lock:{held}', 'lock:{young}', 'other:{k}']);
    await makeLocks(store).withLock('old', (lock) => expect(lock.fence).toBeGreaterThan(old.fence));
    await held.release();
    await expect(store.purge({ olderThan: 10 })).rejects.toThrow('MySqlLockStore.purge: olderThan is 10');
  });

  test('done marks that have run out are taken away, however many there are', async () => {
    const later = globalThis.setTimeout;
    jest
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((act: () => void, ms: number) => later(act, ms === 15_000 ? 100 : ms)) as never);
    try {
      const store = await open();
      await server.query(`INSERT INTO ${DONE} VALUES ?`, [Array.from({ length: 2_500 }, (_, at) => [`hold ${at}`, 1, at])]);
      const hold = newHold('k');
      await store.acquire(hold);
      await store.exchange(hold, newHold('k'), { name: 'place' }, true);
      await until('that none is old', async () => (await server.query(`SELECT 1 FROM ${DONE} WHERE hold LIKE 'hold %'`)).length === 0);
    } finally {
      jest.restoreAllMocks();
    }
  });
});

describe('statements', () => {
  test('an acquire and its release are one statement each, which needs no procedure', async () => {
    const store = await open();
    const before = await countOf('Com_call_procedure');
    const questions = await countOf('Com_stmt_execute');
    for (let round = 0; round < 10; round++) {
      await makeLocks(store).withLock(`k${round}`, () => undefined);
    }
    expect((await countOf('Com_call_procedure')) - before).toBe(0);
    expect((await countOf('Com_stmt_execute')) - questions).toBe(20);
  });

  test('an acquire that its caller gave up, and that is carried out later, leaves nothing behind', async () => {
    const store = await open();
    await makeLocks(store).withLock('k', () => undefined);
    const unlock = await blockRow('k');
    const late = newHold('k', { limitMs: 500 });
    await expect(store.acquire(late)).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    const released = store.release(late).catch(() => undefined);
    await sleep(100);
    await unlock();
    // It may have waited for too long itself.
    if ((await released) === undefined) {
      await patient(store).release({ ...late, limitMs: 1_000 });
    }
    await until('that both are carried out', async () => (await store.inspect('k')) === null);
    expect((await store.acquire(late)).fence).toBeUndefined();
    expect(await store.inspect('k')).toBeNull();
  });

  test('a statement that waits for a row longer than a second is ended on the server, too', async () => {
    const store = await open();
    await makeLocks(store).withLock('k', () => undefined);
    await blockRow('k');
    const waiting = async (): Promise<number> =>
      (await server.query(`SELECT 1 FROM information_schema.processlist WHERE info LIKE '%distributed_lock_%' AND id <> connection_id()`))
        .length;
    await expect(store.acquire(newHold('k', { limitMs: 100 }))).rejects.toThrow(saying(/no reply within/));
    await until('that nothing waits there', async () => (await waiting()) === 0);
  });

  test('statements that wait with all connections of the pool are ended on the server, too', async () => {
    const store = await open(server.pool({ connectionLimit: 2 }));
    await makeLocks(store).withLock('k', () => undefined);
    await blockRow('k');
    const waiting = (): Promise<{ id: number }[]> =>
      server.query(`SELECT id FROM information_schema.processlist WHERE info LIKE '%distributed_lock_%' AND id <> connection_id()`);
    const calls = Array.from({ length: 6 }, () => store.acquire(newHold('k', { limitMs: 100 })).catch((error: unknown) => error));
    await until('two that wait', async () => (await waiting()).length === 2);
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 6 }, () => expect.any(LockStoreError)));
    await until('that nothing waits there', async () => (await waiting()).length === 0);
  });

  test('a pool that is exhausted is named as such, and a call that gave up keeps no connection', async () => {
    const busy = server.pool({ connectionLimit: 2 });
    const store = await open(busy);
    const connections = await Promise.all([busy.promise().getConnection(), busy.promise().getConnection()]);
    const failed = await store.acquire(newHold('k', { limitMs: 200 })).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(LockStoreError);
    expect(failed).toMatchObject({ unknown: false, detail: expect.stringContaining('raise the connectionLimit (2) of the pool') });
    connections.forEach((connection) => connection.release());
    expect((await store.acquire(newHold('k'))).fence).toBeGreaterThan(0);
  });

  test('ten thousand statements that waited for a connection in vain hand it on, one after the other', async () => {
    const own = server.pool({ connectionLimit: 1 });
    const store = await open(own);
    const connection = await own.promise().getConnection();
    const inVain = await Promise.allSettled(Array.from({ length: 10_000 }, () => store.inspect('k')));
    expect(inVain.every(({ status }) => status === 'rejected')).toBe(true);
    connection.release();
    await until('that one is answered', () => store.inspect('k').then((found) => found === null).catch(() => false)); // prettier-ignore
  });

  test('a connection that was given back within a transaction is not used, since nobody would see what is granted there', async () => {
    const own = server.pool({ connectionLimit: 1 });
    const store = await open(own);
    for (const key of ['by a statement', 'by a procedure']) {
      const connection = await own.promise().getConnection();
      await connection.query('START TRANSACTION');
      await connection.query(`SELECT 1 FROM ${LEASE}`);
      connection.release();
      const hold = newHold(key);
      expect((await store.acquire(hold)).fence).toBeGreaterThan(0);
      expect((await (await open()).inspect(key))?.holds).toBe(1);
    }
  });

  test('a connection that was given back within a transaction does not end the use of plain statements', async () => {
    const own = server.pool({ connectionLimit: 1 });
    const store = await open(own);
    for (const begin of ['START TRANSACTION', 'SET autocommit = 0']) {
      const connection = await own.promise().getConnection();
      await connection.query(begin);
      await connection.query(`SELECT 1 FROM ${LEASE}`);
      connection.release();
      await makeLocks(store).withLock(begin, () => undefined);
      const now = performance.now.bind(performance);
      jest.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
      // The clock of the server was read too long ago: the first pair reads it.
      await makeLocks(store).withLock(`${begin} clock`, () => undefined);
      const before = await countOf('Com_call_procedure');
      await makeLocks(store).withLock(`${begin} before`, () => undefined);
      expect((await countOf('Com_call_procedure')) - before).toBe(0);
      jest.restoreAllMocks();
    }
  });

  test('a connection whose server became read-only is not used again: another one may lead to the new primary', async () => {
    await server.query(`CREATE USER clerk`);
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${DATABASE}.* TO clerk`);
    const store = await open(server.pool({ connectionLimit: 1, user: 'clerk' }));
    const connected = async (): Promise<number[]> =>
      (await server.query<{ id: number }>(`SELECT id FROM information_schema.processlist WHERE user = 'clerk'`)).map(({ id }) => id);
    await store.acquire(newHold('before'));
    const [first] = await connected();
    await server.query('SET GLOBAL read_only = 1');
    await expect(store.acquire(newHold('demoted'))).rejects.toThrow(saying(/the server is read-only, as a replica is/));
    await server.query('SET GLOBAL read_only = 0');
    expect((await store.acquire(newHold('after'))).fence).toBeGreaterThan(0);
    expect(await connected()).not.toContain(first);
  });

  test.each(['START TRANSACTION', 'SET autocommit = 0'])('what is read after %s is what is committed by now', async (begin) => {
    const own = server.pool({ connectionLimit: 1 });
    const store = await open(own);
    const connection = await own.promise().getConnection();
    await connection.query(begin);
    await connection.query(`SELECT 1 FROM ${LEASE}`);
    connection.release();
    const other = makeLocks(await open());
    for (let round = 0; round < 3; round++) {
      const held = await other.acquire('seen');
      expect(await store.inspect('seen')).toMatchObject({ fence: held.fence });
      const keys: string[] = [];
      for await (const found of store.search('seen')) {
        keys.push(...found.map(({ key }) => key));
      }
      expect(keys).toEqual(['seen']);
      await held.release();
      expect(await store.inspect('seen')).toBeNull();
    }
    // Nor does it keep old versions of rows for itself.
    const [{ open: left } = {}] = await server.query<{ open: number }>('SELECT count(*) AS open FROM information_schema.innodb_trx');
    expect(Number(left)).toBe(0);
  });

  test.each([['READ COMMITTED'], ['REPEATABLE READ'], ['SERIALIZABLE']])(
    '%s as the isolation level of sessions makes no difference',
    async (level) => {
      const pools = [server.pool(), server.pool()];
      pools.forEach((each) => each.on('connection', (connection) => connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`)));
      const stores = (await Promise.all(pools.map((each) => open(each)))).map(patient);
      for (let round = 0; round < 10; round++) {
        const holds = Array.from({ length: 6 }, () => newHold(`k${round % 2}`));
        const replies = await Promise.all(holds.map((wanted, at) => (stores[at % 2] as MySqlLockStore).acquire(wanted)));
        expect(replies.filter(({ fence }) => fence !== undefined)).toHaveLength(1);
        const released = await Promise.all(holds.map((wanted, at) => (stores[at % 2] as MySqlLockStore).release(wanted)));
        expect(released).toEqual(replies.map(({ fence }) => fence !== undefined));
      }
    },
  );

  test('modes of a session that change what SQL means make no difference', async () => {
    const own = server.pool({
      dateStrings: true,
      bigNumberStrings: true,
      supportBigNumbers: true,
      rowsAsArray: true,
      namedPlaceholders: true,
      typeCast: (field: { type: string }, next: () => unknown) => (field.type === 'LONGLONG' ? 'a number' : `${String(next())} cast`),
    });
    const modes = modesOf(['ANSI_QUOTES', 'PIPES_AS_CONCAT', 'NO_BACKSLASH_ESCAPES', 'SIMULTANEOUS_ASSIGNMENT', 'EMPTY_STRING_IS_NULL']).join(); // prettier-ignore
    own.on('connection', (connection) =>
      connection.query(`SET sql_mode = '${modes}', time_zone = '+05:45', character_set_client = latin1`),
    );
    const store = await open(own);
    const key = `it's "\\ é 漢 \0`;
    const hold = newHold(key);
    const { fence = 0 } = await store.acquire(hold);
    expect(await (await open()).inspect(key)).toMatchObject({ fence, holds: 1, by: hold.by });
    expect(Math.abs(fence / 1_000 - Date.now())).toBeLessThan(60_000);
    expect((await (await open()).acquire(newHold(key))).fence).toBeUndefined();
    expect(await store.release({ ...hold, fence })).toBe(true);
  });

  test('renewals of the same locks in opposite orders, and beside a row that is locked, do not wait for each other', async () => {
    const stores = await Promise.all([open(), open()]);
    const holds = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const hold = newHold(`k${at}`, { ttlMs: 60_000, limitMs: 4_000 });
        return { ...hold, fence: (await (stores[0] as MySqlLockStore).acquire(hold)).fence ?? 0 };
      }),
    );
    await blockRow('k7');
    const expected = holds.map(({ key }) => (key === 'k7' ? undefined : true));
    // A renewal that is stopped while it has rows locked leaves them to the other renewal unanswered, and two that
    // block each other always do so.
    await until('a round in which neither waits for the other', async () => {
      const [forth, back] = await Promise.all([
        (stores[0] as MySqlLockStore).renew(holds),
        (stores[1] as MySqlLockStore).renew(holds.toReversed()),
      ]);
      const answers = [forth, back.toReversed()] as const;
      expect(answers.flatMap((each) => each.filter((answer) => answer === false))).toEqual([]);
      expect(answers.map((each) => each[7])).toEqual([undefined, undefined]);
      return isDeepStrictEqual(answers, [expected, expected]);
    });
  });

  test('renewals of locks whose rows are locked leave connections of the pool to the others', async () => {
    const own = server.pool({ connectionLimit: 5 });
    const store = await open(own);
    const held = await Promise.all(
      Array.from({ length: 10 }, async (_, at) => {
        const hold = newHold(`k${at}`, { ttlMs: 60_000 });
        return { ...hold, fence: (await store.acquire(hold)).fence ?? 0 };
      }),
    );
    const connection = await server.pool().promise().getConnection();
    await connection.query('START TRANSACTION');
    await connection.query(`SELECT 1 FROM ${LEASE} FOR UPDATE`);
    const renewing = store.renew(held);
    await sleep(100);
    // Each that waits keeps its connection for a second.
    const asked = Promise.all(Array.from({ length: 3 }, () => own.promise().query('SELECT 1')));
    expect(await Promise.race([asked, sleep(700, 'no connection')])).toHaveLength(3);
    expect(await renewing).toEqual(held.map(() => undefined));
    await connection.query('COMMIT');
    connection.release();
  });

  test('renewals of many locks on a slow server end with their time limit, and leave the rest unanswered', async () => {
    const own = server.pool();
    let asked = 0;
    const slow = Object.assign(Object.create(own) as Pool, {
      getConnection: (connected: Parameters<Pool['getConnection']>[0]) => {
        asked++;
        setTimeout(() => own.getConnection(connected), 50);
      },
    });
    const store = await open(slow);
    asked = 0;
    const holds = Array.from({ length: 2_000 }, (_, at) => newHold(`k${at}`, { fence: 1, limitMs: 100 }));
    const answers = await store.renew(holds).catch(() => []);
    expect(answers.slice(-1)).not.toEqual([false]);
    expect(asked).toBeLessThanOrEqual(3);
  });

  test('no owner and no hold shows in an error', async () => {
    const store = await open();
    const wanted = newHold('k', { owner: 'secret-owner', id: 'secret-hold' });
    const granted = { ...wanted, fence: (await store.acquire(wanted)).fence ?? 0 };
    await server.query(`ALTER TABLE ${LEASE} ADD CONSTRAINT nobody CHECK (done_ends < 2 AND ttl_ms < 50000)`);
    try {
      for (const call of [() => store.release(granted), () => store.join({ ...granted, id: 'secret-guest', ttlMs: 60_000 })]) {
        const error = await call().catch((failure: unknown) => failure);
        expect(error).toBeInstanceOf(LockStoreError);
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
        expect(inspect(error)).toMatch(/Lock "k": MySQL failed: (CONSTRAINT `nobody` failed|Check constraint 'nobody' is violated)/);
      }
    } finally {
      await server.query(`ALTER TABLE ${LEASE} DROP CONSTRAINT nobody`);
    }
  });

  test('a fence that JavaScript could not count is refused, and nothing is granted', async () => {
    const store = await open();
    await makeLocks(store).withLock('k', () => undefined);
    await server.query(`UPDATE ${LEASE} SET fence = 9007199254740980`);
    await expect(store.acquire(newHold('k'))).rejects.toThrow(
      saying(/its fence would be above 9007199254740991.*delete the row of the key from distributed_lock_lease/),
    );
    expect(await store.inspect('k')).toBeNull();
  });
});

describe('several databases', () => {
  test('a key has its place by its name and the order of the pools, and a database that is away fails its own keys', async () => {
    const [east, west] = await Promise.all(
      ['east', 'west'].map(async (database) => {
        await server.query(`CREATE DATABASE ${database}`);
        return server.pool({ database });
      }),
    ) as [Pool, Pool]; // prettier-ignore
    const store = new MySqlLockStore([east, west]);
    await store.ensureSchema();
    opened.push(store);
    await store.open({ prefix: 'lock', warn: () => undefined });
    const keys = Array.from({ length: 40 }, (_, at) => `balance:${at}`);
    const holds = await Promise.all(keys.map(async (key) => ({ ...newHold(key, { ttlMs: 60_000, limitMs: 10_000 }), fence: 0 })));
    const granted = await Promise.all(holds.map(async (hold) => ({ ...hold, fence: (await store.acquire(hold)).fence ?? 0 })));
    const rows = await server.query<{ name: Buffer }>(`SELECT name FROM west.distributed_lock_lease WHERE holds IS NOT NULL`);
    const inWest = new Set(rows.map(({ name }) => name.toString().slice(6, -1)));
    // By the first four bytes of the SHA-256: another place would be another lock.
    expect(keys.slice(0, 12).map((key) => Number(inWest.has(key))).join('')).toBe('011100000011'); // prettier-ignore
    const turned = new MySqlLockStore([west, east]);
    await expect(turned.open({ prefix: 'lock', warn: () => undefined })).rejects.toThrow(
      saying(/pool 1 of 2 leads to a database that other processes know as 2 of 2/),
    );
    west.end(() => undefined);
    expect(await store.renew(granted)).toEqual(keys.map((key) => (inWest.has(key) ? undefined : true)));
    await expect(store.inspect([...inWest][0] as string)).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  });
});

describe('configuration', () => {
  test.each([[undefined], [null], [{}], ['mysql://localhost'], [[]], [{ getConnection() {}, query() {} }]])(
    '%p is refused as a pool',
    (source) => {
      expect(() => new MySqlLockStore(source as never)).toThrow(LockConfigurationError);
    },
  );

  test('an address in the place of a pool does not show its password, and the message says what to pass', () => {
    expect(() => new MySqlLockStore('mysql://app:secret@localhost/app' as never)).toThrow(
      "the pool is a string. Pass a pool of mysql2, such as createPool('mysql://user:password@host/database')",
    );
  });

  test('a pool without a database, one that is given twice and wrong options are refused', () => {
    const pool = server.pool();
    expect(() => new MySqlLockStore(server.pool({ database: undefined as never }))).toThrow('the pool names no database');
    expect(() => new MySqlLockStore([pool, pool])).toThrow('a pool is in the list twice');
    expect(() => new MySqlLockStore(pool, null as never)).toThrow('the options are null');
    expect(() => new MySqlLockStore(pool, { poll: 50 as never })).toThrow('poll is 50. Pass true to look for turns every 50 ms');
  });

  test('a pool with promises is taken as well', async () => {
    const store = new MySqlLockStore(server.pool().promise());
    opened.push(store);
    await store.open({ prefix: 'lock', warn: () => undefined });
    expect((await store.acquire(newHold('k'))).fence).toBeGreaterThan(0);
  });

  test('a password that is wrong for a while is no reason to give a release up', async () => {
    await server.query(`CREATE USER visitor IDENTIFIED BY 'one'`);
    await server.query(`GRANT ALL ON ${DATABASE}.* TO visitor`);
    const store = await open({ user: 'visitor', password: 'one', connectionLimit: 2 });
    const hold = newHold('k', { ttlMs: 60_000 });
    await store.acquire(hold);
    await server.query(`ALTER USER visitor IDENTIFIED BY 'another'`);
    await server.endConnections('visitor');
    await until('that no connection is left', async () => {
      const error = await store.release(hold).catch((reason: LockStoreError) => reason);
      return error instanceof Error && /Access denied.*Correct the user, password and database/.test((error as LockStoreError).detail);
    });
    await expect(store.release(hold)).rejects.toBeInstanceOf(LockStoreError);
    await server.query(`ALTER USER visitor IDENTIFIED BY 'one'`);
    expect(await patient(store).release(hold)).toBe(true);
  });

  test('a wrong database or password fails the start, and a server that is away is worth a warning', async () => {
    const wrong = new MySqlLockStore(server.pool({ database: 'nowhere' }));
    await expect(wrong.open({ prefix: 'lock', warn: () => undefined })).rejects.toThrow(
      saying(/Unknown database 'nowhere'.*Correct the user/),
    );
    const stranger = new MySqlLockStore(server.pool({ user: 'stranger' }));
    await expect(stranger.open({ prefix: 'lock', warn: () => undefined })).rejects.toThrow(saying(/Access denied.*Correct the user/));
    const warnings: string[] = [];
    const away = new MySqlLockStore(server.pool({ port: 1 }));
    opened.push(away);
    await away.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    expect(warnings).toEqual([expect.stringMatching(/no connection: connect ECONNREFUSED.*Locked calls fail until then/)]);
  });

  test('a database without the tables says how to make them, and so does one whose user lacks a right', async () => {
    await server.query('CREATE DATABASE bare');
    await server.query(`CREATE USER guest IDENTIFIED BY ''`);
    await server.query('GRANT SELECT ON bare.* TO guest');
    const bare = new MySqlLockStore(server.pool({ database: 'bare' }));
    await expect(bare.open({ prefix: 'lock', warn: () => undefined })).rejects.toThrow(
      saying('Call ensureSchema() of the store, or run what schemaSql() returns'),
    );
    const guest = new MySqlLockStore(server.pool({ database: 'bare', user: 'guest' }));
    await expect(guest.ensureSchema()).rejects.toThrow(saying(/denied.*CREATE, CREATE ROUTINE and ALTER ROUTINE/));
    await bare.ensureSchema();
    await expect(guest.open({ prefix: 'lock', warn: () => undefined })).rejects.toThrow(saying(/EXECUTE on the procedures/));
    await server.query('GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON bare.* TO guest');
    // A connection keeps the rights that it had when it was made.
    const entitled = await open({ database: 'bare', user: 'guest' });
    const held = await makeLocks(entitled).acquire('k');
    await held.release();
    // A schema that is there needs no right to make it.
    await entitled.ensureSchema();
  });

  test('the tables and procedures may be made by many at once, and by hand, and again', async () => {
    await server.query('CREATE DATABASE many');
    await Promise.all(Array.from({ length: 5 }, () => new MySqlLockStore(server.pool({ database: 'many' })).ensureSchema()));
    await server.query('CREATE DATABASE by_hand');
    const connection = server.pool({ database: 'by_hand' }).promise();
    for (const sql of schemaSql()) {
      await connection.query(sql);
    }
    for (const database of ['many', 'by_hand']) {
      const store = await open({ database });
      await store.ensureSchema();
      expect((await store.acquire(newHold('k'))).fence).toBeGreaterThan(0);
    }
  });

  test('the pool is never closed, and none of its connections is kept', async () => {
    const pool = server.pool({ connectionLimit: 3 });
    const store = await open(pool);
    await makeLocks(store).withLock('k', () => undefined);
    await store.close();
    const connections = await Promise.all([1, 2, 3].map(() => pool.promise().getConnection()));
    connections.forEach((connection) => connection.release());
    await store.open({ prefix: 'lock', warn: () => undefined });
    await makeLocks(store).withLock('k', () => undefined);
  });
});
