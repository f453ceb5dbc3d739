import type { Shares } from '../../lib/core/seam/lock-store';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { PostgresLockStore, schemaSql } from '../../lib/postgres/index';
import type { runStatement } from '../../lib/sql/statement';
import { comesBack, endsWhenCancelled, pooledBy } from '../sql/pooled';
import { loadWith, type Edit } from '../support/defective';
import { opened } from '../support/opened';
import { PostgresServer } from '../support/postgres-server';
import { quickest } from '../support/quickest';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';

const STATEMENT = 'lib/sql/statement.ts';
/** How long a defect has to show, in milliseconds. */
const SHORT_MS = 3_000;

let server: PostgresServer;
let count = 0;

beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server.stop());

/** A store in a schema of its own, with a defect in its functions. */
async function open(right = '', wrong = ''): Promise<{ store: PostgresLockStore; schema: string }> {
  const schema = `s${++count}`;
  const sql = schemaSql({ schema });
  expect(sql).toContain(right);
  await server.query(right === '' ? sql : sql.replaceAll(right, wrong));
  const store = await opened(new PostgresLockStore(server.pool(), { schema, listen: false }));
  return { store, schema };
}

function hold(key: string, shares?: Shares): HoldRecord {
  return newHold(key, { ttlMs: 60_000, shares });
}

/** The end of the lease of a hold that shares its key comes. */
async function expire(schema: string, { id }: HoldRecord): Promise<void> {
  await server.query(`UPDATE ${schema}.shared SET ends = clock_timestamp() WHERE name = '${id}'`);
}

type Probe = (store: PostgresLockStore, schema: string) => Promise<unknown>;

/** The results of the functions, beside their results with a defect. */
const PROBES: Readonly<Record<string, { probe: Probe; expected: unknown; right: string; wrong: string }>> = {
  'purge leaves a row that somebody queues at': {
    async probe(store, schema) {
      const first = hold('k');
      await store.acquire(first);
      await store.acquire(hold('k'), { name: 'place' });
      await server.query(`UPDATE ${schema}.lease SET ends = ends - interval '1 hour'`);
      return store.purge({ olderThan: '1m' });
    },
    expected: 0,
    right: ' AND (queue IS NULL OR queue_ends <= free_since)',
    wrong: '',
  },
  'purge takes a row whose queue nobody has probed since': {
    async probe(store, schema) {
      await store.acquire(hold('k'));
      await store.acquire(hold('k'), { name: 'place' });
      await server.query(`UPDATE ${schema}.lease SET ends = ends - interval '1 hour', queue_ends = queue_ends - interval '1 hour'`);
      return store.purge({ olderThan: '1m' });
    },
    expected: 1,
    right: 'queue_ends <= free_since',
    wrong: 'false',
  },
  'purge waits for no row that another transaction has locked': {
    async probe(store, schema) {
      await server.query(`INSERT INTO ${schema}.lease (key, ends) VALUES ('lock:{a}', 'epoch'), ('lock:{b}', 'epoch')`);
      const client = await server.pool().connect();
      await client.query(`BEGIN; SELECT FROM ${schema}.lease WHERE key = 'lock:{a}' FOR UPDATE`);
      const removed = await store.purge({ olderThan: '1m' }).catch(() => 'none');
      await client.query('ROLLBACK');
      client.release();
      return removed;
    },
    expected: 1,
    right: 'queue_ends <= free_since)\n    FOR UPDATE SKIP LOCKED',
    wrong: 'queue_ends <= free_since)\n    FOR UPDATE',
  },
  'tidying leaves marks that have not run out': {
    async probe(store, schema) {
      await store.release(hold('k'));
      await server.query(`INSERT INTO ${schema}.done VALUES ('old', 1, 'epoch')`);
      await server.query(`SELECT ${schema}.tidy()`);
      return (await server.query(`SELECT FROM ${schema}.done`)).length;
    },
    expected: 1,
    right: 'FROM "s" WHERE ends <= clock_timestamp() ORDER BY ends',
    wrong: 'ORDER BY ends',
  },
  'a queue that nobody has probed for long counts no more': {
    async probe(store, schema) {
      const first = hold('k');
      await store.acquire(first);
      await store.acquire(hold('k'), { name: 'place' });
      await server.query(`UPDATE ${schema}.lease SET queue_ends = clock_timestamp()`);
      await store.release(first);
      return (await store.acquire(hold('k'))).fence !== undefined;
    },
    expected: true,
    right: 'IF l.queue_ends <= clock_timestamp() THEN',
    wrong: 'IF false THEN',
  },
  'an old queue is shown to nobody': {
    async probe(store, schema) {
      await store.acquire(hold('k'));
      await store.acquire(hold('k'), { name: 'place' });
      await server.query(`UPDATE ${schema}.lease SET queue_ends = clock_timestamp()`);
      return (await store.inspect('k'))?.waiters;
    },
    expected: [],
    right: 'CASE WHEN queue_ends > clock_timestamp() THEN',
    wrong: 'CASE WHEN true THEN',
  },
  'leaving a queue hands over no lock that is held': {
    async probe(store) {
      const first = hold('k');
      const fence = (await store.acquire(first)).fence ?? 0;
      await store.leave('k', 'stranger');
      return [(await store.inspect('k'))?.fence === fence, await store.renew([{ ...first, fence }])];
    },
    expected: [true, [true]],
    right: 'ELSIF l.turn = _place THEN',
    wrong: 'ELSE',
  },
  'leaving hands the turn over to none that is gone': {
    async probe(store, schema) {
      const first = hold('k');
      await store.acquire(first);
      const place = { name: 'first' };
      await store.acquire(hold('k'), place);
      // Of a process that no longer listens.
      await server.query(`UPDATE ${schema}.lease SET queue = queue || ARRAY['gone:1:aa:second']`);
      await store.release(first);
      await store.leave('k', place.name);
      return (await server.query(`SELECT turn, queue FROM ${schema}.lease`))[0];
    },
    expected: { turn: null, queue: null },
    right: `ELSIF l.turn = _place THEN
    l := "s".hand_over(l, NULL);`,
    wrong: `ELSIF l.turn = _place THEN
    l := "s".hand_over(l, l.queue[1]);`,
  },
  'a renewal waits for a row that is locked for half of its time': {
    async probe(store, schema) {
      const held = hold('k');
      const { fence } = await store.acquire(held);
      const client = await server.pool().connect();
      await client.query(`BEGIN; SELECT FROM ${schema}.lease FOR UPDATE`);
      // The other half is for one that waits for the row, too.
      const waitedMs = await quickest(1_500, async () => {
        const [row] = await server.query<{ ms: number }>(
          `SELECT ${schema}.renew(ARRAY['lock:{k}'], ARRAY[$1::text], ARRAY[$2::bigint], ARRAY[$3::text], ARRAY[5000], ARRAY[''], ARRAY[false], 2000),
            (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::float8 AS ms`,
          [held.owner, fence, held.id],
        );
        return row?.ms ?? 0;
      });
      await client.query('ROLLBACK');
      client.release();
      return waitedMs >= 1_000 && waitedMs < 1_500;
    },
    expected: true,
    right: '(wait_until - clock_timestamp()) / 2',
    wrong: 'wait_until - clock_timestamp()',
  },
  'a lease that a clock which was set back has made long is cut': {
    async probe(store, schema) {
      await store.acquire(hold('k'));
      await server.query(`UPDATE ${schema}.lease SET ends = ends + interval '1 hour'`);
      await store.acquire(hold('k'));
      return ((await store.inspect('k'))?.remainingMs ?? 0) <= 60_000;
    },
    expected: true,
    right: `l.ends := clock_timestamp() + remaining_ms * interval '1 millisecond';`,
    wrong: '',
  },
  'a release reserves room for as many as fit': {
    async probe(store, schema) {
      const writer = hold('k');
      await store.acquire(writer);
      for (const name of ['aR', 'bR', 'c', 'dR']) {
        await store.acquire(hold('k', name.endsWith('R') ? 'read' : undefined), { name });
      }
      await store.release(writer);
      return (
        await server.query<{ place: string }>(`SELECT substring(name from '[^:]*$') AS place FROM ${schema}.shared ORDER BY number`)
      ).map(({ place }) => place);
    },
    expected: ['aR', 'bR'],
    right: 'l := "s".reserve(l, place);',
    wrong: 'RETURN "s".reserve(l, place);',
  },
  'the smallest count of those that are in counts': {
    async probe(store) {
      await store.acquire(hold('k', 1));
      return (await store.acquire(hold('k', 3))).fence;
    },
    expected: undefined,
    right: ', min(nullif(shares, 0))',
    wrong: '',
  },
  'a permit that is over is given back by nobody': {
    async probe(store, schema) {
      const over = hold('k', 2);
      await store.acquire(over);
      await store.acquire(hold('k', 2));
      await expire(schema, over);
      return store.release(over);
    },
    expected: false,
    right: 'DELETE FROM "s".shared WHERE key = _key AND ends <= clock_timestamp();',
    wrong: '',
  },
  'readers do not overtake a writer': {
    async probe(store) {
      await store.acquire(hold('k', 'read'));
      await store.acquire(hold('k'), { name: 'writer' });
      return (await store.acquire(hold('k', 'read'))).fence;
    },
    expected: undefined,
    right: 'coalesce(l.queue[1] = _place, l.queue IS NULL) AND',
    wrong: '',
  },
  'a renewal brings no hold back that is over': {
    async probe(store, schema) {
      const over = hold('k', 'read');
      const { fence = 0 } = await store.acquire(over);
      await store.acquire(hold('k', 'read'));
      await expire(schema, over);
      return store.renew([{ ...over, fence }]);
    },
    expected: [false],
    right: ' AND owner = _owner AND ends > clock_timestamp()',
    wrong: ' AND owner = _owner',
  },
  'a key is taken for as long as one that shares it is in': {
    async probe(store, schema) {
      const short = newHold('k', { ttlMs: 30_000, shares: 'read' });
      await store.acquire(hold('k', 'read'));
      await store.acquire(short);
      await store.release(short);
      // A key without a queue is asked for in one statement, which reads its row alone.
      const [row] = await server.query(`SELECT ends > clock_timestamp() + interval '50 seconds' AS long FROM ${schema}.lease`);
      return row;
    },
    expected: { long: true },
    right: 'l.ends := (SELECT max(ends) FROM',
    wrong: "l.ends := (SELECT least(min(ends), clock_timestamp() + interval '1 second') FROM",
  },
  'tidying takes the rows of shared keys that nobody visits any more, and no others': {
    async probe(store, schema) {
      const over = hold('a', 'read');
      await store.acquire(over);
      await store.acquire(hold('b', 'read'));
      await expire(schema, over);
      await server.query(`SELECT ${schema}.tidy()`);
      return server.query(`SELECT key FROM ${schema}.shared`);
    },
    expected: [{ key: 'lock:{b}' }],
    right: 'WHERE ends <= clock_timestamp() LIMIT',
    wrong: 'LIMIT',
  },
};

describe.each(Object.keys(PROBES))('%s', (name) => {
  const { probe, expected, right, wrong } = PROBES[name] as (typeof PROBES)[string];
  // The next schema's name.
  const own = (sql: string): string => sql.replaceAll('FROM "s" ', `FROM "s${count + 1}".done `).replaceAll('"s"', `"s${count + 1}"`);

  test('as it is', async () => {
    const { store, schema } = await open();
    expect(await probe(store, schema)).toEqual(expected);
  });

  test('and a defect would show', async () => {
    const { store, schema } = await open(own(right), own(wrong));
    expect(await probe(store, schema)).not.toEqual(expected);
  });
});

/** Defects of a statement on a connection of the pool, each with what is not so then. */
const OF_STATEMENTS: Readonly<Record<string, { edit: Edit; probe: (run: typeof runStatement) => Promise<boolean> }>> = {
  'a connection that comes when its statement has given up is kept': {
    edit: [STATEMENT, 'queueMicrotask(() => this.#release(connection, false));', ''],
    probe: (run) => {
      const pooled = pooledBy(server, 1);
      return comesBack(pooled, (limitMs) => run(pooled.dialect, { sql: 'SELECT 1' }, limitMs), SHORT_MS);
    },
  },
  'the connection of a statement that was cancelled goes back to the pool': {
    edit: [STATEMENT, 'this.#release(this.#connection, error || this.#isCancelled)', 'this.#release(this.#connection, error)'],
    probe: (run) => endsWhenCancelled(pooledBy(server, 2), run, SHORT_MS),
  },
};

test.each(Object.entries(OF_STATEMENTS))('it shows where %s', async (_name, { edit, probe }) => {
  const wrong = await loadWith<{ runStatement: typeof runStatement }>(`export { runStatement } from './sql/statement'`, [edit]);
  expect(await probe(wrong.runStatement)).toBe(false);
});

test('an operation that the server refused because of another one is sent again', async () => {
  const { schema } = await open();
  const store = await opened(
    new PostgresLockStore(server.pool({ options: '-c default_transaction_isolation=serializable' }), { schema, listen: false }),
  );
  const first = hold('k');
  await store.acquire(first);
  await store.release(first);
  const blocker = await server.pool().connect();
  try {
    await blocker.query(`BEGIN; UPDATE ${schema}.lease SET since = since`);
    const acquiring = store.acquire(hold('k'));
    await until('that it waits', async () => {
      return (await server.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length === 1;
    });
    // The row that it waited for has changed: "could not serialize access due to concurrent update".
    await blocker.query('COMMIT');
    expect((await acquiring).fence).toBeGreaterThan(0);
  } finally {
    blocker.release();
  }
});
