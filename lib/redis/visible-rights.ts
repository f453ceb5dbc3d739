import { LockConfigurationError } from '../core/words/errors.js';
import type { RedisConnection } from './connection/redis-connection.js';

/** The commands of locks on a key, with words of the right number after the key. */
const ON_A_KEY: Readonly<Record<string, readonly string[]>> = {
  get: [],
  getset: ['value'],
  set: ['value'],
  del: [],
  exists: [],
  hget: ['field'],
  hset: ['field', 'value'],
  hdel: ['field'],
  hlen: [],
  hmget: ['field'],
  hgetall: [],
  zadd: ['1', 'member'],
  zrange: ['0', '0'],
  zrank: ['member'],
  zrem: ['member'],
  zscore: ['member'],
  pexpire: ['1'],
  pttl: [],
};

/**
 * The rights that the user of a connection lacks, as the server says without running the commands; undefined where the
 * server does not say: before 7.0, and where the user may not ask.
 */
export async function missingRights(connection: RedisConnection, prefix: string): Promise<string[] | undefined> {
  const name = `${await connection.plain.keyPrefix()}${prefix}:lock:{check}`;
  const commands = [
    ['evalsha', '0'.repeat(40), '1', name],
    ['eval', 'return 1', '1', name],
    ...Object.entries(ON_A_KEY).map(([command, words]) => [command, name].concat(words)),
    ['time'],
    ['publish', `${prefix}:wake:check`, 'check'],
    ['subscribe', `${prefix}:wake:check`],
  ];
  const missing: string[] = [];
  try {
    const user = String(await connection.plain.ask('ACL', 'WHOAMI'));
    for (const command of commands) {
      const answer = String(await connection.plain.ask('ACL', 'DRYRUN', user, ...command));
      if (answer !== 'OK') {
        missing.push(rightIn(answer, command[0] as string));
      }
    }
  } catch (error) {
    if (error instanceof LockConfigurationError || isUnknownCommand(error)) {
      return undefined;
    }
    throw error;
  }
  return [...new Set(missing)];
}

/** The right as an ACL writes it: the command, unless it is the key or the channel that is forbidden. */
function rightIn(answer: string, command: string): string {
  return /\bkeys?\b/.test(answer) ? 'the keys ~<prefix>:*' : /\bchannels?\b/.test(answer) ? 'the channels &<prefix>:wake:*' : `+${command}`;
}

function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && /unknown (sub)?command|ERR syntax/i.test(String((error.cause as Error | undefined)?.message));
}
