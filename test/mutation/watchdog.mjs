// Ends code of the main thread that never lets its event loop turn: the test that runs it then fails in time, and the
// process goes on.
import { Session } from 'node:inspector';
import { isMainThread, Worker, workerData as beats } from 'node:worker_threads';

const BEAT_MS = 100;
const LONGEST_MS = 2_000;

/** Watches this thread from now on. */
export function watch() {
  const cells = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  setInterval(() => Atomics.add(cells, 0, 1), BEAT_MS).unref();
  new Worker(new URL(import.meta.url), { workerData: cells }).unref();
}

if (!isMainThread) {
  const session = new Session();
  session.connectToMainThread();
  let seen = 0;
  let seenAt = performance.now();
  setInterval(() => {
    const now = performance.now();
    const beat = Atomics.load(beats, 0);
    if (beat !== seen || now - seenAt > LONGEST_MS) {
      if (beat === seen) {
        session.post('Runtime.terminateExecution');
      }
      seen = beat;
      seenAt = now;
    }
  }, BEAT_MS);
}
