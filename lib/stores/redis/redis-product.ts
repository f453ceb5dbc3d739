import type { Product } from '../kit/product.js';
import { valueOf } from './server-info.js';

/** The field of INFO that one product alone has. */
const OWN_FIELDS = {
  valkey_version: 'Valkey',
  dragonfly_version: 'Dragonfly',
  rlec_version: 'Redis Enterprise',
} as const;

/** KeyDB gives its version as that of Redis, and alone says how many threads it has. */
const KEYDB = 'server_threads';

const ACTIVE_REPLICA =
  'KeyDB is an active replica: several servers take writes at once, and the newest write wins, so that two owners may have one lock. ' +
  'Keep the locks in a server without active-replica.';

/** What the server is, by its reply to INFO; undefined where that does not say. */
export function productBy(info: string): Product | undefined {
  for (const [field, name] of Object.entries(OWN_FIELDS)) {
    const own = valueOf(info, field);
    if (own !== undefined) {
      return { name, version: own };
    }
  }
  const version = valueOf(info, 'redis_version');
  if (version === undefined || valueOf(info, KEYDB) === undefined) {
    return version === undefined ? undefined : { name: 'Redis', version };
  }
  return { name: 'KeyDB', version, ...(valueOf(info, 'role') === 'active-replica' && { warning: ACTIVE_REPLICA }) };
}
