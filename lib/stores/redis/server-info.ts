import type { StoreHealth } from '../../core/words/lock-health.js';

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
