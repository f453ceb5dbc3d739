import { groupedBy } from '../../../../lib/core/words/grouped-by.js';
import type { Held, StoreState, Waiting } from './state.js';

/** A lock that calls wait for. */
export interface WaitedLock {
  readonly key: string;
  /** Who holds it; undefined where nobody says so. */
  readonly holder: Held | undefined;
  /** How many others share it with the holder. */
  readonly others: number;
  readonly waiters: readonly WaitingBranch[];
  /** Whether the lock is further up in the same tree: calls wait for each other. */
  readonly closesCycle: boolean;
}

/** A call that waits, and the locks that it holds meanwhile and others wait for. */
export interface WaitingBranch {
  readonly call: Waiting;
  readonly blocks: readonly WaitedLock[];
}

/** Who waits for whom: a tree for each lock whose holder does not wait itself, and one for each cycle. */
export function waitForest(store: StoreState): WaitedLock[] {
  const waiting = groupedBy(store.waiting, ({ key }) => key);
  const holders = groupedBy(store.held, ({ key }) => key);
  const heldByWaiting = new Set(store.waiting.flatMap(({ holds }) => holds.map(({ key }) => key)));
  const shown = new Set<string>();

  const grow = (key: string, above: readonly string[]): WaitedLock => {
    shown.add(key);
    const closesCycle = above.includes(key);
    const calls = closesCycle ? [] : (waiting.get(key) ?? []).toSorted((one, other) => one.since - other.since);
    const path = [...above, key];
    const [holder, ...others] = holders.get(key) ?? [];
    return { key, holder, others: others.length, closesCycle, waiters: calls.map((call) => ({ call, blocks: blockedBy(call, path) })) };
  };
  const blockedBy = ({ holds, key: own }: Waiting, path: readonly string[]): WaitedLock[] =>
    [...new Set(holds.map(({ key }) => key))].filter((key) => key !== own && waiting.has(key)).map((key) => grow(key, path));

  const roots = [...waiting.keys()].filter((key) => !heldByWaiting.has(key)).map((key) => grow(key, []));
  const cycles = [...waiting.keys()].flatMap((key) => (shown.has(key) ? [] : [grow(key, [])]));
  return [...cycles, ...roots.toSorted((one, other) => sizeOf(other) - sizeOf(one))];
}

/** How many calls wait in a tree. */
export function sizeOf({ waiters }: WaitedLock): number {
  return waiters.reduce((sum, { blocks }) => sum + 1 + blocks.reduce((inner, lock) => inner + sizeOf(lock), 0), 0);
}
