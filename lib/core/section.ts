import type { Acquisition } from './acquisition.js';
import type { Frame } from './frame.js';
import type { Lock } from './lock.js';
import type { LockedSection } from './telemetry.js';

/** What telemetry learns of a call that has its locks. A class, since a getter in a literal is made anew for each call. */
export class Section implements LockedSection {
  readonly store: string;
  readonly name: string;
  readonly place: string;
  readonly keys: readonly string[];
  readonly fence: number;
  readonly ttlMs: number;
  readonly waitedMs: number;
  readonly contended: boolean;
  readonly #lock: Lock;

  constructor({ store, call, frame, hasWaited }: Acquisition<Frame>, lock: Lock) {
    this.store = store;
    this.name = call.caller.name;
    this.place = call.caller.site;
    this.keys = frame.keys;
    this.fence = frame.fenceOf(frame.keys[0] as string);
    this.ttlMs = call.ttlMs;
    this.waitedMs = frame.waitedMs;
    this.contended = hasWaited;
    this.#lock = lock;
  }

  get signal(): AbortSignal {
    return this.#lock.signal;
  }
}
