import { alternate } from './alternate.mjs';
import { figures, summary } from './fleet-figures.mjs';
import { machineMs } from './numbers.mjs';
import { askAll } from './worker.mjs';

/** Time for every process to hear when to start. */
const NOTICE_MS = 100;

/** Has all callers of all workers want one key once, for each subject in turn; what it came to, by subject. */
export async function runFleet(workers, subjects, { repeats, callers, sectionMs, port, warmUp, clear }) {
  for (const { name } of subjects) {
    await askAll(workers, 'connect', { subject: name, port, patient: true, warmUp });
  }
  const results = await alternate(subjects, repeats, async ({ name }) => {
    await clear();
    const lanes = Array.from({ length: callers }, () => ['fleet']);
    const task = { subject: name, port, lanes, startAt: machineMs() + NOTICE_MS, sectionMs };
    return figures(await askAll(workers, 'contend', task), callers);
  });
  return new Map(subjects.map((subject) => [subject, summary(results.get(subject))]));
}
