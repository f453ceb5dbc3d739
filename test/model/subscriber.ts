import type { Process } from './process.js';
import type { Listener } from './server.js';

/** A process's subscriber connection: trusted from its acknowledgement until it is seen closed. */
export class Subscriber {
  #listener: Listener | undefined;
  acknowledged = false;

  constructor(readonly process: Process) {}

  subscribe(): void {
    const { process } = this;
    const { timeline, network, server } = process.simulation;
    const listener: Listener = { process, deaf: false };
    this.#listener = listener;
    timeline.after(network.delay(), () => {
      if (this.#listener === listener) {
        server.listeners.add(listener);
      }
      timeline.after(network.delay(), () =>
        process.handle(() => {
          if (this.#listener === listener) {
            this.acknowledged = true;
            process.line.attemptIfPaused();
          }
        }),
      );
    });
  }

  /** The client gives the connection up; the server learns of it when it may. */
  distrust(): void {
    if (this.acknowledged) {
      this.#forget(this.process.simulation.random.between(0.1, 50));
      this.#onClosed();
    }
  }

  /** The connection breaks: for the server at once, for the client a little later. */
  cut(): void {
    this.#fail(0, 0.1, 50);
  }

  /** The connection is half-open; the client's pings notice in the end, and the server even later. */
  deafen(): void {
    const forgottenMs = this.process.simulation.random.between(10_000, 40_000);
    if (this.#listener) {
      this.#fail(forgottenMs, 100, 10_000);
    }
  }

  #fail(forgottenMs: number, leastMs: number, mostMs: number): void {
    const listener = this.#forget(forgottenMs);
    if (listener) {
      listener.deaf = true;
    }
    const lost = () => {
      if (this.#listener === listener) {
        this.#onClosed();
      }
    };
    this.process.simulation.timeline.after(this.process.simulation.random.between(leastMs, mostMs), () => this.process.handle(lost));
  }

  #forget(afterMs: number): Listener | undefined {
    const { timeline, server } = this.process.simulation;
    const listener = this.#listener;
    if (listener) {
      timeline.after(afterMs, () => server.listeners.delete(listener));
    }
    return listener;
  }

  #onClosed(): void {
    this.acknowledged = false;
    this.#listener = undefined;
    this.process.line.attemptIfPaused();
    this.process.after(this.process.simulation.random.between(50, 500), () => this.subscribe());
  }
}
