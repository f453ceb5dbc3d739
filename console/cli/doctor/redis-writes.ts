import type { RedisConnection } from '../../../lib/redis/connection/redis-connection.js';
import { isOne, RedisCommands } from '../../../lib/redis/scripts/redis-commands.js';
import { RedisKeys } from '../../../lib/redis/scripts/redis-keys.js';
import { processName } from '../../../lib/kit/process-name.js';
import { readAttempt } from '../../../lib/kit/replies.js';
import type { Writes } from './writes-finding.js';

/** Why a server that answers reads may hold up writes. */
export const PAUSED = 'It answers what is read: CLIENT PAUSE holds up writes, which CLIENT UNPAUSE ends, or a long command does.';

/** The writes that locks need, by a connection to a server or a Cluster. */
export function redisWrites(connection: RedisConnection, prefix: string, isCluster: boolean): Writes {
  const commands = new RedisCommands(new RedisKeys(prefix, isCluster), processName());
  return {
    acquire: (hold) => connection.run(commands.acquire(hold, undefined, false, 0), hold.limitMs, readAttempt),
    release: (hold) => connection.run(commands.release(hold), hold.limitMs, isOne),
  };
}
