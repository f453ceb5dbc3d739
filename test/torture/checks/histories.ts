import type { Operation } from '../operation.js';
import type { KeyReplay } from '../replay/replay.js';
import type { Evidence, Finding } from './check.js';

/** The name of the check: some defects are seen by it alone. */
export const HISTORIES = 'histories are runs of the table';

/** The operations on each key are a run of the lock table, with what nobody knows as a branch. */
export function checkHistories({ replays, table }: Pick<Evidence, 'replays' | 'table'>): Finding {
  const violations = replays.flatMap(({ key, violations: found }) =>
    found.map(({ command }) => ({ text: `no run of the lock table on "${key}" explains ${described(command as Operation)}`, entries: [] })),
  );
  return {
    check: HISTORIES,
    seen: table === 'none' ? 'none: each server of a quorum has a table of its own' : summaryOf(replays),
    violations,
  };
}

export function summaryOf(replays: readonly KeyReplay[]): string {
  const sum = (count: (replay: KeyReplay) => number): number => replays.reduce((total, replay) => total + count(replay), 0);
  const givenUp = sum((replay) => replay.givenUp.length);
  return [
    `${sum(({ replayed }) => replayed)} operations on ${replays.length} keys`,
    `${sum(({ branches }) => branches)} branches`,
    `${Math.max(0, ...replays.map(({ longest }) => longest))} for one at most`,
    `${givenUp} given up${givenUp > 0 ? ' because there were too many ways' : ''}`,
  ].join(', ');
}

function described({ op, store, hold, place, answer, granted, remaining, invoke, return: end = Infinity }: Operation): string {
  const answered = granted ?? answer ?? (remaining === undefined ? 'nothing' : `busy for ${remaining} ms`);
  const names = [hold?.slice(0, 4), place].filter(Boolean).join(' at ');
  return `that ${op} ${names} of ${store} was answered ${answered}, between ${invoke.toFixed(1)} and ${end.toFixed(1)} ms`;
}
