// What an application sees: pairs that begin at a fixed rate, whether or not those before have ended.
import { setTimeout as sleep } from 'node:timers/promises';
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { line } from '../line.mjs';
import { median, percentile } from '../numbers.mjs';
import { acquireAndReleaseEach, newKeys } from '../pairs.mjs';
import { floor, PEERS, thisLibrary } from '../subjects/index.mjs';

const SUBJECTS = [thisLibrary, floor, ...PEERS];
const RATES = [1_000, 5_000];

export const arrivals = {
  name: 'arrivals',
  async run({ server, sizes }) {
    const { repeats, seconds, warmUp } = sizes.arrivals;
    return connected(SUBJECTS, server.port, {}, async (connections) => {
      for (const connection of connections.values()) {
        await acquireAndReleaseEach(connection, newKeys(warmUp));
      }
      const lines = [];
      for (const rate of RATES) {
        const results = await alternate(SUBJECTS, repeats, async (subject) => {
          await server.client.flushall();
          return latencies(connections.get(subject), rate, seconds);
        });
        lines.push(...report(`${rate} arrivals/s: p50`, results, 50), ...report(`${rate} arrivals/s: p99`, results, 99));
      }
      return lines;
    });
  },
};

/** How long each pair took from the moment at which it was due, in milliseconds. */
async function latencies(connection, rate, seconds) {
  const keys = newKeys(rate * seconds);
  const times = new Float64Array(keys.length);
  const running = [];
  const start = performance.now();
  for (let next = 0; next < keys.length;) {
    for (const now = performance.now(); next < keys.length && start + (next * 1_000) / rate <= now; next += 1) {
      running.push(timePair(connection, keys[next], start + (next * 1_000) / rate, times, next));
    }
    await sleep(1);
  }
  await Promise.all(running);
  return times;
}

async function timePair(connection, key, due, times, at) {
  await connection.release(await connection.acquire(key));
  times[at] = performance.now() - due;
}

function report(row, results, percent) {
  const ofFloor = median(results.get(floor).map((times) => percentile(times, percent)));
  return SUBJECTS.map((subject) => {
    const value = median(results.get(subject).map((times) => percentile(times, percent)));
    return line(row, subject.name, value, 'ms', { ratio: value / ofFloor, of: 'floor', note: subject.note });
  });
}
