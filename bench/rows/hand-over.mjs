// From the release in one process to the start of the section in another one that waits.
import { alternate } from '../alternate.mjs';
import { handOvers } from '../hand-overs.mjs';
import { atMost, line, waitingNote } from '../line.mjs';
import { median } from '../numbers.mjs';
import { newKeys } from '../pairs.mjs';
import { byNodeRedis, thisLibrary, WAITING_PEERS } from '../subjects/index.mjs';
import { askAll, withWorkers } from '../worker.mjs';

const SUBJECTS = [thisLibrary, byNodeRedis, ...WAITING_PEERS];
const LIMIT_MS = 1.5;

export const handOver = {
  name: 'hand-over',
  run: ({ server, proxy, sizes }) =>
    withWorkers('hand-over', 2, async (workers) => {
      const near = await measure(server, workers, { ...sizes.handOver, port: server.port, warmUp: 300 });
      const far = await measure(server, workers, { ...sizes.handOver, port: proxy.port, warmUp: 20 });
      await askAll(workers, 'close');
      // The release on its way to the server, the message and one round trip, besides the software's own time.
      const ownMs = Math.min(near.get(thisLibrary).time, LIMIT_MS);
      const farLimit = Number((ownMs + 2 * proxy.addedMs).toFixed(2));
      const how = `limit: ${ownMs.toFixed(2)} ms without the proxy, and 2 × ${proxy.addedMs.toFixed(2)} ms`;
      return [...report('hand-over', near, LIMIT_MS), ...againstPeers(near), ...report('hand-over +1 ms', far, farLimit, how)];
    }),
};

async function measure(server, workers, { repeats, lanes, rounds, port, warmUp }) {
  for (const { name } of SUBJECTS) {
    await askAll(workers, 'connect', { subject: name, port, warmUp });
  }
  const results = await alternate(SUBJECTS, repeats, async ({ name }) => {
    await server.client.flushall();
    const times = await Promise.all(Array.from({ length: lanes }, () => handOvers(workers, { subject: name, port }, newKeys(rounds))));
    return times.flat();
  });
  return new Map(SUBJECTS.map((subject) => [subject, summary(results.get(subject))]));
}

function summary(repeats) {
  const times = repeats.flat().filter((time) => time !== null);
  return { time: median(times), failures: repeats.flat().length - times.length };
}

function report(row, results, limit, how) {
  return SUBJECTS.map((subject) => {
    const { time, failures } = results.get(subject);
    const judged = subject === thisLibrary && { ...atMost(time, limit), note: how };
    return line(row, subject.name, time, 'ms', { note: waitingNote(subject, false, failures), ...judged });
  });
}

function againstPeers(results) {
  const { peer, time: fastest } = fastestPeer(results);
  const { time } = results.get(thisLibrary);
  return [
    line('hand-over to peers', thisLibrary.name, time, 'ms', { ratio: time / fastest, of: peer.name, ...atMost(time / fastest, 0.1) }),
  ];
}

function fastestPeer(results) {
  const peer = WAITING_PEERS.filter((one) => results.get(one).failures === 0).reduce((best, next) =>
    results.get(next).time < results.get(best).time ? next : best,
  );
  return { peer, time: results.get(peer).time };
}
