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
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
}

/** Another owner holds the lock. */
export interface Busy {
  readonly fence?: undefined;
  /** What is left of the lease, in milliseconds. */
  readonly remainingMs: number;
  readonly holder: LockHolder;
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
}

/** Is told that a lock was taken away by force. */
export type ForcedListener = (key: string, fence: number) => void;

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
  /**
   * For a store that lives in a server: takes the prefix of its names, connects, and checks what no retry can mend.
   * Called once, before anything else. A server that is away is worth a warning, not a rejection.
   */
  open?(options: OpenOptions): Promise<void>;
  /** Grants the lock to `hold.owner` if it is free, or again if this very hold is in. */
  acquire(hold: HoldRecord): Promise<AcquireReply>;
  /** Adds a hold to the running lock of `hold.owner` at `hold.fence`; false where that lock has ended. Never creates one. */
  join(hold: HoldRecord): Promise<boolean>;
  /** Sets each lease to at least `ttlMs` from now; false for each whose lock is gone, undefined where it is unknown. Never creates or shortens one. */
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
