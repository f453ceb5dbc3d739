import type { Answered } from '../sql/dialect.js';

/** The options of a statement that keep a pool's options from changing how replies are read. */
export interface StatementOptions {
  readonly sql: string;
  readonly values?: readonly unknown[];
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly namedPlaceholders: false;
  /** A function, since the driver prefers the pool's own `typeCast` to anything else. */
  readonly typeCast: (field: unknown, next: () => unknown) => unknown;
}

/** The part of a connection of a pool that the store uses. */
export interface MySqlConnection {
  readonly threadId?: number | null;
  execute(options: StatementOptions, answered: Answered): unknown;
  query(options: StatementOptions, answered: Answered): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
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
