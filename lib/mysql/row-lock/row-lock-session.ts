/**
 * A connection inside a transaction: a connection of `mysql2` after `BEGIN`, the `EntityManager` or `QueryRunner` of a
 * TypeORM transaction, or an object with a `query` that hands the statement to the transaction object of another
 * library.
 */
export interface RowLockClient {
  query(text: string, values: unknown[]): unknown;
  /** The client with promises, which a connection of `mysql2` with callbacks has. */
  promise?(): { query(text: string, values: unknown[]): unknown };
}

/** The connection of a transaction, whichever library it comes from. */
export class RowLockSession {
  readonly #client: Pick<RowLockClient, 'query'>;
  #lockWait: number | undefined;

  constructor(client: RowLockClient) {
    this.#client = typeof client.promise === 'function' ? client.promise() : client;
  }

  /** The first column of the first row of the answer; undefined where there is none. */
  async value(text: string, values: unknown[] = []): Promise<string | undefined> {
    return firstValue(await this.#client.query(text, values));
  }

  /** Runs `body`, and puts back the setting that `limitWait` has changed. */
  async keepingLockWait<T>(body: () => Promise<T>): Promise<T> {
    const before = Number(await this.value('SELECT @@SESSION.innodb_lock_wait_timeout AS seconds'));
    this.#lockWait = before;
    let result: T;
    try {
      result = await body();
    } catch (error) {
      // The first error tells more.
      await this.limitWait(before).catch(() => undefined);
      throw error;
    }
    await this.limitWait(before);
    return result;
  }

  /** Sets how many seconds a statement waits for a row. The server takes whole ones. */
  async limitWait(seconds: number): Promise<void> {
    if (seconds !== this.#lockWait) {
      await this.value(`SET SESSION innodb_lock_wait_timeout = ${seconds}`);
      this.#lockWait = seconds;
    }
  }
}

/** Libraries answer with rows, or with rows and fields; a row is an object, or a list. */
function firstValue(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null) {
    return answer === undefined || answer === null ? undefined : String(answer as string | number | bigint);
  }
  return firstValue(Object.values(answer)[0]);
}
