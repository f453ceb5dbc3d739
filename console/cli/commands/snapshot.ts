import type { HeldLock, Survey, WaitingCall } from '../../../lib/peers/survey.js';
import { calledAs } from '../../../lib/core/words/description.js';
import { shownMs } from '../age.js';
import { tableOf, type Column } from '../table.js';

/** Calls that wait for the same key, or have the same name. */
interface Group {
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

/** The `rows` locks that are held longest, queues that are longest, and names with the most calls that wait; keys contain `filter`. */
export function snapshotOf(survey: Survey, filter: string, rows: number): Snapshot {
  const waiting = survey.waiting.filter(({ key }) => key.includes(filter));
  return {
    processes: survey.processes.length - 1,
    oldest: survey.held
      .filter(({ key }) => key.includes(filter))
      .toSorted((one, other) => other.heldMs - one.heldMs)
      .slice(0, rows),
    queues: grouped(waiting, ({ key }) => key, rows).map(([key, group]) => ({ key, waiting: group.waiting, longestMs: group.longestMs })),
    names: grouped(waiting, ({ name }) => name, rows).map(([name, group]) => ({
      name,
      waiting: group.waiting,
      longestMs: group.longestMs,
    })),
  };
}

/** The lines of a snapshot. */
export function linesOf({ processes, oldest, queues, names }: Snapshot, width: number): string[] {
  return [
    `${processes} ${processes === 1 ? 'process answers' : 'processes answer'}. The locks of those that do not are in: list.`,
    '',
    'OLDEST LOCKS',
    ...(oldest.length > 0 ? tableOf(OLDEST, oldest, width) : ['none']),
    '',
    'LONGEST QUEUES',
    ...(queues.length > 0 ? tableOf([{ title: 'KEY', text: ({ key }) => key, kind: 'long' }, ...WAITING], queues, width) : ['none']),
    '',
    'NAMES BY WAITING CALLS',
    ...(names.length > 0 ? tableOf([{ title: 'NAME', text: ({ name }) => name, kind: 'long' }, ...WAITING], names, width) : ['none']),
  ];
}

const OLDEST: readonly Column<HeldLock>[] = [
  { title: 'KEY', text: ({ key }) => key, kind: 'long' },
  { title: 'HELD BY', text: calledAs, kind: 'long' },
  { title: 'PROCESS', text: ({ process }) => process, kind: 'long' },
  { title: 'SINCE', text: ({ heldMs }) => shownMs(heldMs), kind: 'number' },
  { title: 'FENCE', text: ({ fence }) => String(fence), kind: 'number' },
];

const WAITING: readonly Column<Group>[] = [
  { title: 'WAITING', text: ({ waiting }) => String(waiting), kind: 'number' },
  { title: 'LONGEST', text: ({ longestMs }) => shownMs(longestMs), kind: 'number' },
];

/** The largest groups of calls that have the same text. */
function grouped(calls: readonly WaitingCall[], textOf: (call: WaitingCall) => string, most: number): (readonly [string, Group])[] {
  const groups = new Map<string, Group>();
  for (const call of calls) {
    const { waiting, longestMs } = groups.get(textOf(call)) ?? { waiting: 0, longestMs: 0 };
    groups.set(textOf(call), { waiting: waiting + 1, longestMs: Math.max(longestMs, call.waitedMs) });
  }
  return [...groups].toSorted(([, one], [, other]) => other.waiting - one.waiting || other.longestMs - one.longestMs).slice(0, most);
}
