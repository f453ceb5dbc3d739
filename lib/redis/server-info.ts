import type { StoreHealth } from '../core/words/lock-health.js';
import type { Product } from '../kit/product.js';

/** The fields of INFO that only one product has, each with its product. */
const OWN_FIELDS = {
  valkey_version: 'Valkey',
  dragonfly_version: 'Dragonfly',
  rlec_version: 'Redis Enterprise',
} as const;

/** KeyDB gives its version as the version of Redis. Only KeyDB tells its number of threads. */
const KEYDB = 'server_threads';

const ACTIVE_REPLICA =
  'KeyDB is an active replica: several servers take writes at once, and the newest write wins, so that two owners may have one lock. ' +
  'Keep the locks in a server without active-replica.';

/** The product of a server, by its reply to INFO; undefined where the reply does not say. */
export function productBy(info: string): Product | undefined {
  for (const [field, name] of Object.entries(OWN_FIELDS)) {
    const own = valueOf(info, field);
    if (own !== undefined) {
      return { name, version: own };
    }
  }
  const version = valueOf(info, 'redis_version');
  if (version === undefined) {
    return undefined;
  }
  if (valueOf(info, KEYDB) === undefined) {
    return { name: 'Redis', version };
  }
  return { name: 'KeyDB', version, ...(valueOf(info, 'role') === 'active-replica' && { warning: ACTIVE_REPLICA }) };
}

/** Whether a server may evict locks, by its reply to INFO; undefined where that does not say. */
export function evictsBy(info: string): boolean | undefined {
  const policy = valueOf(info, 'maxmemory_policy');
  return policy === undefined ? undefined : policy !== 'noeviction';
}

/** Why a server takes no locks, by its reply to INFO; undefined where it does, or where that does not say. */
export function refusesBy(info: string): StoreHealth['refuses'] {
  // A replica in a Cluster sends its callers on to its master.
  if (valueOf(info, 'role') === 'slave' && valueOf(info, 'slave_read_only') === '1' && valueOf(info, 'redis_mode') !== 'cluster') {
    return 'readOnly';
  }
  const [most = 0, used = 0, buffers = 0] = ['maxmemory', 'used_memory', 'mem_not_counted_for_evict'].map((field) =>
    Number(valueOf(info, field) ?? 0),
  );
  return most > 0 && used - buffers > most && evictsBy(info) === false ? 'full' : undefined;
}

/** A field of the reply to INFO. */
export function valueOf(info: string, field: string): string | undefined {
  return new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
