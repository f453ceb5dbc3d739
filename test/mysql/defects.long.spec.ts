import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { MySqlLockStore, schemaSql } from '../../lib/mysql/index';
import { TIDY } from '../../lib/mysql/procedures/upkeep';
import { withRowLock } from '../../lib/mysql/row-lock/row-lock';
import { rowLockSql } from '../../lib/mysql/row-lock/row-lock-table';
import { procedureName } from '../../lib/mysql/schema';
import { loadWith, type Edit } from '../support/defective';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { TIDIED, tidiedAfterStep } from '../stores/tidied-after-step';
import { newHold } from '../support/new-hold';
import { inTransaction } from './in-transaction';
import { opened } from '../support/opened';

let server: MySqlServer;
let count = 0;

beforeAll(async () => {
  server = await MySqlServer.start();
});
afterAll(() => server.stop());

/** A store in a database of its own, with a defect in its procedures. */
async function open(right = '', wrong = ''): Promise<{ store: MySqlLockStore; database: string }> {
  const database = `d${++count}`;
  await server.query(`CREATE DATABASE ${database}`);
  const pool = server.pool({ database });
  const sources = schemaSql();
  expect(sources.join()).toContain(right);
  const connection = await pool.promise().getConnection();
  for (const sql of sources) {
    await connection.query(right === '' ? sql : sql.replaceAll(right, wrong));
  }
  connection.release();
  const store = await opened(new MySqlLockStore(pool));
  return { store, database };
}

function hold(key: string): HoldRecord {
  return newHold(key, { ttlMs: 60_000 });
}

type Probe = (store: MySqlLockStore, database: string) => Promise<unknown>;

const HOUR_US = 3_600_000_000;

/** The results of the procedures, beside their results with a defect. */
const PROBES: Readonly<Record<string, { probe: Probe; expected: unknown; right: string; wrong: string }>> = {
  'purge leaves a row that somebody queues at': {
    async probe(store, database) {
      await store.acquire(hold('k'));
      await store.acquire(hold('k'), { name: 'place' });
      await server.query(`UPDATE ${database}.distributed_lock_lease SET ends = ends - ${HOUR_US}`);
      return store.purge({ olderThan: '1m' });
    },
    expected: 0,
    right: ' AND (queue IS NULL OR queue_ends <= free_since)',
    wrong: '',
  },
  'purge takes a row whose queue nobody has probed since': {
    async probe(store, database) {
      await store.acquire(hold('k'));
      await store.acquire(hold('k'), { name: 'place' });
      await server.query(`UPDATE ${database}.distributed_lock_lease SET ends = ends - ${HOUR_US}, queue_ends = queue_ends - ${HOUR_US}`);
      return store.purge({ olderThan: '1m' });
    },
    expected: 1,
    right: 'queue_ends <= free_since',
    wrong: 'FALSE',
  },
  'purge waits for no row that another transaction has locked': {
    async probe(store, database) {
      await server.query(`INSERT INTO ${database}.distributed_lock_lease (name) VALUES ('lock:{a}'), ('lock:{b}')`);
      const connection = await server.pool({ database }).promise().getConnection();
      await connection.query('BEGIN');
      await connection.query(`SELECT 1 FROM distributed_lock_lease WHERE name = 'lock:{a}' FOR UPDATE`);
      const removed = await store.purge({ olderThan: '1m' }).catch(() => 'none');
      connection.destroy();
      return removed;
    },
    expected: 1,
    right: 'done_ends <= now_us FOR UPDATE SKIP LOCKED',
    wrong: 'done_ends <= now_us FOR UPDATE',
  },
  'purge leaves a row with a done mark that counts': {
    async probe(store, database) {
      const late = hold('k');
      await store.release(late);
      await server.query(`UPDATE ${database}.distributed_lock_lease SET ends = ends - ${HOUR_US}`);
      await store.purge({ olderThan: '1m' });
      return (await store.acquire(late)).fence;
    },
    expected: undefined,
    right: 'AND done_ends <= now_us',
    wrong: '',
  },
  'tidying leaves marks that have not run out, so that a late acquire is refused': {
    async probe(store, database) {
      const late = hold('k');
      await store.release(late);
      await server.query(`INSERT INTO ${database}.distributed_lock_done VALUES ('old', 1, 1)`);
      await server.query(`CALL ${procedureName(TIDY, database)}(0)`);
      const { length } = await server.query(`SELECT 1 FROM ${database}.distributed_lock_done`);
      return [length, (await store.acquire(late)).fence];
    },
    expected: [1, undefined],
    right: 'WHERE ends >= _after AND ends <= now_us ORDER BY',
    wrong: 'WHERE ends >= _after ORDER BY',
  },
  'tidying begins anew where the clock was set back since it ran': {
    probe: async (_store, database) => tidiedAfterStep(server, database),
    expected: TIDIED,
    right: 'SET _after = CASE WHEN _after > now_us THEN 0 ELSE _after END;',
    wrong: '',
  },
};

describe.each(Object.entries(PROBES))('%s', (_name, { probe, expected, right, wrong }) => {
  test('as it is', async () => {
    const { store, database } = await open();
    expect(await probe(store, database)).toEqual(expected);
  });

  test('and a defect would show', async () => {
    const { store, database } = await open(right, wrong);
    expect(await probe(store, database)).not.toEqual(expected);
  });
});

describe('a snapshot from before a lock on several keys is refused for each of them', () => {
  /** For each key, whether a transaction that has read before gets its lock after a holder of both. */
  async function probe(lock: typeof withRowLock): Promise<boolean[]> {
    const pool = server.pool({ database: DATABASE });
    await pool.promise().query(rowLockSql());
    const keys = ['a', 'b', 'c'].map((key) => `${key} ${++count}`);
    await inTransaction(pool, (first) => lock(first, keys, () => undefined));
    const isGranted: boolean[] = [];
    for (const key of keys) {
      const call = inTransaction(pool, async (connection) => {
        await connection.query('SELECT * FROM distributed_lock_row');
        await inTransaction(pool, (other) => lock(other, keys, () => undefined));
        return lock(connection, key, () => true);
      });
      isGranted.push(
        await call.catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION' });
          return false;
        }),
      );
    }
    return isGranted;
  }

  test('as it is', async () => {
    expect(await probe(withRowLock)).toEqual([false, false, false]);
  });

  test('and a defect would show', async () => {
    const edit: Edit = [
      'lib/mysql/row-lock/row-lock.ts',
      'for (const name of names) {\n    await session.value(TAKE_TURN',
      'for (const name of names.slice(0, 1)) {\n    await session.value(TAKE_TURN',
    ];
    const { withRowLock: wrong } = await loadWith<{ withRowLock: typeof withRowLock }>(
      `export { withRowLock } from './mysql/row-lock/row-lock'`,
      [edit],
    );
    expect(await probe(wrong)).toEqual([false, true, true]);
  });
});
