// One process for one subject: no figure has the garbage of another subject in it, code that another subject has
// shaped, or the hooks that AsyncLocalStorage sets for a whole process.
import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile } from '../numbers.mjs';
import { newKeys } from '../pairs.mjs';
import { serve } from '../serve.mjs';
import { subjectNamed } from '../subjects/index.mjs';

/** By port: a near and a far one. */
const connections = new Map();

serve({
  async connect({ subject, port }) {
    if (!connections.has(port)) {
      connections.set(port, await subjectNamed(subject).connect(port));
    }
  },
  collectGarbage: () => globalThis.gc(),

  // Each answer has the number of its calls, and the CPU time of the client for each of them, in microseconds.

  /** One caller: how long a typical call takes, in microseconds. */
  async oneCaller({ port, calls }) {
    const connection = connections.get(port);
    const ids = newKeys(calls);
    const times = new Float64Array(calls);
    const client = countCpu(calls);
    for (let i = 0; i < calls; i += 1) {
      const start = performance.now();
      await connection.call(ids[i]);
      times[i] = performance.now() - start;
    }
    return { calls, client: client(), micros: median(times) * 1_000 };
  },

  /** Many callers with new keys, one key each, or one for all: how many calls they get through in a second. */
  async manyCallers({ port, callers, calls: each, keys }) {
    const connection = connections.get(port);
    const ids = Array.from({ length: callers }, (_, caller) => idsOf(keys, each, caller));
    const calls = callers * each;
    const start = performance.now();
    const client = countCpu(calls);
    await Promise.all(ids.map((ownIds) => callEach(connection, ownIds)));
    return { calls, client: client(), rate: (calls * 1_000) / (performance.now() - start) };
  },

  /**
   * Calls that begin at a fixed rate, whether or not those before have ended: their times from when each was due, in
   * milliseconds.
   */
  async arrivals({ port, rate, seconds }) {
    const connection = connections.get(port);
    const ids = newKeys(rate * seconds);
    const times = new Float64Array(ids.length);
    const running = [];
    const client = countCpu(ids.length);
    const start = performance.now();
    for (let next = 0; next < ids.length;) {
      for (const now = performance.now(); next < ids.length && start + (next * 1_000) / rate <= now; next += 1) {
        running.push(timeFrom(connection, start + (next * 1_000) / rate, ids[next], times, next));
      }
      await sleep(1);
    }
    await Promise.all(running);
    return { calls: ids.length, client: client(), p50: percentile(times, 50), p99: percentile(times, 99) };
  },
});

function idsOf(keys, calls, caller) {
  return keys === 'new' ? newKeys(calls) : Array(calls).fill(keys === 'one' ? 'one' : `same:${caller}`);
}

/** Begins to count CPU time; the function that it gives says how much it was for each call, in microseconds. */
function countCpu(calls) {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / calls;
  };
}

async function callEach(connection, ids) {
  for (let i = 0; i < ids.length; i += 1) {
    await connection.call(ids[i]);
  }
}

async function timeFrom(connection, due, id, times, at) {
  await connection.call(id);
  times[at] = performance.now() - due;
}
