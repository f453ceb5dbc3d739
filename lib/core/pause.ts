/**
 * Resolves after so many milliseconds, and does not keep the process running. By the global timer, which fake timers
 * replace: those that a file imports from `node:timers/promises` they miss.
 */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
