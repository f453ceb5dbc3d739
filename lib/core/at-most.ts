import { LONGEST_TIMER_MS } from './duration.js';

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
