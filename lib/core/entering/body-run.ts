import type { Acquisition } from './acquisition.js';
import { callContext } from '../calls/call-tree.js';
import { refuse } from '../calls/caller-stack.js';
import type { EntryEvents } from './entering-parts.js';
import type { EntryListener } from './entrance.js';
import { modeOf, type HoldMode } from '../words/call-options.js';
import type { LockLostError } from '../words/errors.js';
import { stillRunning } from '../leases/loss.js';
import type { Lease } from '../leases/lease.js';
import type { Lock } from '../words/lock.js';
import type { LockedSection } from '../words/lock-telemetry.js';
import { onceOnly, type Body } from '../calls/run-once.js';

/** How long a caller waits at least for a body that was notified of a loss, in milliseconds. */
const LEAST_GRACE_MS = 1_000;

/**
 * One run of a body inside its locks, and its caller's wait for it. Rejects with `LockLostError` if the lease ended
 * before the body did; an error of the body itself goes first. If a body runs on after its signal aborted, its caller
 * waits for one more `ttl`, and a second at least. Then the call rejects, and the body keeps its other locks until it
 * ends.
 */
export class BodyRun<T> implements EntryListener {
  readonly outcome: Promise<T>;
  readonly #acquisition: Acquisition;
  readonly #events: EntryEvents;
  readonly #sections: Sections;
  readonly #body: Body<T>;
  #resolve!: (result: T | Promise<T>) => void;
  #reject!: (error: unknown) => void;
  #grace: NodeJS.Timeout | undefined;
  #gaveUp = false;
  #notified: LockLostError | undefined;

  constructor(acquisition: Acquisition, events: EntryEvents, sections: Sections, body: Body<T>) {
    this.#acquisition = acquisition;
    this.#events = events;
    this.#sections = sections;
    this.#body = body;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Runs the body and leaves. */
  entered(): void {
    const { frame } = this.#acquisition;
    frame.runsBody(this);
    let result: T | Promise<T>;
    try {
      frame.begin();
    } catch (error) {
      this.#threw(error);
      return;
    }
    try {
      result = callContext.run(frame, BodyRun.#run<T>, this);
      if (result instanceof Promise) {
        result.then(
          (value) => {
            frame.end();
            this.#returned(value);
          },
          (error: unknown) => {
            frame.end();
            this.#threw(error);
          },
        );
        return;
      }
    } catch (error) {
      frame.end();
      this.#threw(error);
      return;
    }
    frame.end();
    this.#returned(result);
  }

  refused(error: unknown): void {
    refuse(this.#resolve, error);
  }

  /** Limits the time that the caller waits for the body. */
  notified(loss: LockLostError): void {
    this.#notified = loss;
    const { frame } = this.#acquisition;
    const graceMs = Math.max(LEAST_GRACE_MS, ...frame.taken.map((lease) => lease.ttlMs));
    const stopWaiting = (): void => {
      this.#gaveUp = true;
      this.#reject(stillRunning(frame.expire() ?? loss, graceMs));
    };
    // The timer is set outside of any call, since the loss may be noticed in another call. It keeps the process
    // running, since somebody awaits the answer.
    this.#grace = callContext.run(undefined, () => setTimeout(stopWaiting, graceMs));
  }

  static #run<T>(this: void, run: BodyRun<T>): T | Promise<T> {
    return run.#sections.run(run.#acquisition, run.#body);
  }

  #returned(result: T): void {
    const { frame } = this.#acquisition;
    // Where the event loop was blocked, no timer could notice a loss.
    frame.expire();
    this.#bodyEnded(undefined);
    const left = (): void => {
      const { loss } = frame;
      if (loss) {
        this.#reject(loss);
      } else {
        this.#resolve(result);
      }
    };
    const leaving = frame.leave();
    if (leaving) {
      leaving.then(left, this.#reject);
    } else {
      left();
    }
  }

  #threw(thrown: unknown): void {
    // Where the event loop was blocked, no timer could notice a loss, and a lease that is over is not kept for its
    // `minHold`.
    this.#acquisition.frame.expire();
    this.#bodyEnded(thrown);
    const left = (): void => this.#reject(thrown);
    const leaving = this.#acquisition.frame.leave();
    if (leaving) {
      leaving.then(left, left);
    } else {
      left();
    }
  }

  #bodyEnded(thrown: unknown): void {
    const { frame } = this.#acquisition;
    clearTimeout(this.#grace);
    frame.runsBody(undefined);
    const lost = this.#gaveUp ? frame.taken.find((lease) => lease.loss) : undefined;
    if (lost) {
      this.#events.endedLate(lost, thrown === lost.loss || thrown === this.#notified ? undefined : thrown);
    }
  }
}

/**
 * The data that telemetry gets of a call that has its locks. It is a class, since a getter in an object literal is made
 * anew for each call.
 */
class Section implements LockedSection {
  readonly store: string;
  readonly name: string;
  readonly site: string;
  readonly mode: HoldMode;
  readonly keys: readonly string[];
  readonly fence: number;
  readonly ttlMs: number;
  readonly waitedMs: number;
  readonly contended: boolean;
  readonly #handle: { readonly signal: AbortSignal };

  constructor({ store, call, frame, hasWaited }: Acquisition) {
    this.store = store;
    this.name = call.caller.name;
    this.site = call.caller.site;
    this.mode = modeOf(call.shares);
    this.keys = frame.keys;
    this.fence = (frame.taken[0] as Lease).fence;
    this.ttlMs = call.ttlMs;
    this.waitedMs = frame.waitedMs;
    this.contended = hasWaited;
    this.#handle = frame.handle;
  }

  get signal(): AbortSignal {
    return this.#handle.signal;
  }
}

/** Runs code around the code of a section; both give what `body` returns or throws. */
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
    // A call that takes a permit has a permit's handle, as its caller's types say.
    const lock = acquisition.frame.handle as Lock;
    const telemetry = this.#telemetry;
    // A re-entry is no section of its own, and a leader's would last for days.
    if (!telemetry || acquisition.obtained.length === 0 || acquisition.call.caller.leads) {
      const result = body(lock);
      return result instanceof Promise ? result : onceOnly(result);
    }
    const section = new Section(acquisition);
    acquisition.frame.resumesBy((later) => telemetry.resume(section, later));
    return telemetry.section(section, () => onceOnly(body(lock)));
  }
}
