// Many callers of one process that all want one key for nothing: each once, as requests arrive, and each again and
// again.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { contend, summary } from '../contention.mjs';
import { atLeast, atMost, line, waitingNote } from '../line.mjs';
import { acquireAndReleaseEach, newKeys } from '../pairs.mjs';
import { thisLibrary, WAITING_PEERS } from '../subjects/index.mjs';

const SUBJECTS = [thisLibrary, ...WAITING_PEERS];

export const hot = {
  name: 'hot',
  async run({ server, proxy, sizes }) {
    const { repeats, callers, bursts, turns, farBursts, farTurns } = sizes.hot;
    const near = { port: server.port, repeats, callers, warmUp: 500 };
    const far = { port: proxy.port, repeats, callers, warmUp: 20 };
    return [
      ...report('hot', await measure(server, { ...near, bursts, turns: 1 }), { rate: 3, spread: 3 }),
      ...report('hot +1 ms', await measure(server, { ...far, bursts: farBursts, turns: 1 })),
      // Whoever releases may ask again at once: a peer that polls then serves the same caller over and over.
      ...report('hot loop', await measure(server, { ...near, bursts: 1, turns }), { rate: 20 }),
      ...report('hot loop +1 ms', await measure(server, { ...far, bursts: 1, turns: farTurns }), { rate: 50 }),
    ];
  },
};

async function measure(server, { port, repeats, callers, bursts, turns, warmUp }) {
  return connected(SUBJECTS, port, { patient: true }, async (connections) => {
    for (const connection of connections.values()) {
      await acquireAndReleaseEach(connection, newKeys(warmUp));
    }
    const results = await alternate(SUBJECTS, repeats, async (subject) => {
      await server.client.flushall();
      return contend(connections.get(subject), { callers, bursts, turns });
    });
    return new Map(SUBJECTS.map((subject) => [subject, summary(results.get(subject))]));
  });
}

/** `targets`: the rate beside the best peer, and the spread of the waits, that this library has to reach. */
function report(row, summaries, targets = {}) {
  const best = Math.max(...WAITING_PEERS.map((peer) => summaries.get(peer)).map(({ rate, failures }) => (failures === 0 ? rate : 0)));
  const note = (subject) => waitingNote(subject, true, summaries.get(subject).failures);
  const rates = SUBJECTS.map((subject) => {
    const { rate } = summaries.get(subject);
    const judged = subject === thisLibrary && targets.rate && atLeast(rate / best, targets.rate);
    return line(row, subject.name, rate, 'pairs/s', { ratio: rate / best, of: 'best peer', note: note(subject), ...judged });
  });
  const waits = SUBJECTS.map((subject) => {
    const { longWait, spread } = summaries.get(subject);
    const judged = subject === thisLibrary && targets.spread && atMost(spread, targets.spread);
    return line(`${row}: wait p99`, subject.name, longWait, 'ms', {
      ratio: spread,
      of: 'its median',
      note: note(subject),
      ...judged,
    });
  });
  return [...rates, ...waits];
}
