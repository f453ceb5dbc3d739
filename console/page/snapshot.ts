import type { Survey } from '../../lib/peers/survey.js';

/** What the page may do, and what it runs on. */
export interface PageInfo {
  readonly kind: 'page';
  /** Whether this user may release locks by force. */
  readonly actions: boolean;
  /** Whether keys are shown as hashes. */
  readonly hideKeys: boolean;
  /** The version of this library in the process that serves the page. */
  readonly version: string;
}

/** What the processes of all stores say. */
export interface Snapshot {
  readonly kind: 'survey';
  readonly stores: readonly StoreSnapshot[];
}

/** What the processes of one store say; calls that ended, and incidents, are told once to each viewer. */
export interface StoreSnapshot extends Survey {
  /** Why nothing could be asked; undefined where it could. */
  readonly failed: string | undefined;
  /** Locks that calls wait for and no process answers for, as the store has them. */
  readonly orphans: readonly FoundOrphan[];
}

/** A lock that a search found and no process answers for. */
export interface FoundOrphan {
  readonly key: string;
  readonly fence: number;
  /** Who acquired it, as the store has it. */
  readonly by: string;
  /** Since when, by the clock of the store, in milliseconds. */
  readonly since: number;
  /** What was left of the lease, in milliseconds. */
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

/** `complete`: all of the store was searched; `partly`: not all, for want of time; `failed`: the store failed, or may not be searched. */
export type SearchEnd = 'complete' | 'partly' | 'failed';

/** A lock as its store has it. */
export interface StoredLockInfo {
  readonly fence: number;
  /** Who acquired it: host, process id and place in the code. */
  readonly by: string;
  /** For how long it has been held, by the clock of the store and this process, in milliseconds. */
  readonly heldMs: number;
  /** What is left of the lease, in milliseconds; undefined where leases do not end by time. */
  readonly remainingMs: number | undefined;
  readonly holds: number;
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

/** What became of it: `later` says that the lock is held at another fence by now, `free` that nobody holds it. */
export interface ReleaseAnswer {
  readonly outcome: 'released' | 'later' | 'free';
}
