// What a pair costs the server and this process in CPU time, with many callers that do not contend.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { atMost, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { acquireAndReleaseEach, newKeys } from '../pairs.mjs';
import { floor, PEERS, thisLibrary } from '../subjects/index.mjs';

const SUBJECTS = [thisLibrary, floor, ...PEERS];

export const cpu = {
  name: 'cpu',
  async run({ server, sizes }) {
    const { repeats, callers, pairs, warmUp } = sizes.parallel;
    const results = await connected(SUBJECTS, server.port, {}, async (connections) => {
      for (const connection of connections.values()) {
        await cpuOfPairs(server, connection, callers, warmUp);
      }
      return alternate(SUBJECTS, repeats, async (subject) => {
        await server.client.flushall();
        return cpuOfPairs(server, connections.get(subject), callers, pairs);
      });
    });
    return [...report("server's CPU", results, 'server', 1.4), ...report("client's CPU", results, 'client')];
  },
};

/** Microseconds of CPU time for each pair. */
async function cpuOfPairs(server, connection, callers, pairs) {
  const keys = Array.from({ length: callers }, () => newKeys(pairs));
  const [serverBefore, clientBefore] = [await server.cpuSeconds(), process.cpuUsage()];
  await Promise.all(keys.map((ownKeys) => acquireAndReleaseEach(connection, ownKeys)));
  const { user, system } = process.cpuUsage(clientBefore);
  const serverMicros = ((await server.cpuSeconds()) - serverBefore) * 1e6;
  return { server: serverMicros / (callers * pairs), client: (user + system) / (callers * pairs) };
}

function report(row, results, side, limit) {
  const ofFloor = median(results.get(floor).map((result) => result[side]));
  return SUBJECTS.map((subject) => {
    const value = median(results.get(subject).map((result) => result[side]));
    const target = subject === thisLibrary && limit !== undefined ? atMost(value / ofFloor, limit) : {};
    return line(row, subject.name, value, 'µs', { ratio: value / ofFloor, of: 'floor', note: subject.note, ...target });
  });
}
