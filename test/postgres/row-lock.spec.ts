import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { LockNotAcquiredError } from '../../lib/core/words/errors';
import { withRowLock } from '../../lib/postgres/row-lock/row-lock';
import { rowLockSql } from '../../lib/postgres/row-lock/row-lock-table';
import { inTransaction } from '../support/in-transaction';
import { PgBouncer } from '../support/pgbouncer';
import { PostgresServer } from '../support/postgres-server';
import { quickest } from '../support/quickest';
import { until } from '../support/until';
import { saying } from '../support/saying';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await PostgresServer.start('deadlock_timeout=100ms');
  await server.query(rowLockSql());
  await server.query('CREATE TABLE counter (name text PRIMARY KEY, value integer NOT NULL)');
  pool = server.pool({ max: 20 });
});
afterAll(() => server.stop());

/** A key of the test's own. */
let key: string;
let keys = 0;
beforeEach(() => {
  key = `key ${++keys}`;
});

/** Adds one with a gap between reading and writing, in which an unlocked one loses. */
async function increment(client: PoolClient, name: string): Promise<void> {
  const { rows } = await client.query<{ value: number }>('SELECT value FROM counter WHERE name = $1', [name]);
  await sleep(1);
  await client.query('UPDATE counter SET value = $2 WHERE name = $1', [name, (rows[0]?.value ?? 0) + 1]);
}

async function valueOf(name: string): Promise<number | undefined> {
  return (await server.query<{ value: number }>('SELECT value FROM counter WHERE name = $1', [name]))[0]?.value;
}

/** Resolves when so many transactions wait for a lock of the server. */
function waiting(count: number): Promise<void> {
  return until(`${count} transactions that wait`, async () => {
    const [row] = await server.query<{ count: number }>(
      "SELECT count(*)::integer FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name <> 'observer'",
    );
    return row?.count === count;
  });
}

/** A transaction that holds the key until it is told to end. */
async function holdKey(held: string | readonly string[], end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query('BEGIN');
  await withRowLock(client, held, () => undefined);
  return async () => {
    await client.query(end);
    client.release();
  };
}

/** Whether a transaction of its own would get the key at once. */
async function isFree(asked: string): Promise<boolean> {
  return inTransaction(pool, (client) => withRowLock(client, asked, () => true, { wait: 0 })).catch((error: LockNotAcquiredError) => {
    expect(error).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
    return false;
  });
}

describe('exclusion', () => {
  test('transactions that read, think and write under one key lose nothing', async () => {
    await server.query('INSERT INTO counter VALUES ($1, 0)', [key]);
    const run = async () => {
      for (let round = 0; round < 20; round++) {
        await inTransaction(pool, (client) => withRowLock(client, key, () => increment(client, key), { wait: '60s' }));
      }
    };
    await Promise.all(Array.from({ length: 8 }, run));
    expect(await valueOf(key)).toBe(160);
  });

  test('the same behind pgbouncer, where each transaction may have another connection', async () => {
    const bouncer = await PgBouncer.start(server, 3);
    try {
      const bounced = bouncer.pool({ max: 8 });
      await server.query('INSERT INTO counter VALUES ($1, 0)', [key]);
      const run = async () => {
        for (let round = 0; round < 10; round++) {
          await inTransaction(bounced, (client) => withRowLock(client, key, () => increment(client, key), { wait: '60s' }));
        }
      };
      await Promise.all(Array.from({ length: 8 }, run));
      expect(await valueOf(key)).toBe(80);
      await expect(withRowLock(bounced, key, () => undefined)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    } finally {
      await bouncer.stop();
    }
  });

  test('a key that several transactions lock for the first time, of which some roll back, admits one at a time', async () => {
    let running = 0;
    let entered = 0;
    const failure = new Error('on purpose');
    const enter = async (rollsBack: boolean) => {
      expect(++running).toBe(1);
      entered++;
      await sleep(2);
      running--;
      if (rollsBack) {
        throw failure;
      }
    };
    for (let round = 0; round < 15; round++) {
      const calls = Array.from({ length: 8 }, (_, at) =>
        inTransaction(pool, (client) => withRowLock(client, `${key} ${round}`, () => enter(at % 2 === 0), { wait: '60s' })),
      );
      for (const outcome of await Promise.allSettled(calls)) {
        expect(outcome.status === 'fulfilled' || outcome.reason === failure).toBe(true);
      }
    }
    expect(entered).toBe(120);
  });

  test('the lock outlives the body, and ends with the commit', async () => {
    const release = await holdKey(key);
    let entered = false;
    const next = inTransaction(pool, (client) => withRowLock(client, key, () => (entered = true)));
    await waiting(1);
    expect(entered).toBe(false);
    await release();
    await next;
    expect(await isFree(key)).toBe(true);
  });

  test('a transaction that made the row and rolls back lets the next one in', async () => {
    const release = await holdKey(key, 'ROLLBACK');
    const next = inTransaction(pool, (client) => withRowLock(client, key, () => 'next'));
    await waiting(1);
    await release();
    expect(await next).toBe('next');
  });

  test('rows that are deleted while somebody holds or awaits them exclude all the same', async () => {
    await server.query('INSERT INTO counter VALUES ($1, 0)', [key]);
    const state = { running: 6 };
    const run = async () => {
      for (let round = 0; round < 10; round++) {
        await inTransaction(pool, (client) => withRowLock(client, key, () => increment(client, key), { wait: '60s' }));
      }
      state.running--;
    };
    let deleted = 0;
    const cleanUp = async () => {
      for (let round = 0; round < 60 || (deleted === 0 && state.running > 0); round++) {
        deleted += (await server.query('DELETE FROM distributed_lock.row_lock WHERE key = $1 RETURNING 1', [key])).length;
      }
    };
    await Promise.all([cleanUp(), ...Array.from({ length: 6 }, run)]);
    expect(deleted).toBeGreaterThan(0);
    expect(await valueOf(key)).toBe(60);
  });

  test('a holder whose connection is killed frees its key', async () => {
    const client = await pool.connect();
    client.on('error', () => undefined);
    await client.query('BEGIN');
    await withRowLock(client, key, () => undefined);
    await server.terminateBackends("state = 'idle in transaction'");
    await until('that the key is free', () => isFree(key));
    client.release(true);
  });
});

describe('several keys', () => {
  test('are taken in one order, however they are named, and each once', async () => {
    const [a, b, c] = [`${key} a`, `${key} b`, `${key} c`];
    const lists = [[a, b, c, a], [c, b, a], [b, c], [c, a]]; // prettier-ignore
    const run = async (list: readonly string[]) => {
      for (let round = 0; round < 15; round++) {
        await inTransaction(pool, (client) => withRowLock(client, list, () => sleep(1), { wait: '60s' }));
      }
    };
    await Promise.all([...lists, ...lists].map(run));
  });

  test('are all held until the end of the transaction', async () => {
    const release = await holdKey([`${key} b`, `${key} a`]);
    expect([await isFree(`${key} a`), await isFree(`${key} b`)]).toEqual([false, false]);
    await release();
    expect([await isFree(`${key} a`), await isFree(`${key} b`)]).toEqual([true, true]);
  });

  test('have one wait together', async () => {
    const releaseSecond = await holdKey(`${key} b`);
    const round = async (): Promise<number> => {
      const releaseFirst = await holdKey(`${key} a`);
      const startedAt = performance.now();
      const call = inTransaction(pool, (client) => withRowLock(client, [`${key} a`, `${key} b`], () => undefined, { wait: 3_000 }));
      const refused = expect(call).rejects.toMatchObject({ reason: 'busy' });
      await sleep(2_800);
      await releaseFirst();
      await refused;
      return performance.now() - startedAt;
    };
    // A wait for each would take 5.8 s, also where nobody stands still.
    expect(await quickest(5_000, round)).toBeLessThan(5_000);
    await releaseSecond();
  });
});

describe('inside a transaction', () => {
  test('a call with a key that the transaction holds goes on at once, also while others wait', async () => {
    let next: Promise<string> | undefined;
    await inTransaction(pool, (client) =>
      withRowLock(client, key, async () => {
        next = inTransaction(pool, (other) => withRowLock(other, key, () => 'next'));
        await waiting(1);
        expect(await withRowLock(client, key, () => 'inner', { wait: 0 })).toBe('inner');
        expect(await withRowLock(client, [key, `${key} other`], () => 'both', { wait: 0 })).toBe('both');
      }),
    );
    expect(await next).toBe('next');
  });

  test('a rollback to a savepoint gives back what was locked after it, and nothing else', async () => {
    const [before, after] = [`${key} before`, `${key} after`];
    await inTransaction(pool, async (client) => {
      await withRowLock(client, before, () => undefined);
      await client.query('SAVEPOINT between');
      await withRowLock(client, [before, after], () => undefined);
      expect([await isFree(before), await isFree(after)]).toEqual([false, false]);
      await client.query('ROLLBACK TO SAVEPOINT between');
      expect([await isFree(before), await isFree(after)]).toEqual([false, true]);
    });
    expect(await isFree(before)).toBe(true);
  });

  test('a call that failed can be left behind at a savepoint', async () => {
    const release = await holdKey(key);
    await inTransaction(pool, async (client) => {
      await client.query('SAVEPOINT before_the_lock');
      await expect(withRowLock(client, key, () => undefined, { wait: 50 })).rejects.toThrow(LockNotAcquiredError);
      await client.query('ROLLBACK TO SAVEPOINT before_the_lock');
      expect(await withRowLock(client, `${key} other`, () => 'other')).toBe('other');
    });
    await release();
  });

  test('what the body returns or throws passes unchanged', async () => {
    const result = { value: 1 };
    const failure = new Error('of the body');
    await inTransaction(pool, async (client) => {
      expect(await withRowLock(client, key, async () => result)).toBe(result);
      const throwing = withRowLock(client, key, () => {
        throw failure;
      });
      await expect(throwing).rejects.toBe(failure);
    });
  });

  test("the caller's lock_timeout is what it was", async () => {
    const release = await holdKey(key);
    await inTransaction(pool, async (client) => {
      const timeout = async () => (await client.query<{ lock_timeout: string }>('SHOW lock_timeout')).rows[0]?.lock_timeout;
      const before = await timeout();
      await withRowLock(client, `${key} other`, async () => expect(await timeout()).toBe(before), { wait: 700 });
      await client.query("SET LOCAL lock_timeout = '1234ms'");
      await client.query('SAVEPOINT before_the_lock');
      await withRowLock(client, `${key} other`, async () => expect(await timeout()).toBe('1234ms'), { wait: 700 });
      await expect(withRowLock(client, key, () => undefined, { wait: 50 })).rejects.toThrow(LockNotAcquiredError);
      await client.query('ROLLBACK TO SAVEPOINT before_the_lock');
      expect(await timeout()).toBe('1234ms');
    });
    await release();
  });
});

describe('a key that is busy', () => {
  test('is refused after wait, in words that say what to do', async () => {
    const release = await holdKey(key);
    const client = await pool.connect();
    await client.query('BEGIN');
    const startedAt = performance.now();
    const refusal: unknown = await withRowLock(client, key, () => undefined, { wait: '400ms' }).catch((error: unknown) => error);
    const tookMs = performance.now() - startedAt;
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    expect(refusal).toMatchObject({ reason: 'busy', key, cause: { code: '55P03' } });
    expect((refusal as LockNotAcquiredError).detail).toBe(
      `Row lock "${key}" was not acquired within 400 ms: another transaction holds it. ` +
        'The transaction is aborted: roll it back, and raise wait or shorten the others.',
    );
    expect(tookMs).toBeGreaterThan(380);
    expect((refusal as LockNotAcquiredError).waitedMs).toBeGreaterThan(380);
    // Much less than the default.
    expect(tookMs).toBeLessThan(4_000);
    await expect(client.query('SELECT 1')).rejects.toMatchObject({ code: '25P02' });
    await client.query('ROLLBACK');
    client.release();
    await release();
  });

  test('is refused at once without a wait', async () => {
    const release = await holdKey(key);
    const startedAt = performance.now();
    const call = inTransaction(pool, (client) => withRowLock(client, key, () => undefined, { wait: 0 }));
    await expect(call).rejects.toThrow(saying('was not acquired at once: another transaction holds it'));
    // Much less than the default.
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    await release();
  });

  test('in a deadlock, one transaction is refused and the other goes on', async () => {
    const [a, b] = [`${key} a`, `${key} b`];
    const both = [
      [a, b],
      [b, a],
    ] as const;
    let entered = 0;
    let meet: () => void;
    const met = new Promise<void>((resolve) => (meet = resolve));
    const outcomes = await Promise.allSettled(
      both.map(([first, second]) =>
        inTransaction(pool, (client) =>
          withRowLock(client, first, async () => {
            if (++entered === 2) {
              meet();
            }
            await met;
            return withRowLock(client, second, () => 'both', { wait: '10s' });
          }),
        ),
      ),
    );
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const refusal = outcomes.find((outcome) => outcome.status === 'rejected')?.reason as unknown;
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    expect(refusal).toMatchObject({ reason: 'cycle', cause: { code: '40P01' } });
  });
});
