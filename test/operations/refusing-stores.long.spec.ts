import type { LockStore } from '../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { MySqlLockStore } from '../../lib/mysql/index';
import { PostgresLockStore } from '../../lib/postgres/index';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { noting } from '../support/noting';
import { PostgresServer } from '../support/postgres-server';
import { RedisQuorum } from '../support/redis-quorum';
import { RedisServer } from '../support/redis-server';
import { CLIENT_PACKAGES, sourceWith } from '../support/redis-source';
import { until } from '../support/until';

/** A store whose user lacks something after `take`, and what a line has to say of it. */
interface World {
  readonly store: LockStore;
  take(): Promise<unknown>;
  giveBack(): Promise<unknown>;
  stop(): Promise<unknown>;
}

const RIGHTS = ['~*', '&*', '+@all'];

const onRedis =
  (client: string, ...taken: readonly string[]) =>
  async (): Promise<World> => {
    const server = await RedisServer.start();
    const set = (...rules: readonly string[]): Promise<unknown> => server.client.acl('SETUSER', 'locker', ...rules);
    await set('on', '>one', ...RIGHTS);
    return {
      store: new RedisLockStore(sourceWith(client, `redis://locker:one@127.0.0.1:${server.port}`)),
      take: () => set(...taken),
      giveBack: () => set('resetkeys', ...RIGHTS),
      stop: () => server.stop(),
    };
  };

async function onQuorum(): Promise<World> {
  const quorum = await RedisQuorum.start(3);
  const set = (...rules: readonly string[]): Promise<unknown> =>
    Promise.all(quorum.servers.map((server) => server.client.acl('SETUSER', 'locker', ...rules)));
  await set('on', '>one', ...RIGHTS);
  return {
    store: new QuorumLockStore(quorum.servers.map(({ port }) => `redis://locker:one@127.0.0.1:${port}`)),
    take: () => set('-evalsha', '-eval'),
    giveBack: () => set(...RIGHTS),
    stop: () => quorum.stop(),
  };
}

const SCHEMA = 'distributed_lock';
const TO_LOCKER = [
  `GRANT USAGE ON SCHEMA ${SCHEMA} TO locker`,
  `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${SCHEMA} TO locker`,
  `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${SCHEMA} TO locker`,
].join('; ');

const onPostgres = (taken: string) => async (): Promise<World> => {
  const server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
  await server.query(`CREATE ROLE locker LOGIN; ${TO_LOCKER}`);
  return {
    store: new PostgresLockStore(server.pool({ connectionString: `postgres://locker@127.0.0.1:${server.port}/postgres` })),
    take: () => server.query(taken),
    giveBack: async () => {
      await new PostgresLockStore(server.pool()).ensureSchema();
      await server.query(TO_LOCKER);
    },
    stop: () => server.stop(),
  };
};

const USER = "locker@'127.0.0.1'";

const onMySql = (taken: string) => async (): Promise<World> => {
  const server = await MySqlServer.start();
  const giveBack = async (): Promise<void> => {
    await new MySqlLockStore(server.pool()).ensureSchema();
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${DATABASE}.* TO ${USER}`);
  };
  await server.query(`CREATE USER ${USER}`);
  await giveBack();
  return {
    store: new MySqlLockStore(server.pool({ user: 'locker' })),
    take: async () => {
      for (const sql of taken.split('; ')) {
        await server.query(sql);
      }
      // Rights count for connections from now on.
      await server.endConnections('locker');
    },
    giveBack: async () => {
      await giveBack();
      await server.endConnections('locker');
    },
    stop: () => server.stop(),
  };
};

const CASES: readonly (readonly [string, () => Promise<World>, RegExp])[] = [
  ...CLIENT_PACKAGES.map(
    (client) => [`Redis with ${client}, EVALSHA`, onRedis(client, '-evalsha', '-eval'), /NOPERM.*smallest ACL/] as const,
  ),
  ...CLIENT_PACKAGES.map(
    (client) =>
      [`Redis with ${client}, the keys`, onRedis(client, 'resetkeys', '~other:*'), /NOPERM.*Grant the keys ~<prefix>:\*/] as const,
  ),
  ['a quorum, EVALSHA', onQuorum, /of the quorum: .*NOPERM.*smallest ACL/],
  ['PostgreSQL, UPDATE', onPostgres(`REVOKE UPDATE ON ALL TABLES IN SCHEMA ${SCHEMA} FROM locker`), /permission denied.*Grant the user/],
  ['PostgreSQL, USAGE', onPostgres(`REVOKE USAGE ON SCHEMA ${SCHEMA} FROM locker`), /permission denied.*Grant the user USAGE/],
  [
    'PostgreSQL, EXECUTE',
    onPostgres(`REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ${SCHEMA} FROM PUBLIC, locker`),
    /permission denied for function.*Grant the user EXECUTE/,
  ],
  ['PostgreSQL, the schema', onPostgres(`DROP SCHEMA ${SCHEMA} CASCADE`), /does not exist.*Call ensureSchema\(\)/],
  ['PostgreSQL, the tables', onPostgres(`DROP TABLE ${SCHEMA}.lease CASCADE`), /does not exist.*Call ensureSchema\(\)/],
  ['MariaDB, EXECUTE', onMySql(`REVOKE EXECUTE ON ${DATABASE}.* FROM ${USER}`), /denied.*Grant the user/],
  ['MariaDB, UPDATE', onMySql(`REVOKE UPDATE ON ${DATABASE}.* FROM ${USER}`), /denied.*Grant the user/],
  ['MariaDB, the tables', onMySql(`DROP TABLE ${DATABASE}.distributed_lock_lease`), /doesn't exist.*Call ensureSchema\(\)/],
];

test.each(CASES)(
  '%s: without it the store is down, with one line that says what is missing; with it, it is up',
  async (_, start, says) => {
    const world = await start();
    const troubles: LockTrouble[] = [];
    const locks: LockService = makeLocks(world.store, { onTrouble: noting(troubles) });
    const over = new AbortController();
    const calls = (async (): Promise<void> => {
      for (let at = 0; !over.signal.aborted; at++) {
        await locks.withLock(`k${at}`, { wait: 200 }, () => undefined).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    try {
      await world.store.open?.({ prefix: 'lock', warn: () => undefined });
      await until('up', async () => (await locks.operations.health()).status === 'up');
      expect(troubles).toEqual([]);
      await world.take();
      await until('down', async () => (await locks.operations.health({ downAfter: 1_500 })).status === 'down');
      await until('why', async () => (await locks.operations.health()).failure !== undefined);
      const { reasons, reachable, majority } = await locks.operations.health();
      expect({ reason: reasons[0], reachable }).toEqual({ reason: majority === undefined ? 'failing' : 'noMajority', reachable: true });
      await until('a line', () => troubles.length > 0);
      const details = troubles.flatMap((trouble) => (trouble.type === 'storeUnavailable' ? trouble.error.detail : trouble.type));
      expect(details.filter((detail) => says.test(detail))).toHaveLength(1);
      await world.giveBack();
      await until('up', async () => (await locks.operations.health()).status === 'up', 10_000);
    } finally {
      over.abort();
      await calls;
      await locks.shutdown();
      await world.store.close();
      await world.stop();
    }
  },
  120_000,
);
