// One process that acquires and releases without end. It has the process to itself: its heap is measured.
import { setTimeout as sleep } from 'node:timers/promises';
import { connected } from '../connected.mjs';
import { serve } from '../serve.mjs';
import { thisLibrary } from '../subjects/index.mjs';
import { on, registerSdk } from '../subjects/telemetry.mjs';

serve({
  endless: ({ port, ...task }) => connected([thisLibrary], port, {}, (connections) => churn(connections.get(thisLibrary), task)),
  async endlessWatched({ port, ...task }) {
    const endSdk = registerSdk();
    try {
      return await connected([on], port, {}, (connections) => churn(connections.get(on), task));
    } finally {
      await endSdk();
    }
  },
});

async function churn(connection, { pairs, callers, warmUp }) {
  await run(connection, callers, 'warm-up', warmUp);
  const before = await heapMb();
  await run(connection, callers, 'endless', pairs);
  return { grownMb: (await heapMb()) - before };
}

async function run(connection, callers, name, pairs) {
  let next = 0;
  async function caller() {
    while (next < pairs) {
      next += 1;
      await connection.release(await connection.acquire(`${name}:${next}`));
    }
  }
  await Promise.all(Array.from({ length: callers }, caller));
}

/**
 * The runtime keeps the target of a WeakRef until the turn of the event loop is over, so the heap is measured after a
 * pause.
 */
async function heapMb() {
  globalThis.gc();
  await sleep(100);
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed / 1e6;
}
