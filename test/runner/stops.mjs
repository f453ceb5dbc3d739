import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

/**
 * How long the processes of a test may be stopped within one second before its failure says nothing. Less than the claim of any test of time allows.
 */
const ALLOWED_MS = 100;

/** What is shared with the watching thread: the number of the window that it is to watch, the longest stop in it, and how often it has looked. */
const cells = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
const [WINDOW, LONGEST, LOOKS] = [0, 1, 2];

/** For how many milliseconds of one second each failed test was stopped, by its full name, where it was more than is allowed. */
export const stopped = new Map();

export function watchStops() {
  new Worker(new URL('stops-thread.mjs', import.meta.url), { workerData: cells }).unref();
}

/** From now on, stops count for the test that begins. */
export function startWindow() {
  Atomics.store(cells, LONGEST, 0);
  Atomics.add(cells, WINDOW, 1);
}

/** Takes down whether the tests of those names, which have just failed, were stopped for too long. */
export async function noteFailure(names) {
  // A stop that has just ended is seen by the next look.
  const looks = Atomics.load(cells, LOOKS);
  const deadline = performance.now() + 1_000;
  while (Atomics.load(cells, LOOKS) < looks + 2 && performance.now() < deadline) {
    await sleep(10);
  }
  const longestMs = Atomics.load(cells, LONGEST);
  if (longestMs > ALLOWED_MS) {
    names.forEach((name) => stopped.set(name, longestMs));
  }
}
