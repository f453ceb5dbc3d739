import { LockStoreError } from '../../lib/core/words/errors';
import { MySqlDialect } from '../../lib/mysql/mysql-dialect';
import { PostgresDialect } from '../../lib/postgres/postgres-dialect';
import { toLockError } from '../../lib/sql/errors';

type Postgres = ConstructorParameters<typeof PostgresDialect>[0];
type MySql = ConstructorParameters<typeof MySqlDialect>[0];

const postgres = new PostgresDialect({ options: {} } as Postgres, 's');
const mysql = new MySqlDialect({ config: {} } as MySql, 'd');

describe.each([
  ['a connection that breaks', '08006', 'FATAL', true],
  ['an administrator, of a kind that is not named', '57000', 'ERROR', true],
  ['an administrator who ends the connection', '57P01', 'FATAL', true],
  ['a pool between here and the server', '58000', 'ERROR', true],
  ['a transaction whose end is not known', '40003', 'ERROR', true],
  ['a transaction that lasts too long', '25P04', 'FATAL', true],
  ['what ends the connection, in whatever words', '53200', 'FATAL', true],
  ['what ends the server', '53200', 'PANIC', true],
  // Its session may have a `statement_timeout` that is too short for all others, too.
  ['a statement that was cancelled', '57014', 'ERROR', false, true],
  ['memory that is short', '53200', 'ERROR', false],
] as [string, string, string, boolean, boolean?][])(
  'an error of PostgreSQL because of %s',
  (_, code, severity, unknown, ends = unknown) => {
    const error = Object.assign(new Error('why'), { code, severity });

    test(`leaves ${unknown ? 'open' : 'no doubt'} whether the statement was carried out`, () => {
      const shown = toLockError(error, 'k', postgres);
      expect(shown).toBeInstanceOf(LockStoreError);
      expect(shown).toMatchObject({ unknown });
    });

    test(`${ends ? 'ends' : 'leaves'} the connection`, () => {
      expect(postgres.mayStay(error, { sql: '', values: [] })).toBe(!ends);
    });
  },
);

describe.each([
  ['a server that a proxy has lost', 2013, true],
  ['a server that a proxy cannot reach', 2006, true],
  ['a commit that failed', 1180, true],
  ['a statement that was ended', 1317, true],
  ['a table that is full', 1114, false],
])('an error of MySQL because of %s', (_, errno, unknown) => {
  const error = Object.assign(new Error('why'), { errno, sqlState: 'HY000' });

  test(`leaves ${unknown ? 'open' : 'no doubt'} whether the statement was carried out`, () => {
    const shown = toLockError(error, 'k', mysql);
    expect(shown).toBeInstanceOf(LockStoreError);
    expect(shown).toMatchObject({ unknown });
  });

  test(`${unknown ? 'ends' : 'leaves'} the connection`, () => {
    expect(mysql.mayStay(error)).toBe(!unknown);
  });
});
