import type { PoolClient } from 'pg';
import { LockStoreError, type LockError } from '../../lib/core/words/errors';
import type { AcquireReply, HoldRecord } from '../../lib/core/seam/lock-store';
import { PostgresLockStore } from '../../lib/postgres/index';
import { PostgresKeys } from '../../lib/postgres/postgres-keys.js';
import { newHold } from '../support/new-hold';
import { opened } from '../support/opened';
import { patient } from '../support/patient';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';

/** Deadlocks are found before a statement has waited for as long as it may. */
const SOON = 'deadlock_timeout=20ms';
const rows = new PostgresKeys('lock');
let server: PostgresServer;
let store: PostgresLockStore;
/** How many statements were sent. */
let statements = 0;

beforeAll(async () => {
  server = await PostgresServer.start(SOON);
  await new PostgresLockStore(server.pool()).ensureSchema();
});
beforeEach(async () => {
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
  store = await open();
});
afterAll(() => server.stop());

async function open(connectionString = server.url): Promise<PostgresLockStore> {
  const pool = server.pool({ connectionString });
  // A new connection may take a while, and a start that was not answered is made up for by the first operations.
  const clients = await Promise.all(Array.from({ length: 8 }, () => pool.connect()));
  clients.forEach((client) => client.release());
  const each = await opened(new PostgresLockStore(pool, { listen: false }));
  statements = 0;
  pool.on('acquire', () => statements++);
  return each;
}

const holdsOf = (count: number, prefix = 'k'): HoldRecord[] => Array.from({ length: count }, (_, at) => newHold(`${prefix}${at}`));

/**
 * Plays a round whose statements are counted, with keys of its own; another round where the server stood still for
 * longer than an operation may take.
 */
async function counting(round: (prefix: string) => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    statements = 0;
    try {
      return await round(`round ${tries} `);
    } catch (error) {
      if (!(error instanceof LockStoreError) || tries === 4) {
        throw error;
      }
    }
  }
}

/** The reply, or the error that a call of the store rejected with. */
const outcomeOf = <T>(call: Promise<T>): Promise<T | LockError> => call.catch((error: LockError) => error);

/** The outcomes of as many attempts in one turn. */
function acquireAll(holds: readonly HoldRecord[]): Promise<(AcquireReply | LockError)[]> {
  return Promise.all(holds.map((hold) => outcomeOf(store.acquire(hold))));
}

/** With a transaction of somebody else that has locked the row of a key. */
async function whileLocked(key: string, run: (blocker: PoolClient) => Promise<void>): Promise<void> {
  const blocker = await server.pool().connect();
  try {
    await blocker.query('BEGIN');
    await blocker.query('SELECT FROM distributed_lock.lease WHERE key = $1 FOR UPDATE', [rows.row(key)]);
    await run(blocker);
  } finally {
    await blocker.query('ROLLBACK');
    blocker.release();
  }
}

describe('what one turn of the event loop asks of a database', () => {
  test('is one statement for each 16 of one kind', async () => {
    await counting(async (prefix) => {
      const holds = holdsOf(33, prefix);
      const replies = await Promise.all(holds.map((hold) => store.acquire(hold)));
      expect(statements).toBe(3);
      // Each key has fences of its own: those of two may be the same.
      expect(replies).toEqual(replies.map(() => expect.objectContaining({ fence: expect.any(Number) })));
      expect(await Promise.all(holds.map((hold) => store.release(hold)))).toEqual(holds.map(() => true));
      expect(statements).toBe(6);
    });
  });

  test('is answered to each, in whatever order keys and outcomes come', async () => {
    store = patient(store);
    const [first, second, other, last] = [newHold('same'), newHold('same'), newHold('a'), newHold('z')];
    await store.acquire(other);
    const [late, granted, refused, busy] = await Promise.all([last, first, second, newHold('a')].map((hold) => store.acquire(hold)));
    expect([late?.fence, granted?.fence]).toEqual([expect.any(Number), expect.any(Number)]);
    expect([refused?.fence, busy?.fence]).toEqual([undefined, undefined]);
    expect(await Promise.all([newHold('z'), other, first].map((hold) => store.release(hold)))).toEqual([false, true, true]);
    expect(await store.inspect('same')).toBeNull();
    expect(await store.inspect('z')).toMatchObject({ fence: late?.fence });
  });

  test('has the time limit of each: a batch is of calls with the same one', async () => {
    const [short, ...others] = holdsOf(8) as [HoldRecord, ...HoldRecord[]];
    await acquireAll([{ ...short, limitMs: 200 }, ...others]);
    expect(statements).toBe(2);
  });
});

test('a row that somebody else has locked holds up its own call only', async () => {
  await counting(async (prefix) => {
    await store.release(newHold(`${prefix}3`));
    statements = 0;
    await whileLocked(`${prefix}3`, async (blocker) => {
      const holds = holdsOf(8, prefix);
      const calls = holds.map((hold) => store.acquire(hold));
      const blocked = outcomeOf(calls[3] as Promise<AcquireReply>);
      const others = holds.filter((_, at) => at !== 3);
      const replies = await Promise.all(calls.filter((_, at) => at !== 3));
      expect(replies.map(({ fence }) => fence)).toEqual(replies.map(() => expect.any(Number)));
      expect(await Promise.all(others.map((hold) => store.release(hold)))).toEqual(others.map(() => true));
      // Two batches, and the one that waits.
      expect(statements).toBe(3);
      await blocker.query('COMMIT');
      // After a stall, its time is over, or PostgreSQL has refused to let it wait for longer.
      const outcome = await blocked;
      expect(outcome).toMatchObject(outcome instanceof Error ? { code: 'LOCK_STORE' } : { fence: expect.any(Number) });
    });
  });
});

test('one bad call of a batch fails alone, with an error that names its key', async () => {
  await counting(async (prefix) => {
    await server.query(`INSERT INTO distributed_lock.lease (key, fence, ends) VALUES ($1, $2, 'epoch')`, [
      rows.row(`${prefix}3`),
      Number.MAX_SAFE_INTEGER,
    ]);
    const outcomes = await acquireAll(holdsOf(8, prefix));
    const late = outcomes.find((outcome) => outcome instanceof LockStoreError);
    if (late) {
      throw late;
    }
    expect(outcomes[3]).toMatchObject({ code: 'LOCK_CONFIGURATION', key: `${prefix}3` });
    expect(outcomes.filter((outcome) => outcome instanceof Error)).toHaveLength(1);
    expect(outcomes.filter((outcome) => 'fence' in outcome && typeof outcome.fence === 'number')).toHaveLength(7);
    // The batch, and each call of it by itself.
    expect(statements).toBe(9);
  });
});

test('a batch that is not answered leaves each outcome unknown, and each may be repeated on its own', async () => {
  const proxy = await TcpProxy.start(server.port);
  try {
    store = await open(server.urlFor('postgres', proxy.port));
    const holds = holdsOf(5).map((hold) => ({ ...hold, limitMs: 300 }));
    proxy.mode = 'dropReplies';
    const outcomes = await acquireAll(holds);
    expect(outcomes).toEqual(holds.map(({ key }) => expect.objectContaining({ code: 'LOCK_STORE', unknown: true, key })));
    expect(statements).toBe(1);
    store = patient(await open());
    const patiently = holds.map((hold) => ({ ...hold, limitMs: 1_000 }));
    const again = await acquireAll(patiently);
    expect(await acquireAll(patiently)).toEqual(again);
    expect(again.map((reply) => 'fence' in reply && reply.fence)).toEqual(holds.map(() => expect.any(Number)));
  } finally {
    await proxy.stop();
  }
});

test('batches of the same keys, in whatever order each process asks, are no deadlock', async () => {
  const stores = [store, await open(), await open()].map(patient);
  for (let round = 0; round < 40; round++) {
    // The rows are new: whoever inserts one makes the others wait.
    const keys = Array.from({ length: 16 }, (_, at) => `${round} ${at}`);
    const orders = [keys, keys.toReversed(), [...keys.slice(8), ...keys.slice(0, 8)]];
    const replies = await Promise.all(stores.flatMap((each, at) => orders[at]?.map((key) => each.acquire(newHold(key))) ?? []));
    expect(replies.filter(({ fence }) => fence !== undefined)).toHaveLength(16);
  }
  expect(server.log()).not.toContain('deadlock detected');
});
