import { Client } from 'pg';
import { schemaSql } from '../../lib/postgres/index';
import { PostgresKeys } from '../../lib/postgres/postgres-keys.js';
import { PostgresServer } from '../support/postgres-server';
import { seedsOf } from '../support/random.js';
import { differenceIn, expectAlike, expectFound, type AlikeServer, type SourceDefect } from './alike.js';
import { PostgresTable } from './postgres-table.js';
import { HEARING, KEY } from './steps.js';

/** `MODEL_RUNS` plays more. */
const SEEDS = seedsOf(40);
const DEFECTS: readonly SourceDefect[] = [
  ['gives an expired reservation to the same process again', `l := SCHEMA.off_queue(l, place);`, 'l := CASE WHEN shares IS NULL THEN l ELSE SCHEMA.off_queue(l, place) END;'], // prettier-ignore
  ['never goes before the queue', 'outcome.is_last AND _may_overtake', 'false'],
  ['grants a lock to a hold that has ended', ' AND NOT SCHEMA.is_done(_hold)', ''],
  ['forgets what was released', 'IF SCHEMA.is_done(_hold) THEN', 'IF false THEN'],
  ['skips a process that polls', 'IF polls OR place = _mine', 'IF place = _mine'],
  ['waits for a process that is gone', 'OR SCHEMA.is_present(process)', 'OR true'],
  ['gives up the turn of another', 'ELSIF l.turn = _place THEN', 'ELSIF l.turn IS NOT NULL THEN'],
  ['shortens a lease by a ticket', `  l.ends := greatest(l.ends, clock_timestamp() + _ttl_ms * interval '1 millisecond');\n  l.ttl_ms := greatest(l.ttl_ms, _ttl_ms);\n  PERFORM SCHEMA.keep(l);\n  RETURN 1;`, `  l.ends := clock_timestamp() + _ttl_ms * interval '1 millisecond';\n  PERFORM SCHEMA.keep(l);\n  RETURN 1;`], // prettier-ignore
  ['shortens a lease by a renewal', 'THEN NULL ELSE ends END', 'THEN NULL ELSE NULL::timestamptz END'],
  ['shortens the lease of others in the lock', ' AND cardinality(holds) = 1 THEN NULL', ' THEN NULL'],
  ['grants what nobody waits for any more', '_latest > 0 AND', 'false AND'],
  ['renews what has ended', `ANY (holds) AND ends > clock_timestamp()`, 'ANY (holds)'],
  ['grants a lock that others wait for', 'AND ends <= clock_timestamp() AND queue IS NULL', 'AND ends <= clock_timestamp()'],
  ['frees a lock that others wait for', 'AND ends > clock_timestamp() AND queue IS NULL', 'AND ends > clock_timestamp()'],
  ['frees a lock that others have entered', '_key AND holds = ARRAY[_hold]', '_key AND _hold = ANY (holds)'],
  ['keeps a queue that nobody probes', 'IF l.queue_ends <= clock_timestamp() THEN', 'IF false THEN'],
  [
    'reports what is left of the lease after a clock was set back, and keeps the lease',
    `l.ends := clock_timestamp() + remaining_ms * interval '1 millisecond';`,
    '',
  ],
  ['hands over what somebody holds', 'ELSIF l.turn = _place THEN', 'ELSE'],
  ['believes a clock that was set back', 'IF remaining_ms > most_ms THEN', 'IF false THEN'],
];

/** Of keys that several share. */
const DEFECTS_OF_SHARING: readonly SourceDefect[] = [
  ['wakes one where several fit', 'l := SCHEMA.reserve(l, place);', 'RETURN SCHEMA.reserve(l, place);'],
  ['counts the permits of the newcomer alone', ', min(nullif(shares, 0))', ''],
  ['lets an expired owner give back', 'DELETE FROM SCHEMA.shared WHERE key = _key AND ends <= clock_timestamp();', ''],
  ['lets readers overtake a writer', 'coalesce(l.queue[1] = _place, l.queue IS NULL) AND', ''],
  ['grants room that is reserved for others', 'FROM SCHEMA.shared WHERE key = l.key\n  );', 'FROM SCHEMA.shared WHERE key = l.key AND owner IS NOT NULL\n  );'], // prettier-ignore
  ['gives each that shares a key a fence of its own', 'is_first := NOT EXISTS', 'is_first := true OR NOT EXISTS'],
  ['takes a semaphore for a lock', 'other_kind := SCHEMA.other_kind(l, _shares);', ''],
  ['hands over nothing when a writer leaves the queue of readers', "off_queue(l, _place);\n    -- One that waits no longer keeps nobody out of a key that others share.\n    IF l.owner = ''", 'off_queue(l, _place);\n    IF false'], // prettier-ignore
  ['keeps room reserved that is given up', 'IF SCHEMA.unreserve(_key, _place) THEN', 'IF false THEN'],
  ['counts what a lock has left behind', 'DELETE FROM SCHEMA.shared WHERE key = l.key;', ''],
  ['renews the lease of a reader at another fence', `owner = '' AND fence = _fence`, `owner = ''`],
  ['shortens the lease of a reader', 'greatest(CASE WHEN NOT _lingering THEN ends END, ', 'greatest('],
  ['lets a reader in by the ticket of a stranger', 'IF NOT EXISTS (SELECT FROM SCHEMA.shared WHERE key = _key AND owner = _owner) THEN', 'IF false THEN'], // prettier-ignore
  ['forces only the writers out', 'DELETE FROM SCHEMA.shared WHERE key = _key AND owner IS NOT NULL;', ''],
  ['lets one that needs a permit wait for the last of them', 'extract(epoch FROM min(ends)', 'extract(epoch FROM max(ends)'],
];

const DEFECTS_OF_BATCHES: readonly SourceDefect[] = [
  ['waits for a row that is locked elsewhere', 'FOR UPDATE SKIP LOCKED', 'FOR UPDATE'],
  ['mixes replies up', 'replies[i] := ', 'replies := replies || '],
  ['moves replies where the first call is left out', 'array_fill(NULL::text, ARRAY[cardinality(_key)])', `'{}'`],
  ['leaves a call out', 'ORDER BY key COLLATE "C", position', 'ORDER BY key COLLATE "C", position LIMIT 2'],
];

describe('the functions of the PostgreSQL store', () => {
  let server: PostgresServer;
  let client: Client;
  let listener: Client;
  let another: Client;
  const heard: string[] = [];
  async function hear(): Promise<string[]> {
    // A message comes before the answer to what its listener asks later.
    await listener.query('SELECT 1');
    return heard.splice(0);
  }
  const functions: AlikeServer = {
    hasOwnTime: false,
    shares: true,
    begin: (now, edit) => PostgresTable.begin(client, now, edit),
    heard: hear,
  };
  const batches: AlikeServer = {
    hasOwnTime: false,
    shares: true,
    begin: (now, edit) => PostgresTable.begin(client, now, edit, another),
    heard: hear,
  };

  beforeAll(async () => {
    server = await PostgresServer.start();
    client = new Client(server.url);
    listener = new Client(server.url);
    another = new Client(server.url);
    await Promise.all([client.connect(), listener.connect(), another.connect()]);
    await client.query(schemaSql());
    const row = new PostgresKeys('lock').row(KEY);
    listener.on('notification', ({ payload = '' }) => heard.push(payload.replace(row, KEY)));
    await listener.query(`LISTEN "distributed_lock:${HEARING.split(':').slice(1).join(':')}"`);
    await listener.query('SELECT pg_advisory_lock_shared(distributed_lock.presence($1))', [HEARING]);
  });
  afterAll(async () => {
    await Promise.all([client.end(), listener.end(), another.end()]);
    await server.stop();
  });

  // A batch leaves a row locked.
  afterEach(async () => {
    await another.query('ROLLBACK');
  });

  test('reply, store and notify as the lock table does', () => expectAlike(functions, SEEDS), 240_000);

  test('do so also in a batch', () => expectAlike(batches, SEEDS), 240_000);

  test.each(DEFECTS_OF_BATCHES)(
    'a batch that %s is found out',
    (...defect) =>
      expectFound(defect, (seed, edit) => differenceIn(seed, batches, edit).catch((error: Error) => error.message), {
        mostSeeds: 40,
        finding: /but the server|The batch was answered|lock timeout/,
      }),
    240_000,
  );

  test.each(DEFECTS)(
    'a function that %s is found out',
    (...defect) => expectFound(defect, (seed, edit) => differenceIn(seed, { ...functions, shares: false }, edit)),
    240_000,
  );

  test.each(DEFECTS_OF_SHARING)(
    'a function of keys that are shared and that %s is found out',
    (...defect) => expectFound(defect, (seed, edit) => differenceIn(seed, functions, edit)),
    240_000,
  );
});
