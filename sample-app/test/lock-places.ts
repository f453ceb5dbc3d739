import { DATABASE, MySqlServer } from '../../test/support/mysql-server';
import { PostgresServer } from '../../test/support/postgres-server';
import { RedisServer } from '../../test/support/redis-server';
import type { LockPlace } from '../src/lock-place.js';

/** A place for locks on real servers of the test's own. */
export interface TestPlace {
  readonly locks: LockPlace;
  /** Ends as many servers as no store outlives. */
  fail(): Promise<void>;
  /** Starts those again. */
  restart(): Promise<void>;
  /** The server of PostgreSQL, where the locks are in one. */
  readonly server?: PostgresServer;
  stop(): Promise<void>;
}

/** Those that several applications can share. */
export const SHARED_PLACES: Readonly<Record<string, () => Promise<TestPlace>>> = {
  async redis() {
    const server = await RedisServer.start();
    return { locks: { store: 'redis', url: server.url }, ...handlesOf(server) };
  },
  async 'redis by node-redis'() {
    const server = await RedisServer.start();
    return { locks: { store: 'redis', url: server.url, client: 'node-redis' }, ...handlesOf(server) };
  },
  async quorum() {
    const servers = await Promise.all([RedisServer.start(), RedisServer.start(), RedisServer.start()]);
    return {
      locks: { store: 'quorum', urls: servers.map(({ url }) => url) },
      fail: async () => void (await Promise.all(servers.slice(1).map((server) => server.kill()))),
      restart: async () => void (await Promise.all(servers.slice(1).map((server) => server.start()))),
      stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
    };
  },
  async postgres() {
    const server = await PostgresServer.start();
    return { locks: { store: 'postgres', url: server.url }, server, ...handlesOf(server) };
  },
  async mysql() {
    const server = await MySqlServer.start();
    const url = `mysql://root@127.0.0.1:${server.port}/${DATABASE}`;
    return { locks: { store: 'mysql', url }, ...handlesOf(server) };
  },
};

function handlesOf(server: RedisServer | PostgresServer | MySqlServer): Pick<TestPlace, 'fail' | 'restart' | 'stop'> {
  return { fail: () => server.kill(), restart: () => server.start(), stop: () => server.stop() };
}
