import type { Subscription } from '../../../lib/kit/rechecks.js';
import type { Process } from './process.js';

/** The server's end of a subscriber connection. */
export interface Listener {
  readonly process: Process;
  /** Half-open: the server still counts it, but nothing arrives. */
  isDeaf: boolean;
}

/** How long it takes until a connection that was lost is made anew, in milliseconds. */
const RECONNECT_MS = { least: 50, most: 500 } as const;

/** A process's subscription to its messages: trusted from its acknowledgement until it is seen closed. */
export class Subscriber implements Subscription {
  readonly #process: Process;
  readonly #changed: () => void;
  #listener: Listener | undefined;
  #isAcknowledged = false;

  /** `changed`: messages may have been lost, or can be had from now on. */
  constructor(process: Process, changed: () => void) {
    this.#process = process;
    this.#changed = changed;
  }

  get acknowledged(): boolean {
    return this.#isAcknowledged;
  }

  subscribe(): void {
    const { world } = this.#process;
    const listener: Listener = { process: this.#process, isDeaf: false };
    this.#listener = listener;
    world.timeline.after(1, () => {
      if (this.#listener === listener && !listener.isDeaf) {
        world.server.listeners.add(listener);
      }
      world.timeline.after(1, () =>
        this.#process.handle(() => {
          if (this.#listener === listener && !listener.isDeaf) {
            this.#isAcknowledged = true;
            this.#changed();
          }
        }),
      );
    });
  }

  /** The connection breaks: the server counts it for some time yet, and the process notices later. */
  break(countedMs: number, noticedMs: number): void {
    const listener = this.#listener;
    if (listener) {
      listener.isDeaf = true;
      this.#forget(listener, countedMs);
      this.#process.world.timeline.after(noticedMs, () =>
        this.#process.handle(() => {
          if (this.#listener === listener) {
            this.#closed();
          }
        }),
      );
    }
  }

  /** The process gives the connection up. */
  distrust(): void {
    if (this.#listener && this.#isAcknowledged) {
      this.#forget(this.#listener, 1);
      this.#closed();
    }
  }

  #forget(listener: Listener, afterMs: number): void {
    const { timeline, server } = this.#process.world;
    timeline.after(afterMs, () => server.listeners.delete(listener));
  }

  #closed(): void {
    const { world } = this.#process;
    this.#isAcknowledged = false;
    this.#listener = undefined;
    this.#changed();
    const pauseMs = world.random.between(RECONNECT_MS.least, RECONNECT_MS.most);
    world.timeline.after(pauseMs, () => this.#process.handle(() => this.subscribe()));
  }
}
