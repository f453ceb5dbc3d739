// Permits of a semaphore: where there are enough, and where many callers of several processes want a few.
import { alternate } from '../alternate.mjs';
import { figuresOf, linesOf, withCallers } from '../calls.mjs';
import { overtaken, longestRun } from '../fairness.mjs';
import { atLeast, atMost, line, waitingNote } from '../line.mjs';
import { machineMs, median, quartiles } from '../numbers.mjs';
import { PLACES } from '../places.mjs';
import { ENOUGH, FEW, thisLibrary } from '../subjects/index.mjs';
import { ask, askOne } from '../warm-calls.mjs';
import { askAll, withWorkers } from '../worker.mjs';

const PERMITS = 10;
/** So many calls of a process a permit serves. */
const BATCH = 16;
/** Time for every process to hear when to start. */
const NOTICE_MS = 100;
const [, PEER] = ENOUGH;
/** For comparison, with no target. */
const LOCK = { ...thisLibrary, isJudged: false, note: 'a lock of write mode' };
const OF_PEER = { subject: PEER, name: 'redis-semaphore' };

export const permits = {
  name: 'permits',
  run: async ({ server, sizes: { permits: sizes } }) => [
    ...(await withCallers([...ENOUGH, LOCK], [], (callers) => taken(callers, sizes))),
    ...(await withWorkers('fleet', sizes.fleet.processes, (workers) => wanted(workers, server, sizes.fleet))),
  ],
};

async function taken(callers, sizes) {
  const one = await askOne(callers, PLACES.apart, sizes.near);
  const together = await askOne(callers, PLACES.together, sizes.near);
  const fresh = await ask(callers, 'manyCallers', sizes.newKeys);
  const semaphores = new Map([...callers].filter(([subject]) => subject !== LOCK));
  const shared = await ask(semaphores, 'manyCallers', sizes.oneKey);
  return [
    ...lines('permit', one, 'micros', 'µs', (ratio) => atMost(ratio, 1.1)),
    ...lines('permit, one CPU', together, 'micros', 'µs'),
    ...lines('permits, new keys', fresh, 'rate', 'pairs/s', (ratio) => atLeast(ratio, 0.9)),
    ...lines("permits, new keys: server's CPU", fresh, 'server', 'µs'),
    ...lines("permits, new keys: client's CPU", fresh, 'client', 'µs'),
    ...lines('permits, one key', shared, 'rate', 'pairs/s'),
  ];
}

function lines(row, results, figure, unit, judge) {
  return linesOf(row, figuresOf(results, figure), unit, judge, OF_PEER);
}

/** Each of the callers wants one of the few permits once. */
async function wanted(workers, server, { repeats, callers, sectionMs, warmUp }) {
  for (const { name } of FEW) {
    await askAll(workers, 'connect', { subject: name, port: server.port, warmUp });
  }
  const results = await alternate(FEW, repeats, async ({ name }) => {
    await server.client.flushall();
    const lanes = Array.from({ length: callers }, () => ['fleet']);
    const task = { subject: name, port: server.port, lanes, startAt: machineMs() + NOTICE_MS, sectionMs };
    return figures(await askAll(workers, 'contend', task), callers);
  });
  await askAll(workers, 'close');
  return report(results);
}

function figures(answers, callers) {
  const byProcess = answers.map((answer, process) =>
    answer.turns.map((turn, index) => turn && { ...turn, process, index }).filter(Boolean),
  );
  const turns = byProcess.flat().toSorted((a, b) => a.startedAt - b.startedAt);
  const most = Math.max(
    ...turns.map(({ startedAt }) => turns.filter((turn) => turn.startedAt <= startedAt && startedAt < turn.endedAt).length),
  );
  if (most > PERMITS) {
    throw new Error(`permits: ${most} sections at once`);
  }
  const wall = Math.max(...turns.map(({ releasedAt }) => releasedAt)) - Math.min(...turns.map(({ calledAt }) => calledAt));
  const sections = turns.reduce((sum, { startedAt, endedAt }) => sum + endedAt - startedAt, 0);
  return {
    wall,
    ratio: wall / (sections / PERMITS),
    commands: answers.reduce((sum, { commands }) => sum + commands, 0) / turns.length,
    failures: answers.length * callers - turns.length,
    overtaken: Math.max(...byProcess.map((own) => overtaken(own.toSorted((a, b) => a.startedAt - b.startedAt)))),
    run: longestRun(turns),
  };
}

function report(results) {
  const of = (subject, name) => results.get(subject).map((repeat) => repeat[name]);
  const measured = (row, unit, figureOf, limit) =>
    FEW.map((subject) => {
      const figure = figureOf(subject);
      const note = waitingNote(subject, false, Math.max(...of(subject, 'failures'))) ?? subject.note;
      return line(row, subject.name, figure.value, unit, {
        ...figure,
        note,
        ...(subject.isJudged && atMost(figure.ratio ?? figure.value, limit)),
      });
    });
  const typical = (name) => (subject) => ({ value: median(of(subject, name)), spread: { value: quartiles(of(subject, name)) } });
  const worst = (name) => (subject) => ({ value: Math.max(...of(subject, name)) });
  const wall = (subject) => {
    const [value, ratio] = ['wall', 'ratio'].map((name) => typical(name)(subject));
    return {
      value: value.value,
      ratio: ratio.value,
      of: `its sections / ${PERMITS}`,
      spread: { value: value.spread.value, ratio: ratio.spread.value },
    };
  };
  return [
    ...measured('permits fleet', 'ms', wall, 1.1),
    ...measured('permits fleet: commands', 'per acquisition', typical('commands'), 0.5),
    ...measured('permits fleet: failures', 'callers', worst('failures'), 0),
    ...measured('permits fleet: overtaken', 'callers', worst('overtaken'), BATCH),
    ...measured('permits fleet: run', 'turns', worst('run'), BATCH),
  ];
}
