import type { LockStore } from '../../lib/core/seam/lock-store';
import { MySqlLockStore } from '../../lib/mysql/index';
import { PostgresLockStore } from '../../lib/postgres/index';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { callsOfEveryKind } from '../support/calls-of-every-kind';
import { makeLocks } from '../support/make-locks';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { PostgresServer } from '../support/postgres-server';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';

const PATIENCE_MS = 240_000;
/** Ten thousand calls. */
const ROUNDS = 1_250;
/** Marks at most, of commands that had no answer while the machine stood still. */
const MOST_MARKS = 500;

async function callOn(make: () => LockStore): Promise<void> {
  const stores = [make(), make()] as const;
  for (const store of stores) {
    await store.open?.({ prefix: 'lock', warn: () => undefined });
  }
  await callsOfEveryKind(makeLocks(stores[0]), makeLocks(stores[1]), ROUNDS);
  await Promise.all(stores.map((store) => store.close()));
}

describe('ten thousand calls of every kind leave', () => {
  test(
    'rows that keep the fences in PostgreSQL, without owner, queue or done mark',
    async () => {
      const server = await PostgresServer.start();
      await new PostgresLockStore(server.pool()).ensureSchema();
      await callOn(() => new PostgresLockStore(server.pool()));
      const [rows] = await server.query('SELECT count(owner) AS owners, count(queue) AS queues FROM distributed_lock.lease');
      expect(rows).toEqual({ owners: '0', queues: '0' });
      const [marks] = await server.query<{ count: string }>('SELECT count(*) FROM distributed_lock.done');
      expect(Number(marks?.count)).toBeLessThan(MOST_MARKS);
      await server.stop();
    },
    PATIENCE_MS,
  );

  test(
    'rows that keep the fences in MySQL, without owner, queue or done mark',
    async () => {
      const server = await MySqlServer.start();
      await new MySqlLockStore(server.pool()).ensureSchema();
      await callOn(() => new MySqlLockStore(server.pool()));
      const [rows] = await server.query(`SELECT count(owner) AS owners, count(queue) AS queues FROM ${DATABASE}.distributed_lock_lease`);
      expect(rows).toEqual({ owners: 0, queues: 0 });
      const [marks] = await server.query<{ count: number }>(`SELECT count(*) AS count FROM ${DATABASE}.distributed_lock_done`);
      expect(marks?.count).toBeLessThan(MOST_MARKS);
      await server.stop();
    },
    PATIENCE_MS,
  );

  test(
    'the counter of fences and the run of each server of a quorum, once the marks of the slowest are over',
    async () => {
      const quorum = await RedisQuorum.start(3);
      await callOn(() => new QuorumLockStore(quorum.servers.map(({ url }) => url)));
      for (const { client } of quorum.servers) {
        await until('that the marks are over', async () => (await client.dbsize()) === 2);
        expect((await client.keys('*')).toSorted()).toEqual(['lock:fence:{0}', 'lock:run:{0}']);
      }
      await quorum.stop();
    },
    PATIENCE_MS,
  );
});
