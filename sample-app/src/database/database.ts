import type { OnApplicationShutdown } from '@nestjs/common';
import { TransactionScope, type TransactionEnd } from 'nestjs-distributed-lock';
import { AsyncLocalStorage } from 'node:async_hooks';

/** Runs one statement with `$1`, `$2` … filled in, and gives its rows. */
export type Query = (sql: string, params: readonly unknown[]) => Promise<readonly unknown[]>;

/**
 * The part of a database that the application needs: statements and transactions. PGlite and PostgreSQL both have it.
 */
export abstract class Database implements OnApplicationShutdown {
  readonly #transaction = new AsyncLocalStorage<Query>();
  readonly #scope = new TransactionScope();
  #closed: Promise<void> | undefined;

  /** The end of the transaction of the calling code, if there is one: what locks wait for. */
  readonly transactionEnd: TransactionEnd = this.#scope.current;

  /** Which database this is, for people; without credentials. */
  abstract readonly description: string;

  /** Runs a statement, in the transaction of the calling code if there is one. */
  async query<Row>(sql: string, params: readonly unknown[] = []): Promise<readonly Row[]> {
    const query = this.#transaction.getStore() ?? ((...statement) => this.run(...statement));
    return (await query(sql, params)) as readonly Row[];
  }

  /**
   * Runs `body` in a transaction: committed when it resolves, rolled back when it rejects. Not for use inside another
   * transaction.
   */
  transaction<T>(body: () => Promise<T>): Promise<T> {
    return this.#scope.run(() => this.runTransaction((query) => this.#transaction.run(query, body)));
  }

  /** Two applications of a test may share one database, so it may be closed twice. */
  onApplicationShutdown(): Promise<void> {
    return (this.#closed ??= this.close());
  }

  protected abstract run(...statement: Parameters<Query>): ReturnType<Query>;
  protected abstract runTransaction<T>(body: (query: Query) => Promise<T>): Promise<T>;
  protected abstract close(): Promise<void>;
}
