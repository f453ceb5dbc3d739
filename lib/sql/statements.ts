import type { LockError } from '../core/words/errors.js';
import { ServerClock } from '../kit/server-clock.js';
import type { Dialect, Row, Sql } from './dialect.js';
import { toLockError } from './errors.js';
import type { Operation } from './operation.js';
import { runStatement, type Replied } from './statement.js';

/** How often a statement is sent that the server refuses because of a concurrent one. */
const MOST_TRIES = 10;

/** How long a statement may take, and the key that its error names. */
export interface StatementLimit {
  /** The key that it is about; '' for none. */
  readonly key: string;
  readonly limitMs: number;
}

/** A call of an operation, with its values in the order of the parameters. */
export interface Request extends StatementLimit {
  readonly values: readonly unknown[];
}

/** Sends statements to one database, and reads the server's clock from their replies. */
export class Statements {
  readonly clock = new ServerClock();
  readonly #dialect: Dialect;
  readonly #texts = new Map<Operation, string>();

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Calls an operation, and resolves to its answer. Rejects with a lock error. */
  async call(operation: Operation, request: Request): Promise<unknown> {
    try {
      return await this.send(operation, request);
    } catch (error) {
      throw this.errorOf(error, request.key);
    }
  }

  /** Calls an operation once. Rejects with the error of the attempt. */
  async send(operation: Operation, { key, values, limitMs }: Request): Promise<unknown> {
    const { reply, sentAt } = await this.#try({ sql: this.#textOf(operation), values }, limitMs);
    const { answer, serverMs } = this.#dialect.answerIn(reply, key);
    this.clock.read(serverMs, sentAt);
    return answer;
  }

  /** Runs a statement that is no operation, and resolves to its rows. Rejects with a lock error. */
  async run(statement: Sql, { key, limitMs }: StatementLimit): Promise<readonly Row[]> {
    try {
      return (await this.#try(statement, limitMs)).reply as readonly Row[];
    } catch (error) {
      throw this.errorOf(error, key);
    }
  }

  /** The lock error for a failure in a call about a key. */
  errorOf(error: unknown, key: string): LockError {
    return toLockError(error, key, this.#dialect);
  }

  /** Sends it again where the server refused it because of a concurrent one. */
  async #try(statement: Sql, limitMs: number): Promise<Replied> {
    const giveUpAt = performance.now() + limitMs;
    for (let tries = 1; ; tries++) {
      try {
        return await runStatement(this.#dialect, statement, giveUpAt - performance.now());
      } catch (error) {
        if (!this.#dialect.isConflict(error) || tries >= MOST_TRIES || performance.now() >= giveUpAt) {
          throw error;
        }
      }
    }
  }

  /** Kept, since it costs more to make than to send. */
  #textOf(operation: Operation): string {
    let text = this.#texts.get(operation);
    if (text === undefined) {
      text = this.#dialect.callOf(operation);
      this.#texts.set(operation, text);
    }
    return text;
  }
}
