import { LockConfigurationError } from '../core/words/errors.js';
import type { FoundLock, StoredLock } from '../core/seam/lock-store.js';
import { LONGEST_COMMAND_MS } from '../core/seam/time.js';
import { readStored } from '../kit/replies.js';
import type { Connection } from './connection/connection.js';
import type { RedisCommands } from './scripts/redis-commands.js';
import type { RedisConnection } from './connection/redis-connection.js';
import type { RedisKeys } from './scripts/redis-keys.js';

/** How many locks are looked at in one turn. */
const MOST_AT_ONCE = 100;

/**
 * Searches a server, or each master of a cluster, for locks that are held; on a connection of its own, which it closes.
 * SCAN looks at every key of the database, in steps of 1,000.
 */
export async function* searchLocks(
  connection: RedisConnection,
  commands: RedisCommands,
  prefix: string,
): AsyncGenerator<readonly FoundLock[], void, undefined> {
  try {
    for await (const found of searchKeys(connection, commands.names, prefix)) {
      yield await heldOf(found, (key) => connection.run(commands.inspect(key), LONGEST_COMMAND_MS, readStored));
    }
  } finally {
    connection.close();
  }
}

/** The keys of which something is stored, some at a time: each may be held, reserved, or free by now. */
export async function* searchKeys(connection: RedisConnection, keys: RedisKeys, prefix: string): AsyncGenerator<readonly string[]> {
  const clientPrefix = await connection.plain.keyPrefix();
  for (const node of await connection.plain.masters()) {
    for await (const names of scan(connection, node, keys.lockPattern(clientPrefix))) {
      const found = names.map((name) => keys.keyOf(name, clientPrefix)).filter((key) => key.startsWith(prefix));
      // A step that finds nothing is a part, too: the reader may stop.
      for (let at = 0; at < Math.max(1, found.length); at += MOST_AT_ONCE) {
        yield found.slice(at, at + MOST_AT_ONCE);
      }
    }
  }
}

async function* scan(connection: RedisConnection, node: Connection, pattern: string): AsyncGenerator<readonly string[]> {
  let cursor = '0';
  do {
    const [next, names] = await connection.plain.scan(node, cursor, pattern).catch(refuse);
    cursor = next;
    yield names;
  } while (cursor !== '0');
}

/** The locks of keys that were found. One that is free by now, or only reserved, is held by nobody. */
export async function heldOf(keys: readonly string[], inspect: (key: string) => Promise<StoredLock | null>): Promise<FoundLock[]> {
  const stored = await Promise.all(keys.map(inspect));
  return stored.flatMap((lock, at) => (lock ? [{ ...lock, key: keys[at] as string }] : []));
}

function refuse(error: Error): never {
  if (error instanceof LockConfigurationError) {
    throw new LockConfigurationError(
      'Redis refused SCAN, which the search for locks needs. Grant +scan; without it, only locks of processes that answer can be listed (scan: false).',
      '',
      { cause: error },
    );
  }
  throw error;
}
