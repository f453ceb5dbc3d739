import type { ListedLock } from '../../../lib/peers/lock-list.js';
import type { HeldLock, Survey, WaitingCall } from '../../../lib/peers/survey.js';

/** Calls that wait for the same key, or have the same name. */
export interface Group {
  readonly waiting: number;
  /** Null where the store does not say. */
  readonly longestMs: number | null;
}

/** A lock that is held, as it is shown. */
export type HeldRow = Pick<HeldLock, 'key' | 'fence' | 'site' | 'description' | 'process' | 'heldMs' | 'remainingMs'>;

/** What is worth watching in a survey. */
export interface Snapshot {
  readonly processes: number;
  readonly oldest: readonly HeldRow[];
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

/** The same of what the store itself has, where processes cannot be asked: processes queue there, and not calls. */
export function storedSnapshotOf(locks: readonly ListedLock[], now: number, filter: string): Snapshot {
  const rows = locks.filter(({ key }) => key.includes(filter));
  return {
    processes: 0,
    oldest: rows
      .map(({ key, fence, by, processes = [], since, remainingMs }) => ({
        key,
        fence,
        site: by,
        process: processes.join(', '),
        heldMs: Math.max(0, now - since.getTime()),
        remainingMs,
      }))
      .toSorted((one, other) => other.heldMs - one.heldMs),
    queues: rows
      .filter(({ waiters }) => waiters.length > 0)
      .map(({ key, waiters }) => ({ key, waiting: waiters.length, longestMs: null }))
      .toSorted((one, other) => other.waiting - one.waiting),
    names: [],
  };
}

/** The same with so many rows in each table. */
export function firstRows({ processes, oldest, queues, names }: Snapshot, rows: number): Snapshot {
  return { processes, oldest: oldest.slice(0, rows), queues: queues.slice(0, rows), names: names.slice(0, rows) };
}

/** Groups of calls that have the same text, the largest first. */
function grouped(
  calls: readonly WaitingCall[],
  textOf: (call: WaitingCall) => string,
): (readonly [string, { readonly waiting: number; readonly longestMs: number }])[] {
  const groups = new Map<string, { readonly waiting: number; readonly longestMs: number }>();
  for (const call of calls) {
    const { waiting, longestMs } = groups.get(textOf(call)) ?? { waiting: 0, longestMs: 0 };
    groups.set(textOf(call), { waiting: waiting + 1, longestMs: Math.max(longestMs, call.waitedMs) });
  }
  return [...groups].toSorted(([, one], [, other]) => other.waiting - one.waiting || other.longestMs - one.longestMs);
}
