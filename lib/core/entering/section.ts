import type { Acquisition } from './acquisition.js';
import type { Lease } from '../leases/lease.js';
import type { Lock } from '../words/lock.js';
import { onceOnly, type Body } from '../calls/run-once.js';
import type { LockedSection } from '../words/lock-telemetry.js';

/** What telemetry learns of a call that has its locks. A class, since a getter in a literal is made anew for each call. */
class Section implements LockedSection {
  readonly store: string;
  readonly name: string;
  readonly site: string;
  readonly keys: readonly string[];
  readonly fence: number;
  readonly ttlMs: number;
  readonly waitedMs: number;
  readonly contended: boolean;
  readonly #lock: Lock;

  constructor({ store, call, frame, hasWaited }: Acquisition, lock: Lock) {
    this.store = store;
    this.name = call.caller.name;
    this.site = call.caller.site;
    this.keys = frame.keys;
    this.fence = (frame.taken[0] as Lease).fence;
    this.ttlMs = call.ttlMs;
    this.waitedMs = frame.waitedMs;
    this.contended = hasWaited;
    this.#lock = lock;
  }

  get signal(): AbortSignal {
    return this.#lock.signal;
  }
}

/** Runs code around that of a section; both give what `body` returns or throws. */
export interface SectionFollower {
  section<T>(section: LockedSection, body: () => T): T;
  resume<T>(section: LockedSection, body: () => T): T;
}

/** Runs bodies, as sections where telemetry follows them. */
export class Sections {
  /** Undefined where nothing follows. */
  readonly #telemetry: SectionFollower | undefined;

  constructor(telemetry: SectionFollower | undefined) {
    this.#telemetry = telemetry;
  }

  run<T>(acquisition: Acquisition, body: Body<T>): T | Promise<T> {
    const { lock } = acquisition.frame;
    const telemetry = this.#telemetry;
    // A re-entry is no section of its own, and a leader's would last for days.
    if (!telemetry || acquisition.obtained.length === 0 || acquisition.call.caller.leads) {
      const result = body(lock);
      return result instanceof Promise ? result : onceOnly(result);
    }
    const section = new Section(acquisition, lock);
    acquisition.frame.resumesBy((later) => telemetry.resume(section, later));
    return telemetry.section(section, () => onceOnly(body(lock)));
  }
}
