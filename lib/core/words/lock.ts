/// <reference lib="esnext.disposable" preserve="true" />
import type { Duration } from './duration.js';

/** A lock that the running code holds: on one key, or on several at once. */
export interface Lock extends AsyncDisposable {
  /** The keys, sorted, each once. */
  readonly keys: readonly string[];
  /**
   * The fencing token: hand it to the resource, which claims it on its first touch and refuses lower ones.
   * Throws `LockConfigurationError` for a lock on several keys, which has one fence each: use `fenceOf(key)`.
   */
  readonly fence: number;
  /** The fencing token of one of the keys; throws `LockConfigurationError` for any other key. */
  fenceOf(key: string): number;
  /**
   * Aborts once, with a `LockLostError`, when the lease is lost or `maxHold` is over. Not when the lock is released.
   */
  readonly signal: AbortSignal;
  /**
   * Makes a ticket, which lets another process enter this lock while it lasts. A ticket is a capability: every process
   * that has it is let in. Never log it. After a ticket was made, the lock goes back to its store when its call ends,
   * also where the next call of this process waits for it. Throws `LockLostError` once the lock is lost or released,
   * also where a transaction still keeps it.
   */
  makeTicket(): string;
  /** Milliseconds that the call waited until it had the lock, or all of its locks. */
  readonly waitedMs: number;
  /**
   * Whether the lease can be trusted right now, by the clock: true after a blocked event loop only if it still lasts.
   */
  isHeld(): boolean;
  /** Throws `LockLostError` where `isHeld()` is false. */
  assertHeld(): void;
  /** Milliseconds for which the lease can be trusted without a renewal; 0 once lost or released. */
  remainingMs(): number;
  /**
   * Sets the lease of each key to at least `ttl` from now; one that is renewed is renewed for as long from then on.
   * Never shortens a lease, and does not put off `maxHold`. For `renew: false`, and before code that cannot renew, such
   * as a function that is frozen. Rejects with `LockLostError` where the lock is lost or released, or `maxHold` is
   * over; with `LockStoreError` where the store does not answer, and the lease is then as before or longer; and with
   * `LockConfigurationError` where `ttl` is less than 100 ms, or more than the longest lease of the store.
   */
  extend(ttl: Duration): Promise<void>;
  /**
   * Runs `fn` inside the lock, so that locked calls it makes re-enter. A lazy thenable, such as a query builder, runs
   * inside as well, once, and its promise is returned. Throws `LockLostError` once lost or released.
   */
  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  /**
   * Leaves the lock; it is free once the calls inside it have left too. Never rejects: a store that does not answer is
   * an event, and the lease runs out by itself. A second call does nothing but warn.
   */
  release(): Promise<void>;
}

/**
 * One of the permits of a semaphore, which the running code has. It has no fence: several run at once, so none of them
 * comes after all others.
 */
export interface Permit extends AsyncDisposable {
  readonly key: string;
  /**
   * Aborts once, with a `LockLostError`, when the lease is lost or `maxHold` is over. Not when the permit is released.
   */
  readonly signal: AbortSignal;
  /** Whether the lease can be trusted right now, by the clock. Always false for a body that runs without a permit. */
  isHeld(): boolean;
  /** Throws `LockLostError` where `isHeld()` is false. */
  assertHeld(): void;
  /** Milliseconds for which the lease can be trusted without a renewal; 0 once lost or released. */
  remainingMs(): number;
  /**
   * Runs `fn` with the permit, so that calls that it makes on the same semaphore take no second one. Throws
   * `LockLostError` once lost or released.
   */
  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  /** Gives the permit back. Never rejects. A second call does nothing but warn. */
  release(): Promise<void>;
}
