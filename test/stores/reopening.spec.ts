import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { Pool } from 'pg';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { PostgresServer } from '../support/postgres-server';
import { saying } from '../support/saying';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

const STORES = { memory: () => new MemoryLockStore(), redis: () => new RedisLockStore(server.url) };

const holdOf = (id: string): HoldRecord => newHold('k', { owner: id, id, by: id });

const subscriptions = async (): Promise<number> => ((await server.client.pubsub('CHANNELS', '*:wake:*')) as string[]).length;

describe.each(Object.entries(STORES))('a %s store that is closed and opened again', (name, newStore) => {
  test('notifies the listeners whose application has not ended, and no others', async () => {
    const store = newStore();
    const notified: string[] = [];
    let over = new AbortController();
    const listen = (round: string): void => {
      // The check at start-up sends messages about a key of its own.
      const notify = (key: string, message: string): void => void (key === 'k' && notified.push(`${round}: ${message}`));
      store.onTurn({ turn: (key, place) => notify(key, `turn ${place}`), recheck: () => undefined }, over.signal);
      store.onForced((key) => notify(key, 'forced'), over.signal);
    };
    const open = async (): Promise<void> => {
      await (store as { open?: RedisLockStore['open'] }).open?.({ prefix: `${name}-reopened`, warn: () => undefined });
    };
    listen('first');
    for (const round of ['first', 'second']) {
      await open();
      const [holder, waiter] = [holdOf(`${round} holder`), holdOf(`${round} waiter`)];
      const { fence = 0 } = await store.acquire(holder);
      expect(fence).toBeGreaterThan(0);
      expect(await store.acquire(waiter, { name: 'p' })).toMatchObject({ recheckMs: expect.any(Number) });
      await until('a subscription', async () => name === 'memory' || (await subscriptions()) === 2);
      expect(await store.forceRelease('k', fence)).toBe(true);
      await until('both messages', () => notified.length >= 2);
      await store.leave('k', 'p');
      expect(notified.splice(0).toSorted()).toEqual([`${round}: forced`, `${round}: turn p`]);
      over.abort();
      over = new AbortController();
      if (round === 'first') {
        // The next application may have begun before this one has ended.
        listen('second');
      }
      await store.close();
      await until('the end of the subscription', async () => (await subscriptions()) === 0);
    }
  });
});

test('a store in PostgreSQL that was closed refuses what is asked of it, until it is opened again', async () => {
  const postgres = await PostgresServer.start();
  const pool = new Pool({ connectionString: postgres.url, connectionTimeoutMillis: 5_000 });
  const store = new PostgresLockStore(pool);
  await store.ensureSchema();
  const open = (): Promise<void> => store.open({ prefix: 'reopened', warn: () => undefined });
  await open();
  const hold = holdOf('holder');
  const { fence = 0 } = await store.acquire(hold);
  await store.close();
  for (const ask of [
    () => store.acquire(holdOf('other')),
    () => store.renew([{ ...hold, fence }]),
    () => store.release({ ...hold, fence }),
  ]) {
    await expect(ask()).rejects.toThrow(saying('PostgresLockStore was closed'));
  }
  await open();
  expect(await store.release({ ...hold, fence })).toBe(true);
  await store.close();
  await pool.end();
  await postgres.stop();
});
