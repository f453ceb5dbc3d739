import { longestRun, overlaps, overtaken } from './fairness.mjs';
import { median } from './numbers.mjs';

/** The figures of one run of the fleet, from the answers of its processes. */
export function figures(answers, callers) {
  const byProcess = answers.map(({ turns }, process) =>
    inOrder(turns.map((turn, index) => turn && Object.assign(turn, { process, index }))),
  );
  const turns = inOrder(byProcess.flat());
  const excluded = overlaps(turns);
  if (excluded > 0) {
    throw new Error(`fleet: ${excluded} sections overlap`);
  }
  const wall = Math.max(...turns.map(({ releasedAt }) => releasedAt)) - Math.min(...turns.map(({ calledAt }) => calledAt));
  const sections = turns.reduce((sum, { startedAt, endedAt }) => sum + endedAt - startedAt, 0);
  return {
    wall,
    ratio: wall / sections,
    commands: answers.reduce((sum, { commands }) => sum + commands, 0) / turns.length,
    roundTrips: answers.reduce((sum, { roundTrips }) => sum + roundTrips, 0) / turns.length,
    failures: answers.length * callers - turns.length,
    overtaken: byProcess.reduce((sum, own) => sum + overtaken(own), 0),
    run: longestRun(turns),
  };
}

function inOrder(turns) {
  return turns.filter((turn) => turn !== null).toSorted((a, b) => a.startedAt - b.startedAt);
}

/** Of all repeats: times are typical ones, and a caller that failed or was overtaken once is one too many. */
export function summary(repeats) {
  const all = (name) => repeats.map((repeat) => repeat[name]);
  return {
    wall: median(all('wall')),
    ratio: median(all('ratio')),
    commands: median(all('commands')),
    roundTrips: median(all('roundTrips')),
    failures: Math.max(...all('failures')),
    overtaken: Math.max(...all('overtaken')),
    run: Math.max(...all('run')),
  };
}
