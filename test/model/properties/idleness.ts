import { CLAIM_MS, RECHECK_MS } from '../../../lib/kit/protocol.js';
import type { World } from './world.js';

/** A message of a turn, and the attempt that it makes, behind one that is in flight: while nothing goes wrong. */
const MESSAGES_MS = 50;
/** For each place that did not claim its turn: the claim window, and a recheck of the first two. */
const SKIP_MS = CLAIM_MS + RECHECK_MS.soon;
/** The time after a command without an answer: a pause, and one more message that was late meanwhile. */
const PAUSE_MS = 500;

/**
 * For how long one key has been free, and whether that is too long: a process waits for it that is neither stopped nor
 * cut off.
 */
export class Idleness {
  readonly #world: World;
  #freeSince: number | undefined = 0;
  /** Places that were notified of their turn since the key is free: none may be for ever. */
  readonly #turned = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  turned(place: string): void {
    this.#turned.add(place);
  }

  observed(isFree: boolean): void {
    if (!isFree) {
      this.#freeSince = undefined;
      this.#turned.clear();
    } else {
      this.#freeSince ??= this.#world.now;
    }
  }

  /** For how long the key was free while somebody waited since then, if that is too long. */
  tooLong(waitingSince: number): number | undefined {
    if (this.#freeSince === undefined) {
      return undefined;
    }
    const idleMs = this.#world.now - Math.max(this.#freeSince, waitingSince);
    return idleMs > MESSAGES_MS && idleMs > this.#mostMs(this.#freeSince) ? idleMs : undefined;
  }

  #mostMs(freeSince: number): number {
    const { faults, commandLimitMs } = this.#world;
    const places = Math.max(1, this.#turned.size);
    if (faults.count === 0) {
      return places * MESSAGES_MS;
    }
    const faultMs = commandLimitMs + PAUSE_MS;
    // A fault that was over before the key became free may still delay whoever waits for it.
    const near = faults.since(freeSince - RECHECK_MS.late - faultMs);
    return places * (MESSAGES_MS + SKIP_MS) + RECHECK_MS.late + near * faultMs;
  }
}
