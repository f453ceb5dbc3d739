// One process that acquires and releases without end. It has the process to itself: its heap is measured.
import { connected } from '../connected.mjs';
import { serve } from '../serve.mjs';
import { thisLibrary } from '../subjects/index.mjs';

serve({
  endless: ({ port, ...task }) => connected([thisLibrary], port, {}, (connections) => churn(connections.get(thisLibrary), task)),
});

async function churn(connection, { pairs, callers, warmUp }) {
  await run(connection, callers, 'warm-up', warmUp);
  const before = heapMb();
  await run(connection, callers, 'endless', pairs);
  return { grownMb: heapMb() - before };
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

function heapMb() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed / 1e6;
}
