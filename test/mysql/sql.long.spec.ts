import { readFileSync } from 'node:fs';
import { MySqlLockStore, rowLockSql, schemaSql } from '../../lib/mysql/index';
import { CHECK } from '../../lib/mysql/server-check';
import { COLUMNS_FOUND, PROCEDURES_FOUND } from '../../lib/mysql/schema-found';
import { showing } from '../../lib/mysql/rows';
import { grantingStatement, releasingStatement } from '../../lib/mysql/short-cuts';
import { filesBelow } from '../readme/pages';
import { DATABASE, MySqlServer } from '../support/mysql-server';

const LEASE = `${DATABASE}.distributed_lock_lease`;

/**
 * The SQL that MariaDB has and MySQL 8.0 has not, or treats otherwise: no server of MySQL can be had where the tests
 * run.
 */
const FORBIDDEN: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/\bRETURNING\b/i, 'MySQL has no RETURNING'],
  [/\bCREATE\s+OR\s+REPLACE\s+(PROCEDURE|TABLE|FUNCTION)\b/i, 'MySQL has no CREATE OR REPLACE for them'],
  [/\bCREATE\s+PROCEDURE\s+IF\s+NOT\s+EXISTS\b/i, 'MySQL has it since 8.0.29 only'],
  [/\bFOR\s+UPDATE\s+WAIT\b/i, 'MySQL has NOWAIT and SKIP LOCKED, but no WAIT n'],
  [/\bSET\s+STATEMENT\b/i, 'MySQL has no SET STATEMENT … FOR'],
  [
    /@@in_transaction|@@tx_isolation|@@transaction_isolation|max_statement_time|innodb_snapshot_isolation/i,
    'one of the two servers lacks the variable',
  ],
  [/\bNEXTVAL\b|\bSEQUENCE\b|\bseq_\d/i, 'MySQL has no sequences'],
  [/\bVALUES?\s*\(\s*`?\w+`?\s*\)\s*(,|$)/im, 'VALUES(column) is deprecated in MySQL, and MariaDB has no row alias'],
  [/\bINSERT\b[^;]*\bAS\s+new\b/i, 'MariaDB has no alias for an inserted row'],
  [/\bLATERAL\b|\bWITH\s+RECURSIVE\b|->>?/i, 'MariaDB has no LATERAL, and no JSON arrows'],
  [/\bJSON_VALUE\b|\bJSON_EXISTS\b|\bJSON_TABLE\b/i, 'MySQL has JSON_VALUE since 8.0.21 only, and not JSON_EXISTS'],
  [/:=/, 'MySQL deprecates assignments within expressions'],
  [/\bFOR\s+\w+\s+IN\b|\bIS\s+TABLE\s+OF\b|%ROWTYPE|\bTYPE\s+OF\b/i, 'MySQL has no FOR loops and no row types in procedures'],
  [/ (UUID|INET6)\b/, 'MySQL has no such types'],
  [/\bREGEXP_(REPLACE|SUBSTR)\b/i, 'the two servers have other regular expressions'],
];

/** Words that MySQL 8.0 reserves and MariaDB does not: they are no names. */
const RESERVED = /^(cube|cume_dist|dense_rank|empty|except|first_value|function|grouping|groups|intersect|json_table|lag|last_value|lateral|lead|nth_value|ntile|of|over|percent_rank|rank|recursive|row_number|system|window)$/i; // prettier-ignore

const STATEMENTS: readonly (readonly [name: string, sql: string])[] = [
  ...schemaSql().map((sql) => [sql.split('\n')[0] as string, sql] as const),
  ['the short cut that grants', grantingStatement(LEASE)],
  ['the short cut that releases', releasingStatement(LEASE)],
  ['what shows a lock', showing('name = ?', DATABASE)],
  ['the check of the server', CHECK],
  ['the check of the procedures', PROCEDURES_FOUND],
  ['the check of the tables', COLUMNS_FOUND],
  ['the table of row locks', rowLockSql()],
  // Statements that are made where they are used.
  ...filesBelow('lib/mysql', '.ts').map((path) => [path, readFileSync(path, 'utf8').replaceAll(/^ *(\/?\*|\/\/).*$/gm, '')] as const),
];

test.each(STATEMENTS)('MySQL knows all of %s', (_name, sql) => {
  const code = sql.replaceAll(/--.*$/gm, '').replaceAll(/'[^']*'/g, "''");
  for (const [pattern, reason] of FORBIDDEN) {
    expect({ reason, found: pattern.exec(code)?.[0] }).toEqual({ reason, found: undefined });
  }
  const declared = [...code.matchAll(/\bDECLARE ((?:\w+, )*\w+) |\b(?:AS|IN) (\w+)|^ {2}(\w+) (?:VARBINARY|BIGINT|TINYINT|MEDIUMBLOB)/gm)];
  const names = declared.flatMap(([, ...found]) => found.filter(Boolean).flatMap((list) => list.split(', ')));
  expect(names.filter((name) => RESERVED.test(name))).toEqual([]);
});

test('the list finds what it forbids', () => {
  const examples = [
    'DELETE FROM t RETURNING a',
    'SELECT 1 FOR UPDATE WAIT 3',
    'SET STATEMENT max_statement_time=1 FOR SELECT 1',
    'SET @a := 1',
  ];
  expect(examples.map((sql) => FORBIDDEN.some(([pattern]) => pattern.test(sql)))).toEqual(examples.map(() => true));
});

describe('on a large table', () => {
  let server: MySqlServer;
  beforeAll(async () => {
    server = await MySqlServer.start();
    await new MySqlLockStore(server.pool()).ensureSchema();
    const numbers = Array.from({ length: 20_000 }, (_, at) => at + 1);
    await server.query(`INSERT INTO ${LEASE} (name, ends) VALUES ?`, [numbers.map((at) => [`lock:{${at}}`, at])]);
    await server.query(`INSERT INTO ${DATABASE}.distributed_lock_done VALUES ?`, [numbers.map((at) => [`hold ${at}`, 1, at])]);
    await server.query(`ANALYZE TABLE ${LEASE}, ${DATABASE}.distributed_lock_done`);
  });
  afterAll(() => server.stop());

  /** The statements that procedures and the watch for turns run on tables, with values in the place of variables. */
  const name = `'lock:{77}'`;
  test.each([
    ['a row that is locked', `SELECT * FROM ${LEASE} WHERE name = ${name} FOR UPDATE`],
    ['a row that is skipped', `SELECT * FROM ${LEASE} WHERE name = ${name} FOR UPDATE SKIP LOCKED`],
    ['a row that is written', `UPDATE ${LEASE} SET fence = 1 WHERE name = ${name}`],
    ['a short cut', `UPDATE ${LEASE} SET owner = NULL WHERE name = ${name} AND owner = 'o' AND holds = 'h' AND ends > 1 AND queue IS NULL`],
    ['a mark', `SELECT 1 FROM ${DATABASE}.distributed_lock_done WHERE hold = 'hold 77' AND ends > 1`],
    ['marks that are deleted', `DELETE FROM ${DATABASE}.distributed_lock_done WHERE ends >= 5 AND ends <= 50`],
    ['a look for turns', `SELECT name FROM ${LEASE} WHERE name IN (${name}, 'lock:{78}') AND (ends <= 5 OR locate('p', turn) = 1)`],
    [
      'a page of a search',
      `SELECT name FROM ${LEASE} WHERE name > 'lock:{7' AND name < 'lock:{7\xFF' AND owner IS NOT NULL AND ends > 1 ORDER BY name LIMIT 1000`,
    ],
  ])('%s is looked up by an index', async (_what, sql) => {
    const plan = await server.query<{ type: string; key: string | null; Extra: string | null; rows: number }>(
      `EXPLAIN FORMAT=TRADITIONAL ${sql}`,
    );
    for (const { type, key, Extra } of plan) {
      expect({ type, key, Extra }).toMatchObject({ type: expect.stringMatching(/^(const|eq_ref|range|ref)$/), key: expect.any(String) });
      expect(Extra ?? '').not.toMatch(/filesort|temporary/);
    }
  });
});
