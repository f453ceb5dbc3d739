import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves once it is so; rejects where it does not come to that in time, so that a test that fails also ends. */
export async function eventually(isSo: () => boolean | Promise<boolean>, withinMs = 5_000): Promise<void> {
  const until = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > until) {
      throw new Error(`It did not come to that within ${withinMs} ms: ${isSo.toString()}`);
    }
    await sleep(5);
  }
}
