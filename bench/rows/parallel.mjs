// How many pairs a process gets through with many callers that do not contend.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { atLeast, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { pairsPerSecond } from '../pairs.mjs';
import { floor, PEERS, thisLibrary } from '../subjects/index.mjs';

const SUBJECTS = [thisLibrary, floor, ...PEERS];

export const parallel = {
  name: 'parallel',
  async run({ server, sizes }) {
    const { repeats, callers, pairs, warmUp } = sizes.parallel;
    const rates = await connected(SUBJECTS, server.port, {}, async (connections) => {
      for (const connection of connections.values()) {
        await pairsPerSecond(connection, callers, warmUp);
      }
      const results = await alternate(SUBJECTS, repeats, async (subject) => {
        await server.client.flushall();
        return pairsPerSecond(connections.get(subject), callers, pairs);
      });
      return new Map(SUBJECTS.map((subject) => [subject, median(results.get(subject))]));
    });
    const best = Math.max(...PEERS.map((peer) => rates.get(peer)));
    return SUBJECTS.map((subject) => {
      const ratio = rates.get(subject) / best;
      const target = subject === thisLibrary ? atLeast(ratio, 1) : {};
      return line('parallel', subject.name, rates.get(subject), 'pairs/s', { ratio, of: 'best peer', note: subject.note, ...target });
    });
  },
};
