import type { HeldLock, Survey, WaitingCall } from '../../core/peers/survey.js';
import { shownMs } from '../age.js';
import { tableOf, type Column } from '../table.js';

/** A key that calls wait for. */
interface Queue {
  readonly key: string;
  readonly waiting: number;
  readonly longestMs: number;
}

/** The calls of one name that wait. */
interface WaitingName {
  readonly name: string;
  readonly waiting: number;
  readonly longestMs: number;
}

/** What is worth watching in a survey. */
export interface Snapshot {
  readonly processes: number;
  readonly oldest: readonly HeldLock[];
  readonly queues: readonly Queue[];
  readonly names: readonly WaitingName[];
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
    queues: grouped(waiting, ({ key }) => key, rows).map(({ text, ...queue }) => ({ key: text, ...queue })),
    names: grouped(waiting, ({ name }) => name, rows).map(({ text, ...calls }) => ({ name: text, ...calls })),
  };
}

/** The lines of a snapshot. */
export function linesOf({ processes, oldest, queues, names }: Snapshot, width: number): string[] {
  return [
    `${processes} processes answer. Locks of those that do not are in: list.`,
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
  { title: 'HELD BY', text: ({ place }) => place, kind: 'long' },
  { title: 'PROCESS', text: ({ process }) => process, kind: 'long' },
  { title: 'SINCE', text: ({ heldMs }) => shownMs(heldMs), kind: 'number' },
  { title: 'FENCE', text: ({ fence }) => String(fence), kind: 'number' },
];

const WAITING: readonly Column<{ readonly waiting: number; readonly longestMs: number }>[] = [
  { title: 'WAITING', text: ({ waiting }) => String(waiting), kind: 'number' },
  { title: 'LONGEST', text: ({ longestMs }) => shownMs(longestMs), kind: 'number' },
];

function grouped(
  calls: readonly WaitingCall[],
  textOf: (call: WaitingCall) => string,
  rows: number,
): { readonly text: string; readonly waiting: number; readonly longestMs: number }[] {
  const groups = new Map<string, { waiting: number; longestMs: number }>();
  for (const call of calls) {
    const { waiting, longestMs } = groups.get(textOf(call)) ?? { waiting: 0, longestMs: 0 };
    groups.set(textOf(call), { waiting: waiting + 1, longestMs: Math.max(longestMs, call.waitedMs) });
  }
  return [...groups]
    .map(([text, group]) => ({ text, ...group }))
    .toSorted((one, other) => other.waiting - one.waiting || other.longestMs - one.longestMs)
    .slice(0, rows);
}
