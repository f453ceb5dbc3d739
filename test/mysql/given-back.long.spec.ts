import type { Pool } from 'mysql2';
import { MySqlLockStore } from '../../lib/mysql/index';
import { givenBackSuite, LATE_MS, TTL_MS, type States, type UntidyDatabase } from '../sql/given-back-suite';
import { DATABASE, MySqlServer, PRODUCT_NAME } from '../support/mysql-server';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';

/** More than a sleeper keeps, which has all but two. */
const CONNECTIONS = 4;

const STATES: States = {
  'a clock in the past': { statements: ['SET timestamp = 1000000'] },
  'a clock in the future': { statements: ['SET timestamp = 2000000000'] },
  'a clock that stands still': { statements: ['SET timestamp = @@timestamp'] },
  'a clock that stands still a second ago': { statements: ['SET timestamp = @@timestamp - 0.9'] },
  'a clock that stands still in another time zone': { statements: ["SET timestamp = 1000000, time_zone = '+05:45'"] },
  'a time zone': { statements: ["SET time_zone = '-12:00'"] },
  'a character set': { statements: ['SET NAMES gbk'] },
  'a character set of results': { statements: ['SET character_set_results = gbk'] },
  'results without a character set': { statements: ['SET character_set_results = NULL'] },
  'a collation with two bytes for each letter': { statements: ['SET collation_connection = utf16_general_ci'] },
  'a collation that is not that of the tables': { statements: ['SET collation_connection = latin1_german2_ci'] },
  'another database': { statements: ['USE mysql'] },
  'strange modes': {
    statements: [
      "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION'",
    ],
  },
  'no precision of divisions': { statements: ['SET div_precision_increment = 0'] },
  'short groups and sorts': { statements: ['SET group_concat_max_len = 4, max_sort_length = 64'] },
  'safe updates': { statements: ['SET sql_safe_updates = 1'] },
  'small joins only': { statements: ['SET sql_big_selects = 0, max_join_size = 1'] },
  'one row': { statements: ['SET sql_select_limit = 1'] },
  'no row': { statements: ['SET sql_select_limit = 0'] },
  'an automatic NULL': { statements: ['SET sql_auto_is_null = 1'] },
  'an inserted id': { statements: ['SET last_insert_id = 77, insert_id = 88'] },
  'no checks': { statements: ['SET foreign_key_checks = 0, unique_checks = 0'] },
  'big tables and another plan': {
    statements: ["SET tmp_table_size = 1024, optimizer_switch = 'derived_merge=off,index_merge=off,materialization=off'"],
  },
  'no wait for rows': { statements: ['SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1'] },
  'no commit': { statements: ['SET autocommit = 0'] },
  'a transaction': { statements: ['START TRANSACTION', `SELECT 1 FROM ${DATABASE}.distributed_lock_lease`] },
  'a transaction that only reads': { statements: ['START TRANSACTION READ ONLY', `SELECT 1 FROM ${DATABASE}.distributed_lock_lease`] },
  'sessions that only read': { statements: ['SET SESSION TRANSACTION READ ONLY'] },
  'a next transaction that only reads': { statements: ['SET TRANSACTION READ ONLY'] },
  'serializable transactions': { statements: ['SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'] },
  'reads of what is not committed': { statements: ['SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED'] },
  'commits that begin another transaction': { statements: ["SET completion_type = 'CHAIN'"] },
  'commits that end the connection': { statements: ["SET completion_type = 'RELEASE'"] },
  'tables locked for reading': { statements: ['LOCK TABLES $table READ'] },
  'tables locked for writing': { statements: ['LOCK TABLES $table WRITE'] },
  'a handler': { statements: ['HANDLER $table OPEN'] },
  'an XA transaction': { statements: ["XA START '$id'"] },
  'an XA transaction that has written': { statements: ["XA START '$id'", 'INSERT INTO $table VALUES (1)'] },
  'an XA transaction that is ended': { statements: ["XA START '$id'", 'INSERT INTO $table VALUES (1)', "XA END '$id'"] },
  'changes of the session that are reported': { statements: ["SET session_track_system_variables = '*', session_track_schema = 1"] },
  'a role without rights': { statements: ['SET ROLE NONE'], loses: true },
};

let count = 0;
const tables = new Set<string>();

/** Leaves a state on so many connections of a pool. */
async function leave(server: MySqlServer, pool: Pool, statements: readonly string[], length = CONNECTIONS): Promise<void> {
  const connections = await Promise.all(Array.from({ length }, () => pool.promise().getConnection()));
  for (const connection of connections) {
    // Of its own: one waits for what another one has locked.
    const table = `${DATABASE}.of_${connection.threadId}`;
    if (statements.join().includes('$table') && !tables.has(table)) {
      tables.add(table);
      await server.query(`CREATE TABLE ${table} (id INT) ENGINE = InnoDB`);
    }
    const id = `${process.pid} ${++count}`;
    for (const sql of statements) {
      // Some of it is there already.
      await connection.query(sql.replace('$id', id).replace('$table', table)).catch(() => undefined);
    }
    connection.release();
  }
}

async function start(): Promise<UntidyDatabase> {
  const server = await MySqlServer.start();
  for (const sql of [
    'CREATE USER clerk',
    'CREATE ROLE locking',
    `GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE, LOCK TABLES ON ${DATABASE}.* TO locking`,
    `GRANT SELECT ON mysql.* TO clerk`,
    'GRANT locking TO clerk',
    `SET DEFAULT ROLE locking ${PRODUCT_NAME === 'MySQL' ? 'TO' : 'FOR'} clerk`,
  ]) {
    await server.query(sql);
  }
  return {
    connections: CONNECTIONS,
    idle: CONNECTIONS - 2,
    others: new MySqlLockStore(server.pool()),
    newStore: () => {
      const pool = server.pool({ connectionLimit: CONNECTIONS, user: 'clerk' });
      return { store: new MySqlLockStore(pool), leave: (statements, length) => leave(server, pool, statements, length) };
    },
    leftMs: async (key) => {
      const sql = `SELECT (ends / 1000000 - unix_timestamp(now(6))) * 1000 AS left_ms FROM ${DATABASE}.distributed_lock_lease WHERE name = ?`;
      const [row] = await server.query<{ left_ms: string }>(sql, [Buffer.from(`lock:{${key}}`)]);
      return Number(row?.left_ms);
    },
    stop: () => server.stop(),
  };
}

givenBackSuite(start, STATES);

test('a server that was started with sysdate-is-now does not follow the clock of a session either', async () => {
  const own = await MySqlServer.start('--sysdate-is-now');
  const pool = own.pool({ connectionLimit: CONNECTIONS });
  const store = new MySqlLockStore(pool);
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
  for (const key of ['a', 'a', 'b']) {
    const hold = newHold(key, { ttlMs: TTL_MS });
    const clock = ['SET timestamp = 1000000'];
    await leave(own, pool, clock);
    expect((await patient(store).acquire(hold)).fence).toBeGreaterThan(0);
    await leave(own, pool, clock);
    expect((await patient(store).inspect(key))?.remainingMs).toBeGreaterThan(TTL_MS - LATE_MS);
    await leave(own, pool, clock);
    expect(await patient(store).release(hold)).toBe(true);
  }
  await store.close();
  await own.stop();
});
