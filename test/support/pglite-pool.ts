import { PGlite } from '@electric-sql/pglite';
import type { ListeningClient } from '../../lib/postgres/listener';
import type { PostgresClient, PostgresPool, PostgresQuery } from '../../lib/postgres/postgres-pool';

/** PGlite, a PostgreSQL in this process with a single connection, with what the store uses of a pool. */
export class PglitePool implements PostgresPool {
  readonly options = { max: 1 };
  readonly Client: new () => ListeningClient;
  readonly #database = new PGlite();

  constructor() {
    const database = this.#database;
    this.Client = class implements ListeningClient {
      #heard: (message: { payload: string }) => void = () => undefined;
      #unlisten = async (): Promise<void> => undefined;

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
          this.#unlisten = await database.listen(channel, (payload) => this.#heard({ payload }));
        }
      }

      end(): Promise<void> {
        return this.#unlisten();
      }
    };
  }

  async connect(): Promise<PostgresClient> {
    return {
      query: (query, answered) => {
        this.#send(query).then(
          (rows) => answered(null, { rows }),
          (error: Error) => answered(error, { rows: [] }),
        );
      },
      on: () => undefined,
      removeListener: () => undefined,
      release: () => undefined,
    };
  }

  query(text: string): Promise<unknown> {
    return this.#database.exec(text);
  }

  on(): void {}

  removeListener(): void {}

  end(): Promise<void> {
    return this.#database.close();
  }

  async #send({ text, values }: PostgresQuery): Promise<(string | null)[][]> {
    if (!values) {
      await this.#database.exec(text);
      return [];
    }
    // What comes as text from a server comes as values from PGlite.
    const asText = Object.fromEntries([16, 20, 23, 25, 114].map((type) => [type, (value: string) => value]));
    const { rows } = await this.#database.query<(string | null)[]>(text, [...values], { rowMode: 'array', parsers: asText });
    return rows;
  }
}
