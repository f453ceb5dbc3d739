import { runStatement } from '../../lib/sql/statement';
import { comesBack, endsWhenCancelled, POOL_SERVERS, type PoolServer } from './pooled';

describe.each(Object.entries(POOL_SERVERS))('a connection of a pool to %s', (_name, start) => {
  let server: PoolServer;

  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());

  test('that comes when its statement has given up goes back to the pool', async () => {
    const pooled = server.pooled(1);
    expect(await comesBack(pooled, (limitMs) => runStatement(pooled.dialect, { sql: 'SELECT 1' }, limitMs))).toBe(true);
  });

  test('that comes when whoever else asked for it has given up goes back to the pool, too', async () => {
    const pooled = server.pooled(1);
    expect(pooled.ask === undefined || (await comesBack(pooled, pooled.ask))).toBe(true);
  });

  test('ends with a statement that was cancelled: the request may come late, and end another one', async () => {
    expect(await endsWhenCancelled(server.pooled(2), runStatement)).toBe(true);
  });

  test('ends with a statement that was cancelled also where it is the only one of the pool, which then has room for another', async () => {
    expect(await endsWhenCancelled(server.pooled(1), runStatement)).toBe(true);
  });
});
