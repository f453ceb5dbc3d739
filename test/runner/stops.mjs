import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

/**
 * The memory that is shared with the watching thread: its next task, and the longest stop since the start of the test.
 */
const cells = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
const [REQUEST, LONGEST] = [0, 1];
const [NOTHING, START, LOOK] = [0, 1, 2];

/**
 * For how many milliseconds of one second each failed test was stopped, by its full name, where it was more than is
 * allowed.
 */
export const stopped = new Map();

export async function watchStops() {
  const watcher = new Worker(new URL('stops-thread.mjs', import.meta.url), { workerData: cells });
  watcher.unref();
  await once(watcher, 'online');
}

/** From now on, stops count for the test that begins. */
export async function startTest() {
  await ask(START);
}

/** Takes down whether the tests of those names, which have just failed, were stopped for longer than they allow. */
export async function noteFailure(names, allowedMs) {
  await ask(LOOK);
  const longestMs = Atomics.load(cells, LONGEST);
  if (longestMs > allowedMs) {
    names.forEach((name) => stopped.set(name, longestMs));
  }
}

/** The thread answers within one of its ticks, unless it is stopped itself. */
async function ask(request) {
  Atomics.store(cells, REQUEST, request);
  const deadline = performance.now() + 1_000;
  while (Atomics.load(cells, REQUEST) !== NOTHING && performance.now() < deadline) {
    await sleep(1);
  }
}
