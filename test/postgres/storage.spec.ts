import { readFileSync } from 'node:fs';
import { PostgresLockStore } from '../../lib/postgres/index';
import { makeLocks } from '../support/make-locks';
import { PostgresServer } from '../support/postgres-server';

const [, QUERY] = /```sql\n(SELECT .*?)```/s.exec(readFileSync('docs/stores/postgres.md', 'utf8')) as unknown as [string, string];

let server: PostgresServer;
let store: PostgresLockStore;

beforeAll(async () => {
  server = await PostgresServer.start();
  store = new PostgresLockStore(server.pool());
  await store.ensureSchema();
  await store.open({ prefix: 'lock', warn: () => undefined });
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

test('the query for operators shows who holds a lock, how many are in and who waits, and a lock that is free leaves its fence', async () => {
  const locks = makeLocks(store);
  const lock = await locks.acquire('balance:42', { ttl: 60_000, by: 'worker-3' });
  const other = new PostgresLockStore(server.pool());
  await other.open({ prefix: 'lock', warn: () => undefined });
  const waiting = makeLocks(other).acquire('balance:42', { wait: 30_000 });
  let rows: Record<string, unknown>[];
  do {
    rows = await server.query(QUERY);
  } while (rows[0]?.['queue'] === null);
  expect(rows).toEqual([
    {
      key: 'lock:{balance:42}',
      holder: expect.stringContaining('worker-3') as string,
      fence: String(lock.fence),
      since: expect.any(Date) as Date,
      remaining: expect.anything() as unknown,
      holds: 1,
      queue: [expect.stringMatching(/^[\w.-]+:\d+:[0-9a-f]{8}:/)],
    },
  ]);
  await lock.release();
  const next = await waiting;
  await next.release();
  expect(await server.query(QUERY)).toEqual([]);
  expect(await server.query('SELECT key, fence, owner FROM distributed_lock.lease')).toEqual([
    { key: 'lock:{balance:42}', fence: String(next.fence), owner: null },
  ]);
  await other.close();
});
