import type { StoredLock } from '../../lib/core/seam/lock-store.js';
import type { HeldLock, Survey, WaitingCall } from '../../lib/operate/peers/survey.js';

/** The settings of the page for its user, and the version that the page runs on. */
export interface PageInfo {
  readonly kind: 'page';
  /** Whether this user may release locks by force. */
  readonly actions: boolean;
  /** Whether keys are shown as hashes. */
  readonly hideKeys: boolean;
  /** Where traces are shown: `LockPageOptions.traceUrl`. */
  readonly traceUrl?: string | undefined;
  /** The version of this library in the process that serves the page. */
  readonly version: string;
}

/** The answers of the processes of one store, as they say it. */
export interface StoreAnswer extends Survey {
  /** Why nothing could be asked; undefined where it could. */
  readonly failed: string | undefined;
  /** Locks that calls wait for and no process answers for, as the store has them. */
  readonly orphans: readonly FoundOrphan[];
}

/** A row with the times at which it began and ends instead of its ages: it is the same from survey to survey. */
export type Timed<Row> = Omit<Row, 'heldMs' | 'remainingMs' | 'waitedMs' | 'leftMs'> & {
  /** When it began, in milliseconds of a clock that all rows have in common. */
  readonly since: number;
  /** When its lease or its wait ends; undefined where leases do not end by time. */
  readonly until: Row extends { readonly leftMs: number } ? number : number | undefined;
};

type StoreFacts = Omit<StoreAnswer, 'held' | 'waiting'>;

/** A survey of one store; calls that ended, and incidents, are told once to each viewer. */
export interface StoreSnapshot extends StoreFacts {
  readonly held: readonly Timed<HeldLock>[];
  readonly waiting: readonly Timed<WaitingCall>[];
}

/** The answers of the processes of all stores: a whole survey. */
export interface Snapshot {
  readonly kind: 'survey';
  /** Counts the surveys of a stream. */
  readonly version: number;
  /** The time by the clock of the rows. */
  readonly clock: number;
  readonly stores: readonly StoreSnapshot[];
}

/** A survey as the changes since the one before, whose version is lower by one; the same stores in the same order. */
export interface SnapshotChanges extends Omit<Snapshot, 'kind' | 'stores'> {
  readonly kind: 'changes';
  readonly stores: readonly StoreChanges[];
}

export interface StoreChanges extends StoreFacts {
  readonly held: RowChanges<HeldLock>;
  readonly waiting: RowChanges<WaitingCall>;
}

/** How a list has changed: first rows are taken out, then some last longer, and others are added at the end. */
export interface RowChanges<Row> {
  /** Where the rows were that are gone. */
  readonly gone: readonly number[];
  /**
   * Pairs: how many rows further on the next row is, from -1 on, and for how long its lease lasts from now on, in
   * milliseconds.
   */
  readonly renewed: readonly number[];
  readonly added: readonly Timed<Row>[];
}

/** A lock that a search found and no process answers for. */
export interface FoundOrphan extends Pick<StoredLock, 'shares'> {
  readonly key: string;
  readonly fence: number;
  /** How many hold it. */
  readonly count: number;
  /** Who acquired it, as the store has it. */
  readonly by: string;
  /** Since when, by the clock of the store, in milliseconds. */
  readonly since: number;
  /** The rest of the lease, in milliseconds. */
  readonly remainingMs: number | undefined;
}

/** A part of what a search of a store has found. */
export interface SearchStep {
  readonly kind: 'search';
  readonly found: readonly FoundOrphan[];
  /** How many locks were looked at so far. */
  readonly looked: number;
  /** How the search ended; undefined while it goes on. */
  readonly ended: SearchEnd | undefined;
}

/**
 * `complete`: all of the store was searched; `partly`: not all, for want of time; `failed`: the store failed, or may
 * not be searched.
 */
export type SearchEnd = 'complete' | 'partly' | 'failed';

/** A lock as its store has it. */
export interface StoredLockInfo extends Pick<StoredLock, 'holds' | 'shares'> {
  readonly fence: number;
  /** Who acquired it: host, process id and place in the code. */
  readonly by: string;
  /** For how long it has been held, by the clock of the store and this process, in milliseconds. */
  readonly heldMs: number;
  /** The rest of the lease, in milliseconds; undefined where leases do not end by time. */
  readonly remainingMs: number | undefined;
  /** The processes that wait, in order. */
  readonly waiters: readonly string[];
}

/** Asks for the release of a lock by force. */
export interface ReleaseRequest {
  readonly store: string;
  /** As the page shows it. */
  readonly key: string;
  readonly fence: number;
  /** Why, for the trail. */
  readonly reason: string;
}

/**
 * The result of the release: `later` says that the lock is held at another fence by now, `free` that nobody holds it.
 */
export interface ReleaseAnswer {
  readonly outcome: 'released' | 'later' | 'free';
}
