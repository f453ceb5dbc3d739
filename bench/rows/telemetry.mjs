// The time that traces and metrics add to a call.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { atMost, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { newKeys } from '../pairs.mjs';
import { off, on, PARTS, registerSdk } from '../subjects/telemetry.mjs';

export const telemetry = {
  name: 'telemetry',
  async run({ server, sizes }) {
    const endSdk = registerSdk();
    try {
      return [...(await pair(server, sizes.telemetry)), ...(await cpu(sizes.telemetry)), await reentry(sizes.telemetry)];
    } finally {
      await endSdk();
    }
  },
};

/** On Redis, as in the row `pair`. */
function pair(server, { rounds, pairs }) {
  return connected([off, on], server.port, {}, async (connections) => {
    const measure = async (subject) => {
      const keys = newKeys(pairs);
      const times = new Float64Array(pairs);
      for (let i = 0; i < pairs; i += 1) {
        const start = performance.now();
        await connections.get(subject).locks.withLock(keys[i], nothing);
        times[i] = performance.now() - start;
      }
      return median(times) * 1_000;
    };
    await alternate([off, on], 4, measure);
    const times = await alternate([off, on], rounds, measure);
    const ratio = median(times.get(on).map((time, round) => time / times.get(off)[round]));
    return [
      line('telemetry pair', off.name, median(times.get(off)), 'µs'),
      line('telemetry pair', on.name, median(times.get(on)), 'µs', { ratio, of: off.name, ...atMost(ratio, 1.05) }),
    ];
  });
}

/** In memory, where nothing else takes time. */
function cpu({ rounds, calls }) {
  return connected(PARTS, undefined, {}, async (connections) => {
    const times = await alternate(PARTS, rounds, async (subject) => {
      const before = process.cpuUsage();
      await callEach(connections.get(subject).locks, calls);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / calls;
    });
    const note = "CPU time of a call in memory, with the SDK's own work";
    return PARTS.map((subject) => line('telemetry CPU', subject.name, median(times.get(subject)), 'µs', { note }));
  });
}

/** The time that a re-entry takes more where telemetry is on. */
function reentry({ rounds, calls }) {
  return connected([off, on], undefined, {}, async (connections) => {
    const times = await alternate([off, on], rounds, (subject) => {
      const { locks } = connections.get(subject);
      return locks.withLock('k', async () => {
        const start = performance.now();
        await callEach(locks, calls);
        return ((performance.now() - start) * 1_000) / calls;
      });
    });
    const more = median(times.get(on).map((time, round) => time - times.get(off)[round]));
    return line('telemetry re-entry', on.name, more, 'µs more', atMost(more, 2));
  });
}

async function callEach(locks, calls) {
  for (let call = 0; call < calls; call += 1) {
    await locks.withLock('k', nothing);
  }
}

async function nothing() {}
