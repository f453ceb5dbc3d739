import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds; throws, naming what was waited for, where it does not within `timeoutMs`. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const startedAt = performance.now();
  const leftMs = (): number => timeoutMs - (performance.now() - startedAt);
  for (;;) {
    // What is asked may be gone, and never answer.
    const isOver = new AbortController();
    const tooLate = sleep(Math.max(1, leftMs()), undefined, { signal: isOver.signal }).catch(() => undefined);
    const held = await Promise.race([holds(), tooLate]).finally(() => isOver.abort());
    if (held) {
      return;
    }
    if (held === undefined || leftMs() <= 0) {
      throw new Error(`${what}: not within ${timeoutMs} ms`);
    }
    await sleep(20);
  }
}
