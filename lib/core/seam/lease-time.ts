import type { Clock } from './clock.js';

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

/** Reads both clocks. */
export function momentOf(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), wall: clock.wall() };
}

/** The wall clock is read in whole milliseconds. */
export const WALL_GRAIN_MS = 1;

/** A deadline by the wall clock, which runs on while the machine sleeps. */
export function wallDeadline(sent: Moment, deadline: number): number {
  return sent.wall + deadline - sent.monotonic + WALL_GRAIN_MS;
}

/** The longest time limit of one command, in milliseconds. */
export const LONGEST_COMMAND_MS = 1_000;

/**
 * The time limit of a command for a lease of so many milliseconds: another command has to fit in before the lease ends.
 */
export function commandLimit(leaseMs: number): number {
  return Math.min(leaseMs / 4, LONGEST_COMMAND_MS);
}
