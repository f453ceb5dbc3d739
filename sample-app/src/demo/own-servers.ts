import type { LockPlace } from '../lock-place.js';
import { StartUpError } from '../start-up.error.js';
import { startMySqlServer } from './mysql-server.js';
import { startPostgresServer } from './postgres-server.js';
import { startRedisServer } from './redis-server.js';
import type { Server } from './server.js';

/** Servers of the demo's own, for a store whose address the environment does not tell. */
export interface OwnServers {
  /** The variables that tell their addresses. */
  readonly environment: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

interface Need {
  readonly variable: string;
  readonly count: number;
  readonly command: string;
  /** Undefined where there is no such command. */
  start(): Promise<Server | undefined>;
}

const NEEDS: Readonly<Record<LockPlace['store'], Need | undefined>> = {
  memory: undefined,
  redis: { variable: 'REDIS_URL', count: 1, command: 'redis-server', start: startRedisServer },
  // Of three, one may fail.
  quorum: { variable: 'REDIS_URLS', count: 3, command: 'redis-server', start: startRedisServer },
  postgres: { variable: 'DATABASE_URL', count: 1, command: 'postgres', start: startPostgresServer },
  mysql: { variable: 'MYSQL_URL', count: 1, command: 'mariadbd', start: startMySqlServer },
};

/**
 * Without `LOCK_STORE`, a Redis server where there is one. Throws `StartUpError` where `LOCK_STORE` asks for a server
 * that cannot be started.
 */
export async function startServers(environment: NodeJS.ProcessEnv): Promise<OwnServers> {
  const { LOCK_STORE } = environment;
  const need = NEEDS[(LOCK_STORE || 'redis') as LockPlace['store']];
  if (!need || environment[need.variable]) {
    return manage([]);
  }
  const started = await Promise.all(Array.from({ length: need.count }, () => need.start()));
  const servers = started.filter((server) => server !== undefined);
  if (servers.length < need.count && LOCK_STORE) {
    await manage(servers).stop();
    throw new StartUpError(
      `LOCK_STORE is "${LOCK_STORE}", ${need.variable} is not set, and no ${need.command} was found. Set the one or install the other.`,
    );
  }
  return manage(servers, need.variable);
}

function manage(servers: readonly Server[], variable?: string): OwnServers {
  return {
    environment: variable && servers.length > 0 ? { [variable]: servers.map((server) => server.url).join(',') } : {},
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
