/** Resolves when `work` has, or after `ms` at the latest; `work` then goes on by itself, and must not reject. */
export function atMost(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, ms)).unref();
    void work.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
