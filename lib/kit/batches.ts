import { AsyncResource } from 'node:async_hooks';

/**
 * The most requests in a batch: with more, the process and the server would wait for each other instead of both
 * working.
 */
const MOST_IN_BATCH = 16;

/** A request that waits for its own reply. One of the two methods is called, once. */
export interface Asker {
  answered(reply: unknown): void;
  failed(error: unknown): void;
}

/** Sends the requests of one turn of the event loop to one server together, and gives each request its own reply. */
export class Batches<Request> {
  /**
   * Gives a reply for each request, or its promise; an `Error` for a request that failed. Rejects where none of them
   * was answered.
   */
  readonly #send: (requests: readonly Request[]) => Promise<readonly unknown[]>;
  #requests: Request[] = [];
  /** The askers that wait for the replies, in the order of the requests. */
  #askers: Asker[] = [];
  #endsWithTurn = false;

  constructor(send: (requests: readonly Request[]) => Promise<readonly unknown[]>) {
    // In no caller's context: the requests are those of many callers.
    this.#send = AsyncResource.bind(send);
  }

  /** The reply to a request that is sent with the others of this turn. */
  ask(request: Request): Promise<unknown> {
    return new Promise((answered, failed) => this.add(request, { answered, failed }));
  }

  /** Adds a request that needs no promise. */
  add(request: Request, asker: Asker): void {
    this.#requests.push(request);
    this.#askers.push(asker);
    if (this.#requests.length === MOST_IN_BATCH) {
      this.flush();
    } else if (!this.#endsWithTurn) {
      this.#endsWithTurn = true;
      process.nextTick(this.#endTurn);
    }
  }

  /** Sends the waiting requests, so that they go before later ones. */
  flush(): void {
    if (this.#requests.length > 0) {
      const requests = this.#requests;
      const askers = this.#askers;
      this.#requests = [];
      this.#askers = [];
      this.#send(requests).then(
        (replies) => askers.forEach((asker, at) => pass(replies[at], asker)),
        (error: unknown) => askers.forEach((asker) => asker.failed(error)),
      );
    }
  }

  readonly #endTurn = (): void => {
    this.#endsWithTurn = false;
    this.flush();
  };
}

function pass(reply: unknown, asker: Asker): void {
  if (reply instanceof Promise) {
    reply.then(
      (late) => pass(late, asker),
      (error: unknown) => asker.failed(error),
    );
  } else if (reply instanceof Error) {
    asker.failed(reply);
  } else {
    asker.answered(reply);
  }
}
