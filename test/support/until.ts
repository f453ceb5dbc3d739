/**
 * Waits until a condition holds; throws, naming what was waited for, where it does not within `timeoutMs`. Its timers
 * are the global ones, so that it waits in the time that a test plays.
 */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 45_000): Promise<void> {
  const startedAt = performance.now();
  const leftMs = (): number => timeoutMs - (performance.now() - startedAt);
  for (;;) {
    // The server or process that is asked may be gone, and never answer.
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), Math.max(1, leftMs()))));
    const held = await Promise.race([holds(), tooLate]).finally(() => clearTimeout(timer));
    if (held) {
      return;
    }
    if (held === undefined || leftMs() <= 0) {
      throw new Error(`${what}: not within ${timeoutMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
