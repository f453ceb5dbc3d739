// Several processes with many callers each, all of which want one key once.
import { runFleet } from '../fleet-run.mjs';
import { atMost, line, waitingNote } from '../line.mjs';
import { thisLibrary, WAITING_PEERS } from '../subjects/index.mjs';
import { askAll, withWorkers } from '../worker.mjs';

const SUBJECTS = [thisLibrary, ...WAITING_PEERS];

/** The figures besides the wall time; the limits are for this library. */
const COUNTS = [
  { name: 'commands', unit: 'per acquisition', limit: 0.2 },
  { name: 'failures', unit: 'callers', limit: 0 },
  { name: 'overtaken', unit: 'callers', limit: 0 },
  { name: 'run', unit: 'turns', limit: 16 },
];

export const fleet = {
  name: 'fleet',
  run: ({ server, proxy, sizes }) =>
    withWorkers('fleet', sizes.fleet.processes, async (workers) => {
      const clear = () => server.client.flushall();
      const near = await runFleet(workers, SUBJECTS, { ...sizes.fleet, port: server.port, warmUp: 300, clear });
      const far = await runFleet(workers, SUBJECTS, { ...sizes.fleet, port: proxy.port, warmUp: 20, clear });
      await askAll(workers, 'close');
      return [...report('', near, 1.05), ...report(' +1 ms', far, 1.08)];
    }),
};

/** Grouped by figure. `most`: how many times its sections a fleet of this library may take. */
function report(distance, summaries, most) {
  const note = (subject) => waitingNote(subject, true, summaries.get(subject).failures);
  const walls = SUBJECTS.map((subject) => {
    const { wall, ratio } = summaries.get(subject);
    const judged = subject === thisLibrary && atMost(ratio, most);
    return line(`fleet${distance}`, subject.name, wall, 'ms', { ratio, of: 'its sections', note: note(subject), ...judged });
  });
  const counts = COUNTS.map(({ name, unit, limit }) =>
    SUBJECTS.map((subject) => {
      const value = summaries.get(subject)[name];
      return line(`fleet ${name}${distance}`, subject.name, value, unit, {
        note: note(subject),
        ...(subject === thisLibrary && atMost(value, limit)),
      });
    }),
  );
  return [...walls, ...counts.flat()];
}
