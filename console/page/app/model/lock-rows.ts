import { groupedBy } from '../../../../lib/core/words/grouped-by.js';
import { fewest } from '../../../../lib/core/words/shown.js';
import type { Held, Orphan, StoreState, Waiting } from './state.js';

/** A lock of the list. */
export interface LockRow {
  readonly store: StoreState;
  readonly key: string;
  /** The name that its calls are counted under; empty for a lock that a search found. */
  readonly name: string;
  /** Undefined where calls wait, and nobody says that it holds the lock. */
  readonly fence: number | undefined;
  readonly holders: readonly Held[];
  /** How many hold it: the calls of processes that say so, or as many as the store has. */
  readonly count: number;
  /** With whom they share the key; undefined in write mode. */
  readonly shares?: Held['shares'];
  /** Who acquired it, as the store says, where a search found it. */
  readonly foundBy: string | undefined;
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly answers: boolean;
  /** Those that wait longest first. */
  readonly waiting: readonly Waiting[];
}

/** The locks of a store: held, waited for, and found by a search. */
export function lockRows(store: StoreState, now: number): LockRow[] {
  const waiting = groupedBy(store.waiting, ({ key }) => key);
  const queueOf = (key: string): readonly Waiting[] => waiting.get(key)?.toSorted((one, other) => one.since - other.since) ?? [];
  const held = [...groupedBy(store.held, ({ key }) => key)].flatMap(([key, holders]) =>
    [...groupedBy(holders, ({ fence }) => fence).values()].map((own) => heldRow(store, own, queueOf(key))),
  );
  const known = new Set(held.map(({ key }) => key));
  const orphans = [...store.orphans, ...(store.search?.found ?? [])].filter(({ key, until }) => {
    const isNew = !known.has(key) && (until === undefined || until > now);
    known.add(key);
    return isNew;
  });
  const found = orphans.map((orphan) => orphanRow(store, orphan, queueOf(orphan.key)));
  const unheld = [...waiting.keys()].filter((key) => !known.has(key)).map((key) => unheldRow(store, key, queueOf(key)));
  return [...held, ...found, ...unheld];
}

/** The fields that are unknown for a lock that no process says it holds. */
const UNHELD = {
  name: '',
  fence: undefined,
  holders: [],
  count: 0,
  shares: undefined,
  foundBy: undefined,
  since: undefined,
  until: undefined,
  answers: false,
} as const;

function heldRow(store: StoreState, holders: readonly Held[], waiting: readonly Waiting[]): LockRow {
  const [{ key, name, fence }] = holders as [Held];
  const until = Math.max(...holders.map((holder) => holder.until ?? Infinity));
  return {
    store,
    key,
    name,
    fence,
    holders,
    count: holders.length,
    shares: fewest(holders),
    foundBy: undefined,
    since: Math.min(...holders.map(({ since }) => since)),
    until: Number.isFinite(until) ? until : undefined,
    answers: holders.some(({ isSilent }) => !isSilent),
    waiting,
  };
}

function orphanRow(store: StoreState, { by, ...orphan }: Orphan, waiting: readonly Waiting[]): LockRow {
  return { ...UNHELD, ...orphan, store, foundBy: by, waiting };
}

function unheldRow(store: StoreState, key: string, waiting: readonly Waiting[]): LockRow {
  return { ...UNHELD, store, key, name: waiting[0]?.name ?? '', waiting };
}

/** The row after its store said at `at` that nobody holds the lock: a holder that got it before `at` has it no more. */
export function freedRow(row: LockRow, at: number): LockRow {
  return row.since !== undefined && row.since <= at ? { ...row, ...UNHELD, name: row.name } : row;
}
