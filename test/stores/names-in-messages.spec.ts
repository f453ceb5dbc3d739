import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { LockConfigurationError } from '../../lib/core/words/errors';
import { MySqlLockStore } from '../../lib/mysql/mysql-lock-store';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { QuorumServer } from '../../lib/quorum/members/quorum-server';

class a extends PostgresLockStore {}
class b extends MySqlLockStore {}

/** The stores as a minifier leaves them. Their pools connect to nothing. */
const MINIFIED = {
  PostgresLockStore: () => new a(new Pool()),
  MySqlLockStore: () => new b(createPool({ database: 'any' })),
};

test.each(Object.entries(MINIFIED))('%s is called so by its errors, also where its code was minified', async (name, make) => {
  const purging = make().purge({ olderThan: 1 });
  await expect(purging).rejects.toThrow(LockConfigurationError);
  await expect(purging).rejects.toThrow(`${name}.purge`);
});

test('a server of a quorum that was closed names the store that the user knows', async () => {
  const server = new QuorumServer(
    { source: 'redis://127.0.0.1:1' },
    'server 1 of 3',
    () => undefined,
    () => true,
  );
  server.close();
  const detail = 'QuorumLockStore was closed. Make a new one for new locks.';
  expect(await server.plain.probe()).toMatchObject([{ status: 'rejected', reason: { detail } }]);
});
