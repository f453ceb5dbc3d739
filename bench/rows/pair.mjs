// What one acquire and release takes where nobody contends, next to the least that has to be sent.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { atMost, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { acquireAndReleaseEach, newKeys, timeEach } from '../pairs.mjs';
import { floor, PEERS, thisLibrary } from '../subjects/index.mjs';

const SUBJECTS = [thisLibrary, floor, ...PEERS];

export const pair = {
  name: 'pair',
  async run({ server, proxy, sizes }) {
    const { repeats, batches, pairs, warmUp, farBatches, farPairs } = sizes.pair;
    const near = await measure(server, server.port, { rounds: repeats * batches, pairs, warmUp });
    const far = await measure(server, proxy.port, { rounds: repeats * farBatches, pairs: farPairs, warmUp: farPairs });
    return [...report('pair', near, 1.4), ...againstPeers('pair', near), ...report('pair +1 ms', far, 1.05)];
  },
};

/** The median pair of each batch of each subject, in microseconds. */
async function measure(server, port, { rounds, pairs, warmUp }) {
  return connected(SUBJECTS, port, {}, async (connections) => {
    for (const connection of connections.values()) {
      await acquireAndReleaseEach(connection, newKeys(warmUp));
    }
    const times = new Float64Array(pairs);
    return alternate(SUBJECTS, rounds, async (subject) => {
      await server.client.flushall();
      await timeEach(connections.get(subject), newKeys(pairs), times);
      return median(times) * 1_000;
    });
  });
}

/** Batch by batch, since the machine may change its pace in between. */
function ratioOf(times, subject, other) {
  return median(times.get(subject).map((time, round) => time / times.get(other)[round]));
}

function report(row, times, limit) {
  return SUBJECTS.map((subject) => {
    const ratio = ratioOf(times, subject, floor);
    const target = subject === thisLibrary ? atMost(ratio, limit) : {};
    return line(row, subject.name, median(times.get(subject)), 'µs', { ratio, of: 'floor', note: subject.note, ...target });
  });
}

function againstPeers(row, times) {
  const fastest = PEERS.reduce((best, peer) => (ratioOf(times, peer, best) < 1 ? peer : best));
  const ratio = ratioOf(times, thisLibrary, fastest);
  return [
    line(`${row} to peers`, thisLibrary.name, median(times.get(thisLibrary)), 'µs', { ratio, of: fastest.name, ...atMost(ratio, 1) }),
  ];
}
