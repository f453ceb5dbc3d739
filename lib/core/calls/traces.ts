import { tracingChannel } from 'node:diagnostics_channel';
import type { Caller } from '../words/caller.js';

/**
 * What subscribers of the tracing channels `'nestjs-distributed-lock:wait'` and `'nestjs-distributed-lock:hold'` get.
 * Owners and tickets are not in it.
 */
export interface TracedLock {
  readonly name: string;
  /** The name under which the store is registered. */
  readonly store: string;
  readonly site: string;
  /** The key that the call waits for, or the first of those that it has. */
  readonly key: string;
  /** Undefined as long as the call waits, and where it was refused. */
  fence: number | undefined;
}

const waits = tracingChannel<unknown, TracedLock>('nestjs-distributed-lock:wait');

/** The wait of a call for its locks, on the tracing channel: from when it first waits until it has them, or gives up. */
export class TracedWait {
  readonly #context: TracedLock;
  #end!: (refusal: unknown) => void;

  private constructor(context: TracedLock) {
    this.#context = context;
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (refusal) => (refusal === undefined ? resolve() : reject(refusal as Error));
    });
    waits.tracePromise(() => ended, context).catch(() => undefined);
  }

  /** Undefined where nobody has subscribed, and for a candidate, which may wait for days. */
  static begin(store: string, key: string, { name, site, leads }: Caller): TracedWait | undefined {
    return waits.hasSubscribers && !leads ? new TracedWait({ name, store, site, key, fence: undefined }) : undefined;
  }

  /** `fence` is that of the first key, where there is one. */
  end(refusal: unknown, fence: number | undefined): void {
    this.#context.fence = fence;
    this.#end(refusal);
  }
}
