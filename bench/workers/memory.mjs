// A process of its own, so that nothing but decorated calls has shaped the code that is timed.
import { AsyncLocalStorage } from 'node:async_hooks';
import { alternate } from '../alternate.mjs';
import { PlainBalance } from '../decorated.mjs';
import { MemoryLockStore } from '../library.mjs';
import { median } from '../numbers.mjs';
import { newKeys } from '../pairs.mjs';
import { serve } from '../serve.mjs';
import { libraryWith } from '../subjects/this-library.mjs';

const plain = new PlainBalance();
const credit = (key) => plain.credit(key);
const storage = new AsyncLocalStorage();

serve({
  /** How long one call takes, in microseconds: a locked one, one inside of its own lock, and without a lock. */
  async times({ repeats, calls }) {
    const { locks, call, close } = await libraryWith(new MemoryLockStore());
    const keys = newKeys(calls);
    const own = keys.map(() => 'own');
    const measures = {
      call: () => micros(keys, call),
      reentry: () => locks.withLock('balance:own', () => micros(own, call)),
      context: () => micros(keys, (key) => storage.run(plain, credit, key)),
      plain: () => micros(keys, credit),
    };
    // The first repeats warm up.
    const warmUp = Math.ceil(repeats / 4);
    const results = await alternate(Object.keys(measures), warmUp + repeats, (name) => measures[name]());
    await close();
    return Object.fromEntries([...results].map(([name, times]) => [name, times.slice(warmUp)]));
  },

  /** How many bytes one call allocates. */
  async bytes({ repeats, calls }) {
    const { call, close } = await libraryWith(new MemoryLockStore());
    const allocated = [];
    for (let repeat = 0; repeat < 2 * repeats; repeat += 1) {
      const keys = newKeys(calls);
      globalThis.gc();
      const before = process.memoryUsage().heapUsed;
      await callEach(keys, call);
      allocated.push((process.memoryUsage().heapUsed - before) / calls);
    }
    await close();
    // The code is compiled by then.
    return median(allocated.slice(repeats));
  },
});

async function micros(keys, call) {
  const start = performance.now();
  await callEach(keys, call);
  return ((performance.now() - start) * 1_000) / keys.length;
}

async function callEach(keys, call) {
  for (let i = 0; i < keys.length; i += 1) {
    await call(keys[i]);
  }
}
