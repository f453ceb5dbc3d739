import { checkOptions } from '../core/words/check-options.js';
import { kindOf } from '../core/words/shown.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { RECHECK_MS } from '../kit/protocol.js';
import type { PostgresPool } from './postgres-pool.js';
import { checkSchema, type SchemaOptions } from './schema-name.js';

/** Where to listen: an address such as `'postgres://…'`, or the options of a `pg.Client`. */
export type ListenAddress = string | object;

/** Options of the PostgreSQL store. */
export interface PostgresLockStoreOptions extends SchemaOptions {
  /**
   * Where to listen for turns, over one connection to each database. Where the pool leads to a pgbouncer in transaction
   * mode, pass the address of the server itself, or `false` to poll every 300 ms instead; for several pools, a list
   * with an address for each. Default: a connection made with the options of the pool.
   */
  listen?: false | ListenAddress | readonly ListenAddress[] | undefined;
}

/** Where to listen for each pool: an address, undefined for the pool's own, or false for nowhere. */
export function checkPostgresOptions(
  options: PostgresLockStoreOptions,
  pools: readonly PostgresPool[],
): { schema: string; listen: readonly (ListenAddress | false | undefined)[] } {
  checkOptions('PostgresLockStore', options, { schema: true, listen: true });
  const { schema, listen } = options;
  const addresses: readonly (ListenAddress | false | undefined)[] = Array.isArray(listen)
    ? (listen as readonly ListenAddress[])
    : pools.map(() => listen);
  const isOne = pools.length === 1 || Array.isArray(listen) || listen === false || listen === undefined;
  if (!isOne || addresses.length !== pools.length || !addresses.every(isAddress)) {
    throw new LockConfigurationError(
      `PostgresLockStore: listen names ${kindOf(listen)} for ${pools.length} pool(s). Pass false, or for each pool an address such as 'postgres://…' or the options of a pg.Client.`,
    );
  }
  if (pools.some((pool, at) => addresses[at] !== false && typeof (pool as { Client?: unknown }).Client !== 'function')) {
    throw new LockConfigurationError(
      `PostgresLockStore: the pool has no Client to make a connection with for listening. Pass a Pool of pg, or listen: false to poll every ${RECHECK_MS.soon} ms instead.`,
    );
  }
  if (pools.some(isBlind)) {
    throw new LockConfigurationError(
      'PostgresLockStore: the pool is of a pg before 8.21, which does not say whether a connection is inside a transaction: a lock that is granted there is one for nobody else. Install pg 8.21 or later.',
    );
  }
  return { schema: checkSchema(schema), listen: addresses };
}

/** Whether its connections are of a version of `pg` that does not know the state of a transaction. */
function isBlind(pool: PostgresPool): boolean {
  const client = (pool as { Client?: { prototype?: { escapeLiteral?: unknown; getTransactionStatus?: unknown } } }).Client?.prototype;
  return typeof client?.escapeLiteral === 'function' && typeof client.getTransactionStatus !== 'function';
}

function isAddress(value: unknown): boolean {
  return value === false || value === undefined || typeof value === 'string' || (typeof value === 'object' && value !== null);
}
