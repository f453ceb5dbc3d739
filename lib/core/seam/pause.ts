import { LONGEST_TIMER_MS } from '../words/duration.js';

/**
 * Resolves after so many milliseconds, and does not keep the process running. By the global timer, which fake timers
 * replace: those that a file imports from `node:timers/promises` they miss.
 */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
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
