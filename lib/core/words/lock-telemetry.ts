import type { HoldMode } from './call-options.js';
import type { LockError } from './errors.js';
import type { EventOfLock, LockEvent } from './lock-event.js';
import type { Description } from './description.js';
import type { LockHealth } from './lock-health.js';

/** The operations that a store is asked for. */
export type StoreOperation = 'acquire' | 'exchange' | 'join' | 'renew' | 'release' | 'leave';

/** One operation that a store was asked for, and has answered. */
export interface MeasuredOperation {
  /** The name under which the store is registered. */
  readonly store: string;
  readonly operation: StoreOperation;
  readonly durationMs: number;
  /** Undefined where the store did its work, or said that the lock is busy. */
  readonly error: LockError | undefined;
}

/** A call that has its locks, and whose code runs now. */
export interface LockedSection {
  /** The name under which the store is registered. */
  readonly store: string;
  /** The name that calls of this kind are counted under: `LockEvent.name`. */
  readonly name: string;
  /** Where the call stands in the code: `LockEvent.site`. */
  readonly site: string;
  readonly mode: HoldMode;
  /** Its keys, sorted, each once. */
  readonly keys: readonly string[];
  /** The fence of its first key. A permit's says nothing. */
  readonly fence: number;
  readonly ttlMs: number;
  readonly waitedMs: number;
  /** Whether it had to wait. */
  readonly contended: boolean;
  /** Aborts when one of its locks is lost; the reason is the `LockLostError`. Made when it is read. */
  readonly signal: AbortSignal;
}

/** @internal An entry into a lock: a grant of the store, a re-entry, or a join by a ticket. */
export interface LockEntry extends EventOfLock {
  readonly how: 'acquired' | 'reentered' | 'joined';
  readonly fence: number;
}

/** The locks of one store of an application, as they are when they are asked for. */
export interface LockSource {
  /** The name under which the store is registered. */
  readonly store: string;
  /** How many calls of this process may wait. */
  readonly maxWaiters: number;
  /** How many locks and permits calls of each name hold now, in this process; of `mode` only, where it is given. */
  holds(mode?: HoldMode): ReadonlyMap<string, number>;
  /** How many calls of each name wait now, in this process; only those of `mode`, where it is given. */
  waiters(mode?: HoldMode): ReadonlyMap<string, number>;
  /** How many permits there are in all, by the name of the calls here that have or want one; of several, the fewest. */
  permits(): ReadonlyMap<string, number>;
  /** Asks the store; never rejects. Calls at the same time are one question. */
  health(): Promise<LockHealth>;
}

/**
 * Follows the locks of an application, to make traces and metrics. Errors that it throws reach no lock. It runs inside
 * the call, so it must not block.
 */
export interface LockTelemetry {
  /** A store was made for an application. The returned function is called when the application is shut down. */
  watch?(source: LockSource): (() => void) | undefined;
  /** Gets the events of the channel, in the context of the call. */
  event?(event: LockEvent): void;
  /**
   * @internal A call has entered a lock, in the context of the calls around it: for `nestjs-distributed-lock/testing`.
   * A re-entry is no event.
   */
  entered?(entry: LockEntry): void;
  /**
   * Describes the call, in the context of the call, before the call waits. The store keeps the description with the
   * lock, and it is shown with the holder. Runs in each call, so it has to be quick.
   */
  describe?(): Description | undefined;
  /** A store has answered. */
  operation?(measured: MeasuredOperation): void;
  /**
   * Runs the code of a call that has its locks: `run` has to be called once, at once. It returns the result of the
   * code, which may be a promise. A re-entry is no section of its own.
   */
  section?(section: LockedSection, run: () => unknown): void;
  /**
   * Like `section`, for code that runs later inside the lock: a step of an async generator, or the function given to
   * `lock.run()`. It may be called where other code runs, also inside `section`.
   */
  resume?(section: LockedSection, run: () => unknown): void;
}

/** Runs code inside a lock. */
export type Resume = <T>(run: () => T) => T;
