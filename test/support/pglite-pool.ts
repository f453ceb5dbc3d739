import { PGlite } from '@electric-sql/pglite';
import type { ListeningClient } from '../../lib/postgres/listening/listen-connection';
import type { PostgresClient, PostgresPool } from '../../lib/postgres/postgres-pool';
import type { Row } from '../../lib/sql/dialect';

/** PGlite, a PostgreSQL in this process with a single connection, with what the store uses of a pool. */
export class PglitePool implements PostgresPool {
  readonly options = { max: 1, connectionTimeoutMillis: 5_000 };
  readonly Client: new () => ListeningClient;
  readonly #database: PGlite;

  private constructor(database: PGlite) {
    this.#database = database;
    this.Client = class implements ListeningClient {
      #heard: (message: { payload: string }) => void = () => undefined;
      readonly #unlistens: (() => Promise<void>)[] = [];

      async connect(): Promise<void> {}

      on(event: string, listener: (...args: never[]) => void): void {
        if (event === 'notification') {
          this.#heard = listener as (message: { payload: string }) => void;
        }
      }

      async query(text: string, values: readonly unknown[] = []): Promise<void> {
        const [, channel] = /^LISTEN (".*")$/.exec(text) ?? [];
        if (channel === undefined) {
          await database.query(text, [...values]);
        } else {
          this.#unlistens.push(await database.listen(channel, (payload) => this.#heard({ payload })));
        }
      }

      async end(): Promise<void> {
        await Promise.all(this.#unlistens.map((unlisten) => unlisten()));
      }
    };
  }

  /** Resolves once it is ready: it loads files of its own, which jest refuses between two tests. */
  static async start(): Promise<PglitePool> {
    return new PglitePool(await PGlite.create());
  }

  connect(connected: Parameters<PostgresPool['connect']>[0]): void {
    const client: PostgresClient = {
      query: (text, values, answered) => {
        this.#send(text, values).then(
          (rows) => answered(null, { rows }),
          (error: Error) => answered(error, { rows: [] }),
        );
      },
      on: () => undefined,
      removeListener: () => undefined,
      release: () => undefined,
    };
    connected(undefined, client, () => undefined);
  }

  query(text: string): Promise<unknown> {
    return this.#database.exec(text);
  }

  on(): void {}

  removeListener(): void {}

  end(): Promise<void> {
    return this.#database.close();
  }

  async #send(text: string, values: readonly unknown[] | undefined): Promise<Row[]> {
    if (!values) {
      await this.#database.exec(text);
      return [];
    }
    const { rows } = await this.#database.query<Row>(text, [...values]);
    return rows;
  }
}
