import { NoReply } from '../../lib/kit/no-reply';
import { MySqlDialect } from '../../lib/mysql/mysql-dialect';
import { PostgresDialect } from '../../lib/postgres/postgres-dialect';

type Postgres = ConstructorParameters<typeof PostgresDialect>[0];
type MySql = ConstructorParameters<typeof MySqlDialect>[0];

test.each([
  ['a reply', (ms: number) => new NoReply(ms).message],
  ['a connection of PostgreSQL', (ms: number) => new PostgresDialect({ options: {} } as Postgres, 's').whyNone(ms)],
  ['a pool of PostgreSQL', (ms: number) => new PostgresDialect({ options: { max: 1 }, totalCount: 1 } as Postgres, 's').whyNone(ms)],
  ['a connection of MySQL', (ms: number) => new MySqlDialect({ config: {} } as MySql, 'd').whyNone(ms)],
])('the time that %s had is never below zero in a message, however late it was asked for', (_, messageFor) => {
  expect(messageFor(-12.4)).toContain(' 0 ms');
  expect(messageFor(750.4)).toContain(' 750 ms');
});
