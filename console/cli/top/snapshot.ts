import type { HeldLock, Survey, WaitingCall } from '../../../lib/peers/survey.js';

/** Calls that wait for the same key, or have the same name. */
export interface Group {
  readonly waiting: number;
  readonly longestMs: number;
}

/** What is worth watching in a survey. */
export interface Snapshot {
  readonly processes: number;
  readonly oldest: readonly HeldLock[];
  readonly queues: readonly (Group & { readonly key: string })[];
  readonly names: readonly (Group & { readonly name: string })[];
}

/** The locks that are held longest, the queues that are longest, and the names with the most calls that wait; keys contain `filter`. */
export function snapshotOf(survey: Survey, filter: string): Snapshot {
  const waiting = survey.waiting.filter(({ key }) => key.includes(filter));
  return {
    processes: survey.processes.length - 1,
    oldest: survey.held.filter(({ key }) => key.includes(filter)).toSorted((one, other) => other.heldMs - one.heldMs),
    queues: grouped(waiting, ({ key }) => key).map(([key, { waiting: calls, longestMs }]) => ({ key, waiting: calls, longestMs })),
    names: grouped(waiting, ({ name }) => name).map(([name, { waiting: calls, longestMs }]) => ({ name, waiting: calls, longestMs })),
  };
}

/** The same with so many rows in each table. */
export function firstRows({ processes, oldest, queues, names }: Snapshot, rows: number): Snapshot {
  return { processes, oldest: oldest.slice(0, rows), queues: queues.slice(0, rows), names: names.slice(0, rows) };
}

/** Groups of calls that have the same text, the largest first. */
function grouped(calls: readonly WaitingCall[], textOf: (call: WaitingCall) => string): (readonly [string, Group])[] {
  const groups = new Map<string, Group>();
  for (const call of calls) {
    const { waiting, longestMs } = groups.get(textOf(call)) ?? { waiting: 0, longestMs: 0 };
    groups.set(textOf(call), { waiting: waiting + 1, longestMs: Math.max(longestMs, call.waitedMs) });
  }
  return [...groups].toSorted(([, one], [, other]) => other.waiting - one.waiting || other.longestMs - one.longestMs);
}
