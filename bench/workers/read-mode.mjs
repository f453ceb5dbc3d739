// One of two processes: reads one key again and again, or writes it once in a while.
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireAndReleaseEach, newKeys } from '../pairs.mjs';
import { serve } from '../serve.mjs';
import { readers, thisLibrary } from '../subjects/index.mjs';

let write;
let read;
/** Undefined where nobody reads. */
let stop;
let reading;
let pairs = 0;
let since = 0;

serve({
  async connect({ port, warmUp }) {
    [write, read] = await Promise.all([thisLibrary, readers].map((subject) => subject.connect(port)));
    for (const connection of [write, read]) {
      await acquireAndReleaseEach(
        connection,
        newKeys(warmUp).map((key) => `${process.pid}:${key}`),
      );
    }
  },

  begin({ key, callers }) {
    stop = new AbortController();
    reading = Promise.all(Array.from({ length: callers }, () => readOn(key, stop.signal)));
  },

  /** The rate since it was asked before. */
  count() {
    const [count, start] = [pairs, since];
    [pairs, since] = [0, performance.now()];
    return { rate: (count * 1_000) / (since - start) };
  },

  async end() {
    stop.abort();
    await reading;
  },

  /** How long each write waited, in milliseconds. */
  async write({ key, everyMs, writes }) {
    const waits = [];
    for (let i = 0; i < writes; i += 1) {
      await sleep(everyMs);
      const start = performance.now();
      const held = await write.acquire(key);
      waits.push(performance.now() - start);
      await write.release(held);
    }
    return waits;
  },
});

async function readOn(key, signal) {
  while (!signal.aborted) {
    await read.release(await read.acquire(key));
    pairs += 1;
  }
}
