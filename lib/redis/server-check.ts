import { randomUUID } from 'node:crypto';
import { LockConfigurationError } from '../core/words/errors.js';
import type { HoldRecord, LockStore, Operator, Tickets, Turns } from '../core/seam/lock-store.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { evictsBy, productBy, valueOf } from './server-info.js';

/** The oldest version whose scripts may read the clock and then write. */
const OLDEST = 6;

/** The warnings that follow from the reply to INFO; throws `LockConfigurationError` for a server that is too old. */
export function serverWarnings(info: string): string[] {
  const version = valueOf(info, 'redis_version');
  if (version !== undefined && Number.parseInt(version, 10) < OLDEST) {
    throw new LockConfigurationError(`The server of the locks is Redis ${version}. Use Redis ${OLDEST}.0 or later.`);
  }
  return [productBy(info)?.warning, evictionWarning(info)].filter((warning) => warning !== undefined);
}

/** The warning of a server that may evict locks, by its reply to INFO. */
export function evictionWarning(info: string): string | undefined {
  return evictsBy(info) === true
    ? `Redis evicts keys (maxmemory-policy is ${valueOf(info, 'maxmemory_policy')}), and locks with them. ` +
        'Set it to noeviction on the server of the locks.'
    : undefined;
}

/** Checks that the server will do; its reply to INFO. Throws `LockConfigurationError` where it will not. */
export async function checkServer(connection: RedisConnection, warn: (message: string) => void): Promise<string> {
  const info = await connection.plain.info();
  const warnings = serverWarnings(info);
  await connection.plain.tryAsking();
  warnings.forEach(warn);
  return info;
}

/** A hold of a new owner, to try the rights of a store. */
export function startUpHold(key: string): HoldRecord {
  return {
    key,
    owner: randomUUID(),
    id: randomUUID(),
    fence: 0,
    fences: 1,
    ttlMs: 4_000,
    limitMs: 1_000,
    lingering: false,
    // With the rights on done marks.
    unanswered: true,
    by: 'start-up check',
  };
}

/** Runs each script, so that a right that is missing shows at start-up and not in the middle of a section. */
export async function tryRights(store: LockStore & Turns & Tickets & Operator, process: string): Promise<void> {
  const key = `start-up check of ${process}`;
  const hold = startUpHold(key);
  const { fence = 0 } = await store.acquire(hold);
  const joined = { ...hold, fence, id: randomUUID() };
  await store.join(joined);
  await store.renew([joined]);
  await store.inspect(key);
  await store.acquire(startUpHold(key), { name: 'first' });
  await store.release(joined);
  const { reply } = await store.exchange(hold, startUpHold(key), { name: 'second' }, false);
  await reply;
  await store.leave(key, 'first');
  await store.leave(key, 'second');
  const last = await store.acquire(startUpHold(key));
  await store.forceRelease(key, last.fence ?? 0);
  // Commands of one turn are sent as one script, which the server knows from now on. Its errors name no command, so it
  // comes last.
  await Promise.all([store.inspect(key), store.release(joined), store.release(startUpHold(key))]);
}
