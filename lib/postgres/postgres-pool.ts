import type { Row } from '../sql/dialect.js';

/** The part of a connection of a pool that the store uses. */
export interface PostgresClient {
  query(
    text: string,
    values: readonly unknown[] | undefined,
    answered: (error: Error | null | undefined, result: { readonly rows: readonly Row[] }) => void,
  ): void;
  on(event: 'error' | 'notice', listener: (error: Error) => void): unknown;
  removeListener(event: 'error' | 'notice', listener: (error: Error) => void): unknown;
  /** The number and the key of the server's process, by which a statement is cancelled. */
  readonly processID?: unknown;
  readonly secretKey?: unknown;
  /** `'I'` outside of a transaction. A pool that only the store uses, such as PGlite, need not have it. */
  getTransactionStatus?(): string | null;
  /** Returns the connection to the pool, or ends it. */
  release(end?: boolean | Error): void;
}

/** A pool of `pg`. Recognized by its methods, so that pools of another copy of `pg` are accepted as well. */
export interface PostgresPool {
  connect(connected: (error: Error | undefined, client: PostgresClient | undefined, done: (end?: boolean | Error) => void) => void): void;
  query(text: string): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  readonly options: object;
}

/** The further members of a pool of `pg`. */
export interface PoolState {
  readonly options: { readonly max?: number; readonly connectionTimeoutMillis?: number };
  readonly totalCount?: number;
  readonly idleCount?: number;
  readonly Client?: unknown;
}

/** The pool that a user passed; undefined where the value is no pool. */
export function poolOf(value: unknown): PostgresPool | undefined {
  const pool = value as Partial<PostgresPool> | null | undefined;
  const methods = [pool?.connect, pool?.query, pool?.on];
  const isPool = methods.every((method) => typeof method === 'function') && typeof pool?.options === 'object' && pool.options !== null;
  return isPool ? (pool as PostgresPool) : undefined;
}
