import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { MOST_FENCES } from '../../lib/core/seam/lock-store.js';
import { presenceName } from '../../lib/mysql/connections/sleeper.js';
import { schemaSql } from '../../lib/mysql/index';
import { LATER, NOW } from '../../lib/mysql/tables.js';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { seedsOf } from '../support/random.js';
import { differenceIn, expectAlike, expectFound, type AlikeServer, type SourceDefect } from './alike.js';
import { MySqlTable, wokenPlace } from './mysql-table.js';
import { HEARING, KEY } from './steps.js';

const SEEDS = seedsOf(100);

const DEFECTS: readonly SourceDefect[] = [
  ['gives an expired reservation to the same process again', 'SET l_turn = first_place, ', `SET l_queue = concat(';', entry, coalesce(l_queue, ';')), l_turn = first_place, `], // prettier-ignore
  ['never goes before the queue', 'is_last AND _may_overtake AND', 'FALSE AND'],
  ['grants a lock to a hold that has ended', 'AND _may_overtake AND NOT (', 'AND _may_overtake AND (TRUE OR '],
  ['forgets what was released', 'IF (l_done_ends > now_us AND EXISTS', 'IF (FALSE AND EXISTS'],
  ['answers a repeated release otherwise', 'SELECT max(d.answer) INTO answer', 'SELECT 1 - max(d.answer) INTO answer'],
  ['leaves no mark', 'IF _unanswered THEN', 'IF FALSE THEN'],
  ['leaves a mark of each release', 'IF _unanswered THEN', 'IF TRUE THEN'],
  ['skips a process that polls', 'IF entry <> first_place OR first_place', 'IF first_place'],
  ['forgets who polls', 'CASE WHEN NOT _polls AND', 'CASE WHEN'],
  ['waits for a process that is gone', 'OR sleeper IS NOT NULL THEN', 'OR TRUE THEN'],
  ['wakes nobody', 'KILL QUERY sleeper;', 'SET sleeper = NULL;'],
  ['skips all who are gone at once', 'IF skipped = 64 THEN', 'IF skipped = 640 THEN'],
  ['says that no time is left where too many were gone', `WHEN l_turn = '' THEN most_us`, 'WHEN FALSE THEN most_us'],
  ['gives up the turn of another', 'ELSEIF l_turn <=> _place THEN', 'ELSEIF l_turn IS NOT NULL THEN'],
  ['hands over what somebody holds', 'ELSEIF l_turn <=> _place THEN', 'ELSE'],
  ['hands over what others are in', 'is_last = l_holds IS NULL', 'is_last = TRUE'],
  ['lets a hold in at another fence', 'OR l_fence <> _fence OR', 'OR'],
  ['shortens a lease by a ticket', 'l_ends = greatest(l_ends, now_us + _ttl_ms * 1000)', 'l_ends = now_us + _ttl_ms * 1000'],
  ['shortens a lease by a renewal', 'greatest(r_ends, now_us + r_ttl_ms * 1000)', 'now_us + r_ttl_ms * 1000'],
  ['shortens the lease of others in the lock', `r_lingering AND length(holds) - length(replace(holds, ';', '')) = 2`, 'r_lingering'],
  ['renews what has ended', `holds) > 0 AND ends > ${NOW}`, 'holds) > 0'],
  ['grants what nobody waits for any more', '_latest > 0 AND', 'FALSE AND'],
  ['keeps a queue that nobody probes', 'IF l_queue_ends <= now_us THEN', 'IF FALSE THEN'],
  ['believes a clock that was set back', 'IF remaining_us > most_us THEN', 'IF FALSE THEN'],
  ['reports what is left of the lease after a clock was set back, and keeps the lease', ', l_ends = now_us + most_us;', ';'],
];

const DEFECTS_OF_SHORT_CUTS: readonly SourceDefect[] = [
  ['grants what somebody holds', `CASE WHEN ends <= ${NOW} AND`, 'CASE WHEN'],
  ['grants a lock that others wait for', 'AND queue IS NULL AND done_ends', 'AND done_ends'],
  ['grants a lock to a hold that has ended', `AND done_ends <= ${NOW}`, ''],
  ['grants what nobody waits for any more', '(? = 0 OR', '(? = 0 OR TRUE OR'],
  ['leaves the fence where it was', `greatest(fence + ${MOST_FENCES}, ${NOW})`, 'greatest(fence, 1)'],
  [
    'leaves the turn of another behind',
    `turn = CASE WHEN last_insert_id() > 0 THEN NULL`,
    `turn = CASE WHEN last_insert_id() > 0 THEN 'host:3:cyd:x'`,
  ],
  ['frees a lock that others wait for', `> ${LATER} AND queue IS NULL`, `> ${LATER}`],
  ['frees a lock that others have entered', 'AND holds = ?', 'AND locate(?, holds) = 1'],
  ['says that it freed what had ended', `AND ends > ${LATER} AND queue`, 'AND queue'],
];

describe('the procedures of the MySQL store', () => {
  let server: MySqlServer;
  let connection: Connection;
  let sleeper: Connection;
  /**
   * A process is there while a connection has its named lock. The tests of the store prove that a wake ends the sleep
   * of that connection; here the place is compared that the procedures wake, once they have sent `KILL QUERY`.
   */
  async function heard(): Promise<string[]> {
    const place = await wokenPlace(connection);
    return place === undefined ? [] : [`turn ${place} ${KEY}`];
  }
  const procedures: AlikeServer = {
    hasOwnTime: false,
    onlyWakes: true,
    begin: (now, edit) => MySqlTable.begin(connection, now, edit, false),
    heard,
  };
  const shortCuts: AlikeServer = { ...procedures, begin: (now, edit) => MySqlTable.begin(connection, now, edit, true) };

  beforeAll(async () => {
    server = await MySqlServer.start();
    const address = { host: '127.0.0.1', port: server.port, user: 'root', database: DATABASE };
    [connection, sleeper] = await Promise.all([createConnection(address), createConnection(address)]);
    for (const sql of schemaSql()) {
      await connection.query(sql);
    }
    await sleeper.query<RowDataPacket[]>(`SELECT get_lock('${presenceName(HEARING)}', 0)`);
  });
  afterAll(async () => {
    connection.destroy();
    sleeper.destroy();
    await server.stop();
  });

  test('reply, store and wake as the lock table does', () => expectAlike(procedures, SEEDS), 240_000);

  test('do so also after the plain statements that are tried first', () => expectAlike(shortCuts, SEEDS), 240_000);

  test.each(DEFECTS)(
    'a procedure that %s is found out',
    (...defect) => expectFound(defect, (seed, edit) => differenceIn(seed, procedures, edit)),
    240_000,
  );

  test.each(DEFECTS_OF_SHORT_CUTS)(
    'a plain statement that %s is found out',
    (...defect) => expectFound(defect, (seed, edit) => differenceIn(seed, shortCuts, edit)),
    240_000,
  );
});
