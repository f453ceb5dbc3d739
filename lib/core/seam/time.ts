import { LONGEST_TIMER_MS } from '../words/duration.js';

/** The two clocks core reads; tests pass their own. */
export interface Clock {
  /** Milliseconds that only grow; stands still while the machine is suspended. Decides about leases. */
  monotonic(): number;
  /**
   * Milliseconds since 1970; may jump, and runs on while the machine is suspended. A lease is in doubt when this clock
   * is past the end of the lease.
   */
  wall(): number;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
};

/**
 * When a lease that was asked for at `sentAt` must no longer be trusted: counted from the sending, never from the
 * reply, less 1 % for clocks that run at different speeds and 2 ms for the server's granularity (the drift allowance of
 * Redlock, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
 */
export function leaseDeadline(sentAt: number, ttlMs: number): number {
  return sentAt + ttlMs * 0.99 - 2;
}

/** The ttl whose deadline is `ms` after its sending. */
export function ttlUntil(ms: number): number {
  return (ms + 2) / 0.99;
}

/** A moment by both clocks, in milliseconds. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), wall: clock.wall() };
}

/** The wall clock is read in whole milliseconds. */
const WALL_GRAIN_MS = 1;

/**
 * A deadline by the wall clock, which runs on while the machine sleeps. `wallAheadMs`: how far it was ahead of the
 * monotonic clock, in milliseconds.
 */
export function wallDeadline(deadline: number, wallAheadMs: number): number {
  return deadline + wallAheadMs + WALL_GRAIN_MS;
}

/** The longest time limit of one command, in milliseconds. */
export const LONGEST_COMMAND_MS = 1_000;

/**
 * The time limit of a command for a lease of so many milliseconds: another command has to fit in before the lease ends.
 */
export function commandLimit(leaseMs: number): number {
  return Math.min(leaseMs / 4, LONGEST_COMMAND_MS);
}

/** The time limit of one command for several holds, in milliseconds: the shortest of theirs. */
export function leastLimitOf(holds: readonly { readonly limitMs: number }[]): number {
  return Math.min(...holds.map(({ limitMs }) => limitMs));
}

/**
 * Resolves after `ms` milliseconds. Only with `keepsProcess` does the timer keep the process running. It uses the
 * global timer, which fake timers replace: a timer imported from `node:timers/promises` is not replaced.
 */
export function pause(ms: number, keepsProcess = false): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    if (!keepsProcess) {
      timer.unref();
    }
  });
}

/** Resolves when `work` has, or after `ms` at the latest; `work` then goes on by itself, and must not reject. */
export function atMost(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.min(Math.max(0, ms), LONGEST_TIMER_MS)).unref();
    void work.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
