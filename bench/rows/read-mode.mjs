// Readers of one process that all want one key for nothing, again and again; alone, and with a writer elsewhere.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { contend } from '../contention.mjs';
import { atLeast, atMost, line } from '../line.mjs';
import { median, percentile, quartiles } from '../numbers.mjs';
import { acquireAndReleaseEach, newKeys } from '../pairs.mjs';
import { readers, thisLibrary } from '../subjects/index.mjs';
import { withWorkers } from '../worker.mjs';

const SUBJECTS = [readers, thisLibrary];
/** A hold of readers takes in no newcomers after so many milliseconds. */
const SLICE_MS = 50;
/** A hand-over between processes, on a machine whose two processors are busy. */
const HAND_OVER_MS = 10;

export const readMode = {
  name: 'read-mode',
  run: async ({ server, sizes: { readMode: sizes } }) => [
    ...(await loops(server, sizes)),
    ...(await withWorkers('read-mode', 2, (workers) => besideWriter(workers, server, sizes))),
  ],
};

async function loops(server, { repeats, callers, turns, warmUp }) {
  const results = await connected(SUBJECTS, server.port, {}, async (connections) => {
    for (const connection of connections.values()) {
      await acquireAndReleaseEach(connection, newKeys(warmUp));
    }
    return alternate(SUBJECTS, repeats + 1, (subject) => contend(connections.get(subject), { callers, bursts: 1, turns }));
  });
  // The first turn warms up.
  const rates = (subject) =>
    results
      .get(subject)
      .slice(1)
      .map(({ rate }) => rate);
  return SUBJECTS.map((subject) => {
    const ratios = rates(subject).map((rate, repeat) => rate / rates(thisLibrary)[repeat]);
    const ratio = median(ratios);
    const spread = { value: quartiles(rates(subject)), ratio: quartiles(ratios) };
    const judged = subject === readers && atLeast(ratio, 1);
    return line('read loop', subject.name, median(rates(subject)), 'pairs/s', {
      ratio,
      of: 'write mode',
      spread,
      note: subject.note,
      ...judged,
    });
  });
}

/** The readers go on in one process while another process writes, once in a while. */
async function besideWriter([reading, writing], server, { repeats, callers, warmUp, writers: { everyMs, writes } }) {
  await Promise.all([reading, writing].map((worker) => worker.ask('connect', { port: server.port, warmUp })));
  await reading.ask('begin', { key: 'hot', callers });
  await writing.ask('write', { key: 'hot', everyMs, writes: Math.ceil(writes / 10) });
  const waits = [];
  await reading.ask('count');
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    waits.push(await writing.ask('write', { key: 'hot', everyMs, writes }));
  }
  const { rate } = await reading.ask('count');
  await reading.ask('end');
  const long = waits.map((times) => percentile(times, 99));
  const typical = waits.map((times) => percentile(times, 50));
  const limit = SLICE_MS + HAND_OVER_MS;
  const note = `a write every ${everyMs} ms in another process`;
  return [
    line('read loop, a writer', readers.name, rate, 'pairs/s', { note }),
    line('writer among readers: wait p50', thisLibrary.name, median(typical), 'ms', { note, spread: { value: quartiles(typical) } }),
    line('writer among readers: wait p99', thisLibrary.name, median(long), 'ms', {
      note,
      spread: { value: quartiles(long) },
      ...atMost(median(long), limit),
    }),
  ];
}
