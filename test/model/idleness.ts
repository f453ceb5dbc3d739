import type { Simulation } from './simulation.js';

/** A turn message, and the attempt that it makes, behind one that is in flight. */
const MESSAGES = 4;
/** The longest re-check, after which a process is among the first two. */
const RECHECK_MS = 2_000;
/** For each place that did not claim: the claim window, and a re-check of the first two. */
const SKIP_MS = 1_000 + 300;
/** A command given up after 1 s, its pause, and one message more that was late meanwhile. */
const FAULT_MS = 1_500;
/** How long before a lock became free a fault may have happened that still delays whoever waits for it. */
const FAULT_REACH_MS = 3_500;

/** Checks that a lock is not left free while a process waits for it that is neither stopped nor cut off. */
export class Idleness {
  #freeSince: number | undefined = 0;
  #takenUntil = 0;
  /** Places that were given the lock since it is free: none may be given it for ever. */
  readonly #turned = new Set<string>();

  turned(place: string): void {
    this.#turned.add(place);
  }

  /** What the server has; `remainingMs` of the lease, where there is one. */
  observed({ timeline: { now }, waitingSince, network, history }: Simulation, remainingMs: number | undefined): void {
    if (this.#freeSince === undefined && remainingMs === undefined) {
      this.#freeSince = Math.min(now, this.#takenUntil);
    }
    if (this.#freeSince !== undefined && waitingSince !== undefined) {
      this.#check(now - Math.max(this.#freeSince, waitingSince), this.#freeSince, MESSAGES * network.latencyMs, history.faults);
    }
    if (remainingMs !== undefined) {
      this.#freeSince = undefined;
      this.#takenUntil = now + remainingMs;
      this.#turned.clear();
    }
  }

  #check(idleMs: number, freeSince: number, messagesMs: number, faults: readonly number[]): void {
    if (idleMs < messagesMs) {
      return;
    }
    const near = faults.filter((at) => at > freeSince - FAULT_REACH_MS).length;
    const places = Math.max(1, this.#turned.size);
    const calmMs = places * messagesMs;
    const mostMs = faults.length === 0 ? calmMs : calmMs + RECHECK_MS + places * SKIP_MS + near * FAULT_MS;
    if (idleMs > mostMs) {
      throw new Error(`stalled: free for ${idleMs.toFixed(1)} ms (at most ${mostMs}) while a live process waits`);
    }
  }
}
