import { Batches } from '../kit/batches.js';
import type { Dialect } from './dialect.js';
import type { Operation } from './operation.js';
import type { Request, Statements } from './statements.js';

/** The calls of one operation. Those of one turn of the event loop that have the same time limit are one statement. */
export class BatchedCalls {
  readonly #statements: Statements;
  readonly #dialect: Dialect;
  readonly #operation: Operation;
  readonly #batch: Operation;
  readonly #batches = new Batches<Request>((requests) => this.#send(requests));
  /** The limit of those that wait to be sent, in milliseconds. */
  #limitMs = 0;

  /** `batch` carries out several calls of `operation`. */
  constructor(statements: Statements, dialect: Dialect, operation: Operation, batch: Operation) {
    this.#statements = statements;
    this.#dialect = dialect;
    this.#operation = operation;
    this.#batch = batch;
  }

  /** The answer to a call. Rejects with a lock error. */
  ask(request: Request): Promise<unknown> {
    if (request.limitMs !== this.#limitMs) {
      this.#batches.flush();
      this.#limitMs = request.limitMs;
    }
    return this.#batches.ask(request);
  }

  async #send(requests: readonly Request[]): Promise<readonly unknown[]> {
    const [first] = requests as readonly [Request];
    return requests.length === 1 ? [this.#statements.call(this.#operation, first)] : this.#sendTogether(requests, first);
  }

  /**
   * Sends the batch; calls that the batch left out are sent alone. A batch that the server refused carried nothing out,
   * so all its calls are sent alone.
   */
  async #sendTogether(requests: readonly Request[], { limitMs, values: parameters }: Request): Promise<readonly unknown[]> {
    const giveUpAt = performance.now() + limitMs;
    const sendAlone = (request: Request): Promise<unknown> =>
      this.#statements.call(this.#operation, { ...request, limitMs: giveUpAt - performance.now() });
    const values = parameters.map((_, at) => requests.map((request) => request.values[at] ?? ''));
    try {
      const replies = (await this.#statements.send(this.#batch, { key: '', limitMs, values })) as readonly unknown[];
      return requests.map((request, at) => replies[at] ?? sendAlone(request));
    } catch (error) {
      return error instanceof Error && this.#dialect.isRefusal(error)
        ? requests.map(sendAlone)
        : requests.map(({ key }) => this.#statements.errorOf(error, key));
    }
  }
}
