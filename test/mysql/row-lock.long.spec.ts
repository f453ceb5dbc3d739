import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'mysql2';
import type { PoolConnection, RowDataPacket } from 'mysql2/promise';
import { LockNotAcquiredError } from '../../lib/core/words/errors';
import { withRowLock, type RowLockClient, type RowLockOptions } from '../../lib/mysql/index';
import { rowLockSql } from '../../lib/mysql/row-lock/row-lock-table';
import { IS_MYSQL, MySqlServer } from '../support/mysql-server';
import { saying } from '../support/saying';
import { until } from '../support/until';
import { inTransaction } from './in-transaction';

const COMMITTED = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'BEGIN'];

let server: MySqlServer;
let pool: Pool;

beforeAll(async () => {
  server = await MySqlServer.start();
  pool = server.pool({ connectionLimit: 20 });
  await pool.promise().query(rowLockSql());
  await pool.promise().query(rowLockSql());
  await pool.promise().query('CREATE TABLE counter (name VARCHAR(100) PRIMARY KEY, value INTEGER NOT NULL) ENGINE=InnoDB');
});
afterAll(() => server.stop());

/** A key of the test's own. */
let key: string;
let keys = 0;
beforeEach(() => {
  key = `key ${++keys}`;
});

async function addCounter(): Promise<void> {
  await pool.promise().query('INSERT INTO counter VALUES (?, 0)', [key]);
}

/** The value that this connection reads. */
async function valueOf(connection: Pick<PoolConnection, 'query'> = pool.promise()): Promise<number | undefined> {
  const [rows] = await connection.query<RowDataPacket[]>('SELECT value FROM counter WHERE name = ?', [key]);
  return rows[0]?.['value'] as number | undefined;
}

/** Adds one with a gap between reading and writing, in which an unlocked one loses. */
async function increment(connection: PoolConnection): Promise<void> {
  const value = (await valueOf(connection)) ?? 0;
  await sleep(1);
  await connection.query('UPDATE counter SET value = ? WHERE name = ?', [value + 1, key]);
}

/** Repeats a transaction that the server rolled back because of a deadlock. */
async function repeating<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError && error.reason === 'cycle')) {
        throw error;
      }
    }
  }
}

/** Resolves when somebody waits for a row. The server answers from a cache who waits, but not which statements run. */
function waiting(): Promise<void> {
  return until('a transaction that waits', async () => {
    const rows = await server.query("SELECT 1 FROM information_schema.processlist WHERE info LIKE 'INSERT INTO distributed_lock_row%'");
    return rows.length === 1;
  });
}

/** A transaction that holds the key until it is told to end. */
async function holdKey(held: string | readonly string[], end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): Promise<() => Promise<void>> {
  const connection = await pool.promise().getConnection();
  await connection.query('BEGIN');
  await withRowLock(connection, held, () => undefined);
  return async () => {
    await connection.query(end);
    connection.release();
  };
}

/** Whether a transaction of its own would get the key at once. */
async function isFree(asked: string): Promise<boolean> {
  return inTransaction(pool, (connection) => withRowLock(connection, asked, () => true, { wait: 0 })).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
    return false;
  });
}

/** The statements that a call sends to the server. */
async function statementsOf(connection: PoolConnection, options: RowLockOptions): Promise<string[]> {
  const texts: string[] = [];
  const client: RowLockClient = {
    query: (text, values) => {
      texts.push(text);
      return connection.query(text, values);
    },
  };
  await withRowLock(client, key, () => undefined, options);
  return texts;
}

async function lockWait(connection: PoolConnection): Promise<unknown> {
  const [rows] = await connection.query<RowDataPacket[]>('SELECT @@SESSION.innodb_lock_wait_timeout AS seconds');
  return rows[0]?.['seconds'];
}

describe('exclusion', () => {
  test.each([
    ['READ COMMITTED', COMMITTED],
    ['the default, REPEATABLE READ', ['BEGIN']],
    ['SERIALIZABLE', ['SET TRANSACTION ISOLATION LEVEL SERIALIZABLE', 'BEGIN']],
  ])(
    'transactions of %s that read, think and write under one key lose nothing',
    async (_, begin) => {
      await addCounter();
      const run = async () => {
        for (let round = 0; round < 15; round++) {
          const call = () =>
            inTransaction(pool, (connection) => withRowLock(connection, key, () => increment(connection), { wait: '30s' }), ...begin);
          await repeating(call);
        }
      };
      await Promise.all(Array.from({ length: 6 }, run));
      expect(await valueOf()).toBe(90);
    },
    60_000,
  );

  test('a key that several transactions lock for the first time, of which some roll back, admits one at a time', async () => {
    let running = 0;
    let most = 0;
    const failure = new Error('on purpose');
    const enter = async (rollsBack: boolean) => {
      most = Math.max(most, ++running);
      await sleep(2);
      running--;
      if (rollsBack) {
        throw failure;
      }
    };
    for (let round = 0; round < 10; round++) {
      const calls = Array.from({ length: 6 }, (_, at) =>
        repeating(() => inTransaction(pool, (one) => withRowLock(one, `${key} ${round}`, () => enter(at % 2 === 0), { wait: '30s' }))),
      );
      for (const outcome of await Promise.allSettled(calls)) {
        expect(outcome.status === 'fulfilled' ? failure : outcome.reason).toBe(failure);
      }
    }
    expect(most).toBe(1);
  });

  test.each(['COMMIT', 'ROLLBACK'] as const)('the lock outlives the body, and ends with the %s', async (end) => {
    const release = await holdKey(key, end);
    let entered = false;
    const next = inTransaction(pool, (connection) => withRowLock(connection, key, () => (entered = true), { wait: '15s' }));
    await waiting();
    expect(entered).toBe(false);
    await release();
    await next;
    expect(await isFree(key)).toBe(true);
  });

  test('several keys are taken in one order, however they are named, and are all held', async () => {
    const [a, b, c] = [`${key} a`, `${key} b`, `${key} c`];
    const release = await holdKey([b, a, a, c]);
    expect([await isFree(a), await isFree(b), await isFree(c)]).toEqual([false, false, false]);
    await release();
    const lists = [[a, b, c, a], [c, b, a], [b, c], [c, a]]; // prettier-ignore
    const run = async (list: readonly string[]) => {
      for (let round = 0; round < 10; round++) {
        await inTransaction(pool, (connection) => withRowLock(connection, list, () => sleep(1), { wait: '30s' }), ...COMMITTED);
      }
    };
    await Promise.all([...lists, ...lists].map(run));
  });

  test('neighbours of a key do not wait for it', async () => {
    const release = await holdKey(`${key} b`);
    expect([await isFree(`${key} a`), await isFree(`${key} c`)]).toEqual([true, true]);
    await release();
  });
});

describe('a snapshot from before the lock', () => {
  const read = (connection: PoolConnection) => valueOf(connection);

  test('is refused where another holder has written since', async () => {
    await addCounter();
    await (
      await holdKey(key)
    )();
    const call = inTransaction(pool, async (connection) => {
      await read(connection);
      await inTransaction(pool, (other) => withRowLock(other, key, () => increment(other)));
      await withRowLock(connection, key, () => increment(connection));
    });
    await expect(call).rejects.toThrow(saying('SET TRANSACTION ISOLATION LEVEL READ COMMITTED before BEGIN'));
    await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    expect(await valueOf()).toBe(1);
  });

  test('is refused also where the other holder was the first of all', async () => {
    await addCounter();
    const call = inTransaction(pool, async (connection) => {
      await read(connection);
      await inTransaction(pool, (other) => withRowLock(other, key, () => increment(other)));
      await withRowLock(connection, key, () => increment(connection));
    });
    await expect(call).rejects.toThrow(saying('has read something before the lock'));
  });

  test('is refused for the second of two keys, and for the one of a list that changed', async () => {
    const [a, b] = [`${key} a`, `${key} b`];
    await (
      await holdKey([a, b])
    )();
    for (const wanted of [b, [a, b]]) {
      const call = inTransaction(pool, (connection) =>
        withRowLock(connection, a, async () => {
          await inTransaction(pool, (other) => withRowLock(other, b, () => undefined));
          await withRowLock(connection, wanted, () => undefined);
        }),
      );
      await expect(call).rejects.toThrow(saying('has read something before the lock'));
    }
  });

  // MySQL has no such setting.
  (IS_MYSQL ? test.skip : test)('is refused by the server itself where innodb_snapshot_isolation is on, in the same words', async () => {
    await (
      await holdKey(key)
    )();
    const call = inTransaction(
      server.pool({ connectionLimit: 1 }),
      async (connection) => {
        await read(connection);
        await (
          await holdKey(key)
        )();
        await withRowLock(connection, key, () => undefined);
      },
      'SET SESSION innodb_snapshot_isolation = ON',
      'BEGIN',
    );
    await expect(call).rejects.toThrow(saying('has read something before the lock'));
    await expect(call).rejects.toMatchObject({ cause: { errno: 1020 } });
  });

  test('does no harm where nobody has held the key since, at READ COMMITTED, and at SERIALIZABLE', async () => {
    await addCounter();
    await inTransaction(pool, async (connection) => {
      await read(connection);
      await withRowLock(connection, key, () => increment(connection));
    });
    await inTransaction(
      pool,
      async (connection) => {
        await read(connection);
        await inTransaction(pool, (other) => withRowLock(other, key, () => increment(other)));
        await withRowLock(connection, key, () => increment(connection));
      },
      ...COMMITTED,
    );
    expect(await valueOf()).toBe(3);
  });
});

describe('inside a transaction', () => {
  test('a call with a key that the transaction holds goes on at once, also while others wait', async () => {
    let next: Promise<string> | undefined;
    await inTransaction(pool, (connection) =>
      withRowLock(connection, key, async () => {
        next = inTransaction(pool, (other) => withRowLock(other, key, () => 'next', { wait: '15s' }));
        await waiting();
        expect(await withRowLock(connection, key, () => 'inner', { wait: 0 })).toBe('inner');
        expect(await withRowLock(connection, [key, `${key} other`], () => 'both')).toBe('both');
      }),
    );
    expect(await next).toBe('next');
  });

  test('what the body returns or throws passes unchanged', async () => {
    const result = { value: 1 };
    const failure = new Error('of the body');
    await inTransaction(pool, async (connection) => {
      expect(await withRowLock(connection, key, async () => result)).toBe(result);
      const throwing = withRowLock(connection, key, () => {
        throw failure;
      });
      await expect(throwing).rejects.toBe(failure);
    });
  });

  test("the caller's innodb_lock_wait_timeout is what it was, in the body and after a failure", async () => {
    const release = await holdKey(key);
    await inTransaction(pool, async (connection) => {
      await connection.query('SET SESSION innodb_lock_wait_timeout = 77');
      await withRowLock(connection, `${key} other`, async () => expect(await lockWait(connection)).toBe(77), { wait: '2s' });
      for (const wait of [0, '1s']) {
        await expect(withRowLock(connection, key, () => undefined, { wait })).rejects.toThrow(LockNotAcquiredError);
        expect(await lockWait(connection)).toBe(77);
      }
    });
    await release();
  });

  test.each([
    ['DDL', (connection: PoolConnection) => connection.query('CREATE TABLE IF NOT EXISTS made_inside (id INTEGER)')],
    ['COMMIT', (connection: PoolConnection) => connection.query('COMMIT')],
    ['a new transaction', (connection: PoolConnection) => connection.query('START TRANSACTION')],
    ['a rollback', (connection: PoolConnection) => connection.query('ROLLBACK')],
  ])('%s in the body, which ends the lock, is an error', async (_, end) => {
    const call = inTransaction(pool, (connection) => withRowLock(connection, key, () => end(connection)));
    await expect(call).rejects.toThrow(saying('the transaction ended inside the body'));
    await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
  });

  test.each(['new', 'known'])('a rollback to an older savepoint in the body is an error, with a key that is %s', async (kind) => {
    if (kind === 'known') {
      await (
        await holdKey(key)
      )();
    }
    await inTransaction(pool, async (connection) => {
      await connection.query('SAVEPOINT older');
      const call = withRowLock(connection, key, () => connection.query('ROLLBACK TO SAVEPOINT older'));
      await expect(call).rejects.toThrow(saying('a rollback to before the lock'));
      await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    });
  });

  test('a rollback to a savepoint of the body keeps the lock', async () => {
    await inTransaction(pool, async (connection) => {
      await withRowLock(connection, key, async () => {
        await connection.query('SAVEPOINT inner_one');
        await connection.query('ROLLBACK TO SAVEPOINT inner_one');
      });
      expect(await isFree(key)).toBe(false);
    });
  });
});

describe('a key that is busy', () => {
  test('is refused after wait, in words that say what to do, and the transaction stays open', async () => {
    const release = await holdKey(key);
    await addCounter();
    await inTransaction(pool, async (connection) => {
      await connection.query('UPDATE counter SET value = 5 WHERE name = ?', [key]);
      const startedAt = performance.now();
      const refusal: unknown = await withRowLock(connection, key, () => undefined, { wait: '2s' }).catch((error: unknown) => error);
      expect(performance.now() - startedAt).toBeGreaterThan(900);
      expect(refusal).toBeInstanceOf(LockNotAcquiredError);
      expect(refusal).toMatchObject({ reason: 'busy', key, cause: { errno: 1205 } });
      expect((refusal as LockNotAcquiredError).detail).toBe(
        `Row lock "${key}" was not acquired within 2000 ms: another transaction holds it. ` +
          'The transaction is still open: roll it back, and raise wait or shorten the others.',
      );
    });
    expect(await valueOf()).toBe(5);
    await release();
  });

  test('is refused at once without a wait, though the session would wait for long', async () => {
    const release = await holdKey(key);
    const startedAt = performance.now();
    const call = inTransaction(pool, (connection) => withRowLock(connection, key, () => undefined, { wait: 0 }));
    await expect(call).rejects.toThrow(saying('was not acquired at once: another transaction holds it'));
    // The session waits for 50 s.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await release();
  });

  test.each([
    [0, 1],
    [400, 1],
    [1_500, 2],
    [undefined, 5],
  ])('a wait of %p is one of %p whole seconds for the server', async (wait, seconds) => {
    await inTransaction(pool, async (connection) => {
      const texts = await statementsOf(connection, { wait });
      expect(texts).toContain(`SET SESSION innodb_lock_wait_timeout = ${seconds}`);
    });
  });

  test('is asked for with NOWAIT alone without a wait', async () => {
    await (
      await holdKey(key)
    )();
    await inTransaction(pool, async (connection) => {
      const texts = await statementsOf(connection, { wait: 0 });
      expect(texts.filter((text) => text.endsWith('FOR UPDATE NOWAIT'))).toHaveLength(1);
      expect(texts.filter((text) => text.startsWith('INSERT') || text.startsWith('SET'))).toEqual([]);
    });
  });

  test('has one wait for all keys', async () => {
    const [a, b] = [`${key} a`, `${key} b`];
    const releaseFirst = await holdKey(a);
    const releaseSecond = await holdKey(b);
    const waits: number[] = [];
    await inTransaction(pool, async (connection) => {
      await connection.query('SET SESSION innodb_lock_wait_timeout = 77');
      const client: RowLockClient = {
        query(text, values) {
          const [, seconds] = /innodb_lock_wait_timeout = (\d+)/.exec(text) ?? [];
          waits.push(...(seconds === undefined ? [] : [Number(seconds)]));
          return connection.query(text, values);
        },
      };
      const refused = expect(withRowLock(client, [a, b], () => undefined, { wait: '3s' })).rejects.toMatchObject({ reason: 'busy' });
      await waiting();
      await sleep(1_100);
      await releaseFirst();
      await refused;
    });
    await releaseSecond();
    const [first, ...others] = waits;
    expect([first, others.pop()]).toEqual([3, 77]);
    // Two or one, or none where it waited for so long that NOWAIT is left.
    expect(others.filter((seconds) => seconds > 2)).toEqual([]);
  });

  test('in a deadlock, one transaction is rolled back and the other goes on', async () => {
    const [a, b] = [`${key} a`, `${key} b`];
    await (
      await holdKey([a, b])
    )();
    await addCounter();
    let entered = 0;
    let meet: () => void;
    const met = new Promise<void>((resolve) => (meet = resolve));
    const outcomes = await Promise.allSettled(
      [[a, b] as const, [b, a] as const].map(([first, second]) =>
        inTransaction(pool, (connection) =>
          withRowLock(connection, first, async () => {
            if (++entered === 2) {
              meet();
            }
            await met;
            return withRowLock(connection, second, () => increment(connection), { wait: '15s' });
          }),
        ),
      ),
    );
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const refusal = outcomes.find((outcome) => outcome.status === 'rejected')?.reason as unknown;
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    expect(refusal).toMatchObject({ reason: 'cycle', cause: { errno: 1213 } });
    expect(await valueOf()).toBe(1);
  });

  test('a body that hides a deadlock does not look as if it had held the lock', async () => {
    const [a, b] = [`${key} a`, `${key} b`];
    await (
      await holdKey([a, b])
    )();
    let entered = 0;
    let meet: () => void;
    const met = new Promise<void>((resolve) => (meet = resolve));
    const outcomes = await Promise.allSettled(
      [[a, b] as const, [b, a] as const].map(([first, second]) =>
        inTransaction(pool, (connection) =>
          withRowLock(connection, first, async () => {
            if (++entered === 2) {
              meet();
            }
            await met;
            await withRowLock(connection, second, () => undefined, { wait: '15s' }).catch(() => undefined);
          }),
        ),
      ),
    );
    const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
    expect(reasons).toEqual([saying('the transaction ended inside the body')]);
  });
});

test('a holder whose connection is killed frees its key', async () => {
  const connection = await pool.promise().getConnection();
  await connection.query('BEGIN');
  await withRowLock(connection, key, () => undefined);
  await server.query(`KILL CONNECTION ${connection.threadId}`);
  await until('that the key is free', () => isFree(key));
  connection.destroy();
});
