import { AsyncResource } from 'node:async_hooks';

/** The most requests in a batch: with more, the process and the server would wait for each other rather than both work. */
const MOST_IN_BATCH = 16;

interface Waiting<Request> {
  readonly request: Request;
  readonly answer: (reply: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/** Sends what one turn of the event loop asks of one server together, and gives each request its own reply. */
export class Batches<Request> {
  /** Gives a reply for each request, or its promise; an `Error` where that one failed. Rejects where none of them was answered. */
  readonly #send: (requests: readonly Request[]) => Promise<readonly unknown[]>;
  #waiting: Waiting<Request>[] = [];
  #endsWithTurn = false;

  constructor(send: (requests: readonly Request[]) => Promise<readonly unknown[]>) {
    // In no caller's context: the requests are those of many.
    this.#send = AsyncResource.bind(send);
  }

  /** The reply to a request that is sent with the others of this turn. */
  ask(request: Request): Promise<unknown> {
    return new Promise((answer, fail) => {
      this.#waiting.push({ request, answer, fail });
      if (this.#waiting.length === MOST_IN_BATCH) {
        this.flush();
      } else if (!this.#endsWithTurn) {
        this.#endsWithTurn = true;
        process.nextTick(this.#endTurn);
      }
    });
  }

  /** Sends what waits, so that it is before what is sent next. */
  flush(): void {
    if (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      void this.#exchange(batch);
    }
  }

  async #exchange(batch: readonly Waiting<Request>[]): Promise<void> {
    try {
      const replies = await this.#send(batch.map(({ request }) => request));
      batch.forEach(({ answer, fail }, at) => {
        const reply = replies[at];
        if (reply instanceof Error) {
          fail(reply);
        } else {
          answer(reply);
        }
      });
    } catch (error) {
      batch.forEach(({ fail }) => fail(error));
    }
  }

  readonly #endTurn = (): void => {
    this.#endsWithTurn = false;
    this.flush();
  };
}
