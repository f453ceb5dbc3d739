import type { LockHolder } from './errors.js';

/** What a store is told of a hold: one process's entry into a lock by an owner. */
export interface HoldRecord {
  readonly key: string;
  /** Unguessable; one for each outermost acquisition. A capability: never logged. */
  readonly owner: string;
  /** Unguessable; one for each entry. */
  readonly id: string;
  /** The fencing token of the grant; 0 until it is granted. */
  readonly fence: number;
  /** The lease asked for, in milliseconds. */
  readonly ttlMs: number;
  /** How long the store may take to answer, in milliseconds; it rejects with a `LockStoreError` after that. Default: as `limitOf`. */
  readonly limitMs?: number;
  /** Whether its code has ended: a renewal may then shorten the lease to `ttlMs`, unless other holds are in the lock. Default: `false`. */
  readonly lingering?: boolean;
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
}

/** Another owner holds the lock. */
export interface Busy {
  readonly fence?: undefined;
  /** What is left of the lease, in milliseconds. */
  readonly remainingMs: number;
  readonly holder: LockHolder;
  /** In how many ms to ask again at the latest, where the store tells a process of its turn; else core polls. */
  readonly recheckMs?: number | undefined;
}

/** A process's place in the queue of a key, from the first attempt that may queue to the grant: one object, with a name used once. */
export interface Place {
  readonly name: string;
}

/** The answer to one attempt: the grant's fence, or who holds the lock. */
export type AcquireReply = { readonly fence: number } | Busy;

/** What a store knows of a lock that somebody holds. */
export interface StoredLock {
  readonly fence: number;
  /** Holds in the lock; more than one where a ticket let others in. */
  readonly holds: number;
  /** What is left of the lease, in milliseconds. */
  readonly ttlMs: number;
  /** When the lock was acquired, by the store's clock. */
  readonly since: Date;
  /** Host, process id and, where it is known, `Class.method` of whoever acquired the lock. */
  readonly by: string;
  /** The processes that wait for their turn, in order, each as host and process id; empty for a store that keeps no order. */
  readonly waiters: readonly string[];
}

/** Is told that a lock was taken away by force. */
export type ForcedListener = (key: string, fence: number) => void;

/** Is told when to look for a turn. Both are hints: a message may be lost, late, or for a place that was given up. */
export interface TurnListener {
  /** The lock is reserved, for a short while, for the place of that name. */
  turn(key: string, name: string): void;
  /** Messages may have been lost: every place is worth a look. */
  recheck(): void;
}

/**
 * What a store offers that keeps the order of those who wait. A lock that is released while others queue is reserved for
 * the first of them, which is told; nobody else gets it meanwhile.
 */
export interface Turns {
  /**
   * Releases `hold` and acquires for `next`, a caller of the same process, in one command: before the queue where `mayPass`,
   * or where nobody queues; else `next` queues at `place`. The reply may come later than the release, and fail by itself.
   */
  pass(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayPass: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }>;
  /** Gives up a place, or the turn it came to, and no later one. */
  leave(key: string, name: string): Promise<void>;
  onTurn(listener: TurnListener): void;
}

/** What a store is told when it is opened. */
export interface OpenOptions {
  /** What the names of everything it stores start with. */
  readonly prefix: string;
  readonly warn: (message: string) => void;
}

/**
 * Where locks live. A store makes single attempts; waiting, queueing in the process, renewing, re-entry and deadlines
 * exist once, in core.
 *
 * Every operation may be sent twice and must answer the second time as it did the first. Busy is a value. A rejection
 * is a `LockStoreError` (the store failed or did not answer: core tries again while the caller waits) or a
 * `LockConfigurationError` (no retry mends it). Core passes a hold's own object, whose `fence` and `ttlMs` change later:
 * read it before the first `await`.
 */
export interface LockStore {
  /** What messages call the store, such as `'redis'`. */
  readonly name: string;
  /** Whether leases end by time. Where they do not, core neither renews them nor watches their end. */
  readonly expires: boolean;
  /** The longest lease that it grants, in milliseconds, where there is one. Core refuses calls that would ask for more. */
  readonly longestLeaseMs?: number | undefined;
  /**
   * For a store that lives in a server: takes the prefix of its names, connects, and checks what no retry can mend.
   * Called once, before anything else. A server that is away is worth a warning, not a rejection.
   */
  open?(options: OpenOptions): Promise<void>;
  /** The order of those who wait, for a store that keeps one. */
  readonly turns?: Turns | undefined;
  /** Grants the lock to `hold.owner` if it is free, or again if this very hold is in. Where it is busy, queues at `place`, if given. */
  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply>;
  /**
   * Adds a hold to the running lock of `hold.owner` at `hold.fence`; false where that lock has ended. Never creates one.
   * Rejects with a `LockConfigurationError` where 1,000 other holds are in, so that a ticket cannot fill a store.
   */
  join(hold: HoldRecord): Promise<boolean>;
  /**
   * Sets each lease to at least `ttlMs` from now, or to just that for one that lingers; false for each whose lock is gone, undefined
   * where it is unknown. Never creates a lock.
   */
  renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]>;
  /** Takes the hold out, and frees the lock with the last one; false where the hold was no longer in. */
  release(hold: HoldRecord): Promise<boolean>;
  /** What is stored for the key, or null where nobody holds it. */
  inspect(key: string): Promise<StoredLock | null>;
  /** Frees the lock of whoever holds it at that fence and tells the holders; false where it is not held at that fence. */
  forceRelease(key: string, fence: number): Promise<boolean>;
  /** Registers who is told of locks taken away by force. A message may be lost: the next renewal finds out as well. */
  onForced(listener: ForcedListener): void;
  /** Ends the store's own connections and timers; never a client that it was given. */
  close(): Promise<void>;
}
