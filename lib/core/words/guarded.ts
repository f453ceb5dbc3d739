/** Runs `body` once, inside `around` where that runs it, and gives its outcome whatever `around` does. */
export function withOutcomeOf<T>(body: () => T, around: (run: () => unknown) => void): T {
  let outcome: (() => T) | undefined;
  const run = (): T => (outcome ??= outcomeOf(body))();
  guarded(() => around(run));
  return run();
}

function outcomeOf<T>(body: () => T): () => T {
  try {
    const result = body();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Returns the result of `call`; undefined where it throws. */
export function guarded<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}
