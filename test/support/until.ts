import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds; throws, naming what was waited for, where it does not within `timeoutMs`. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const startedAt = performance.now();
  while (!(await holds())) {
    if (performance.now() - startedAt > timeoutMs) {
      throw new Error(`${what}: not within ${timeoutMs} ms`);
    }
    await sleep(20);
  }
}
