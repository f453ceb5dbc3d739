import type { Answered, PooledConnection } from '../sql/dialect.js';

/** The part of a connection of a pool that the store uses. */
export interface MySqlConnection extends PooledConnection {
  readonly threadId?: number | null;
  execute(options: object, answered: Answered): unknown;
  query(options: object, answered: Answered): unknown;
  release(): void;
  destroy(): void;
}

/** A pool of `mysql2`, as its callbacks have it. */
export interface CallbackPool {
  getConnection(connected: (error: Error | null, connection: MySqlConnection | undefined) => void): void;
  execute(...args: never[]): unknown;
  readonly config: { readonly connectionLimit?: number; readonly connectionConfig: { readonly database?: string | undefined } };
}

/**
 * A pool of `mysql2`, with callbacks or promises. Recognized by its methods, so that pools of another copy of `mysql2`
 * are accepted.
 */
export interface MySqlPool {
  getConnection(...args: never[]): unknown;
  execute(...args: never[]): unknown;
}

/** The pool with callbacks that is in a pool; undefined where something is not a pool of `mysql2`. */
export function callbackPool(value: unknown): CallbackPool | undefined {
  const given = value as { readonly pool?: unknown } | null | undefined;
  const pool = (given?.pool ?? given) as Partial<CallbackPool> | null | undefined;
  const isPool =
    typeof pool?.getConnection === 'function' && typeof pool.execute === 'function' && typeof pool.config?.connectionConfig === 'object';
  return isPool ? (pool as CallbackPool) : undefined;
}
