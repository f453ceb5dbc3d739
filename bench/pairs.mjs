/**
 * One caller acquires and releases each key in turn. The loops that are timed are here, and are the same for every
 * subject.
 */
export async function acquireAndReleaseEach(connection, keys) {
  for (let i = 0; i < keys.length; i += 1) {
    await connection.release(await connection.acquire(keys[i]));
  }
}

/** Acquires and releases each key in turn, and measures how long each pair took, in milliseconds. */
export async function timeEach(connection, keys, times) {
  for (let i = 0; i < keys.length; i += 1) {
    const start = performance.now();
    await connection.release(await connection.acquire(keys[i]));
    times[i] = performance.now() - start;
  }
}

/** How many pairs a second callers get through that ask at the same time, each for keys of its own. */
export async function pairsPerSecond(connection, callers, pairs) {
  const keys = Array.from({ length: callers }, () => newKeys(pairs));
  const start = performance.now();
  await Promise.all(keys.map((ownKeys) => acquireAndReleaseEach(connection, ownKeys)));
  return (callers * pairs * 1_000) / (performance.now() - start);
}

let batches = 0;

/** Keys that nobody had before. */
export function newKeys(count) {
  batches += 1;
  return Array.from({ length: count }, (_, i) => `new:${batches}:${i}`);
}
