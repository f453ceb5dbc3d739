import { groupedBy } from '../../../lib/core/words/grouped-by.js';
import { fewest } from '../../../lib/core/words/shown.js';
import type { ListedLock } from '../../../lib/operate/peers/lock-list.js';
import type { HeldLock, Survey, WaitingCall } from '../../../lib/operate/peers/survey.js';

/** Calls that wait for the same key, or have the same name. */
export interface Group {
  readonly waiting: number;
  readonly longestMs: number;
}

/** A key that is waited for: by calls, as their processes say, or by processes, as the store knows them. */
export interface WaitedKey {
  readonly key: string;
  /** Calls that wait; null where no process says so. */
  readonly waiting: number | null;
  readonly longestMs: number | null;
  /** Processes that queue; null where the store was not asked. */
  readonly queued: number | null;
}

/** A lock that is held, as it is shown: by the call that has had it longest, and by how many. */
export type HeldRow = Pick<HeldLock, 'key' | 'fence' | 'site' | 'description' | 'process' | 'heldMs' | 'remainingMs' | 'shares'> & {
  readonly holds: number;
};

/** The parts of a survey that are worth watching. */
export interface Snapshot {
  readonly processes: number;
  readonly oldest: readonly HeldRow[];
  readonly keys: readonly WaitedKey[];
  readonly names: readonly (Group & { readonly name: string })[];
}

/** The locks that are held longest, and the keys and names with the most calls that wait; keys contain `filter`. */
export function snapshotOf(survey: Survey, filter: string): Snapshot {
  const waiting = survey.waiting.filter(({ key }) => key.includes(filter));
  return {
    processes: survey.processes.length - 1,
    oldest: locksOf(survey.held.filter(({ key }) => key.includes(filter)).toSorted((one, other) => other.heldMs - one.heldMs)),
    keys: grouped(waiting, ({ key }) => key).map(([key, { waiting: calls, longestMs }]) => ({
      key,
      waiting: calls,
      longestMs,
      queued: null,
    })),
    names: grouped(waiting, ({ name }) => name).map(([name, { waiting: calls, longestMs }]) => ({ name, waiting: calls, longestMs })),
  };
}

/** A snapshot of the store alone, where processes cannot be asked: processes queue there, and not calls. */
export function storedSnapshotOf(locks: readonly ListedLock[], now: number, filter: string): Snapshot {
  const rows = locks.filter(({ key }) => key.includes(filter));
  return {
    processes: 0,
    oldest: rows
      .map(({ key, fence, by, processes = [], since, remainingMs, holds, shares }) => ({
        key,
        fence,
        site: by,
        process: processes.join(', '),
        heldMs: Math.max(0, now - since.getTime()),
        remainingMs,
        holds,
        shares,
      }))
      .toSorted((one, other) => other.heldMs - one.heldMs),
    keys: rows
      .filter(({ waiters }) => waiters.length > 0)
      .map(({ key, waiters }) => ({ key, waiting: null, longestMs: null, queued: waiters.length }))
      .toSorted((one, other) => other.queued - one.queued),
    names: [],
  };
}

/** A row for all calls that share a lock, in the order of the first of them. */
function locksOf(held: readonly HeldLock[]): HeldRow[] {
  const locks = groupedBy(held, ({ key, fence }) => `${fence} ${key}`);
  return [...locks.values()].map(rowOf);
}

function rowOf(calls: readonly HeldLock[]): HeldRow {
  return { ...(calls[0] as HeldLock), holds: calls.length, shares: fewest(calls) };
}

/** A snapshot with so many rows in each table. */
export function firstRows({ processes, oldest, keys, names }: Snapshot, rows: number): Snapshot {
  return { processes, oldest: oldest.slice(0, rows), keys: keys.slice(0, rows), names: names.slice(0, rows) };
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
