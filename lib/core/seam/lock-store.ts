import type { Shares } from '../words/call-options.js';
import type { LockHolder, LostReason } from '../words/errors.js';
import type { StoreHealth } from '../words/lock-health.js';

export type { Shares };

/**
 * The most fences that one grant reserves. It limits how many callers of one process may have a lock one after the
 * other while other processes queue for it.
 */
export const MOST_FENCES = 16;

/**
 * One process's entry into a lock by an owner, as core describes it to a store. Records are frozen: a store may keep
 * one for as long as it likes.
 */
export interface HoldRecord {
  /**
   * The name of the lock, as the user wrote it: 1 to 1,024 bytes of UTF-8, in which every character may occur, NUL as
   * well. Keys that differ in anything, case or white space included, are different locks.
   */
  readonly key: string;
  /**
   * Who holds the lock: one name for each acquisition that acquires a key anew, the same for all such keys; 22 letters,
   * digits, `-` and `_`. It is the digest of a secret that only the owner and its tickets have, so it may be stored,
   * sent and traced.
   */
  readonly owner: string;
  /**
   * A name for this entry, used once: up to 36 letters, digits, `-` and `_`. A store recognizes commands by it when
   * they arrive twice or late.
   */
  readonly id: string;
  /** The fencing token of the grant; 0 in an acquire, which asks for one. */
  readonly fence: number;
  /**
   * How many fences the grant is to reserve, 1 to 16, the same number in every acquire of this hold: the fence of this
   * hold and those after it, which core gives to the calls that it serves with the same lease. Always 1 without
   * `reservesFences`.
   */
  readonly fences: number;
  /**
   * With whom it shares the key; undefined for a hold of write mode, which has the key alone. Only with the capability
   * `shared` or `permits`.
   */
  readonly shares?: Shares | undefined;
  /** The lease asked for, in milliseconds; not always a whole number. */
  readonly ttlMs: number;
  /**
   * How long the store may take to answer, in milliseconds; not always a whole number. Core stops waiting shortly after
   * that, unless the store `keepsLimits`.
   */
  readonly limitMs: number;
  /**
   * Whether the code inside has ended: a renewal then sets the lease to exactly `ttlMs`, unless other holds are in the
   * lock.
   */
  readonly lingering: boolean;
  /**
   * Whether an acquire or a join of this hold was not answered, and may still arrive, or a release of it was not. The
   * release then leaves a done mark, as the rule "Late" says.
   */
  readonly unanswered: boolean;
  /**
   * Host, process id and, where it is known, `Class.method` of the caller. Empty in a renewal, unless calls other than
   * the granted one are in the lock now, or may be by a ticket.
   */
  readonly by: string;
}

/** The answer to an acquire while another owner holds the lock, or while the lock is reserved for another process. */
export interface Busy {
  readonly fence?: undefined;
  /** The rest of the lease, in milliseconds. To a permit, of the lease that ends first, or less. */
  readonly remainingMs: number;
  /** Who holds the lock; an empty `by` means that nobody is known to. */
  readonly holder: LockHolder;
  /**
   * How many permits the holder of a semaphore that is named asked for; core then tells of calls that do not agree.
   * Undefined where it is unknown.
   */
  readonly permits?: number | undefined;
  /**
   * In how many milliseconds core asks again at the latest. Core asks earlier if the store notifies the process of its
   * turn, or if the lease of the holder ends before. Without it core polls.
   */
  readonly recheckMs?: number | undefined;
}

/** The answer to one acquire: the fence of the grant, or who holds the lock. */
export type AcquireReply = { readonly fence: number } | Busy;

/**
 * A process's position in the queue of a key, from the first acquire that may queue to the grant: one object. Its name
 * has up to 20 letters and digits, and is used once. It ends in `R` where the process wants to read, and in `P` and the
 * count where it wants a permit; otherwise it has no capital.
 */
export interface Place {
  readonly name: string;
}

/** The facts that a store knows about a held lock. */
export interface StoredLock {
  readonly fence: number;
  /** Holds in the lock; more than one where a ticket let others in, or where they share the key. */
  readonly holds: number;
  /** With whom the holds share the key: the smallest count of those of a semaphore. Undefined in write mode. */
  readonly shares?: Shares | undefined;
  /** The rest of the lease, in milliseconds; of the longest one of those that share the key. */
  readonly remainingMs: number;
  /** When the lock was acquired, by the store's clock; by the first one of those that share the key. */
  readonly since: Date;
  /**
   * Host, process id and, where it is known, `Class.method` of the caller that acquired the lock. Where other callers
   * are in the lock: of the caller that renewed it last.
   */
  readonly by: string;
  /**
   * The processes that wait for their turn, in order, each as host and process id; empty for a store that keeps no
   * order.
   */
  readonly waiters: readonly string[];
  /**
   * The processes whose holds are in the lock, by the names that `Messages` knows; undefined without that capability.
   */
  readonly processes?: readonly string[] | undefined;
}

/** A lock that a search of the store has found. */
export interface FoundLock extends StoredLock {
  readonly key: string;
}

/**
 * Is notified of turns. Both calls are hints: a message may be lost, late, come twice, or be meant for a place that was
 * given up.
 */
export interface TurnListener {
  /** The lock is reserved, for a short while, for the place of that name. */
  turn(key: string, name: string): void;
  /** Messages may have been lost: core asks again for every place. */
  recheck(): void;
}

/**
 * The capability to keep the order of waiters. A lock that is released while processes queue is reserved for the first
 * of them, which is notified, for a second; no other process gets it meanwhile.
 */
export interface Turns {
  /**
   * Releases `hold` and acquires for `next`, a caller of the same process, in one command. Where `mayOvertake`, `next`
   * gets the lock before the processes that queue; otherwise it queues at `place`, unless nobody does. The release is
   * carried out also where the command arrives late. `reply` may come later than `released`, by `next.limitMs` at most,
   * and fail by itself.
   */
  exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }>;
  /** Gives up a place, or the turn it came to, and no later place. */
  leave(key: string, name: string): Promise<void>;
  /**
   * Registers a listener, also before `open`. It stays until `until` aborts, which means that its application has shut
   * down; it stays over `close` and the next `open`.
   */
  onTurn(listener: TurnListener, until?: AbortSignal): void;
}

/** The capability to let further holds into a running lock, in whichever process. */
export interface Tickets {
  /**
   * Adds a hold to the lock of `hold.owner` at `hold.fence`; false where that lock has ended. Never creates a lock, and
   * never shortens a lease. Rejects with a `LockConfigurationError` where 1,000 other holds are in the lock.
   */
  join(hold: HoldRecord): Promise<boolean>;
}

/**
 * Is notified that the lock on a key was released by force while it was held at a fence. `reason` is the reason that
 * its code gets; default: `'forced'`.
 */
export type ForcedListener = (key: string, fence: number, reason?: LostReason) => void;

/** The capability to show a lock to an operator, and to release it by force. */
export interface Operator {
  /** The stored facts of a lock; null where nobody holds it. */
  inspect(key: string): Promise<StoredLock | null>;
  /**
   * Frees the lock, whoever holds it, if it is held at that fence, and notifies the listeners of its holders; false
   * where it is not held at that fence. Core sends it once: a repetition after a lost reply finds no lock at that
   * fence, and answers false.
   */
  forceRelease(key: string, fence: number): Promise<boolean>;
  /**
   * Searches the store for held locks whose key begins with `prefix`, in parts and in no order. A lock that is held
   * during the whole search is found; other locks may be found, or found twice. A search may look at everything that
   * the server has, so it runs only when somebody asks, and one step at a time: nothing is sent until the next part is
   * asked for. Rejects with a `LockConfigurationError` where the user of the server may not search. Without `search`
   * the locks of processes that do not answer are not listed.
   */
  search?(prefix: string): AsyncIterable<readonly FoundLock[]>;
  /**
   * Registers a listener, also before `open`. It stays until `until` aborts, also over `close`. A message may be lost:
   * the next renewal finds the loss as well. Without `onForced` no process is notified, and each process finds the loss
   * by its next renewal.
   */
  onForced?(listener: ForcedListener, until?: AbortSignal): void;
}

/**
 * The capability to send messages between the processes that use the store, for operators and for the search of
 * deadlocks. A message is a hint: it may be lost, late, come twice or be a stranger's, and the receiver checks it.
 * Sending a message costs nothing where nobody asks.
 */
export interface Messages {
  /** The name of this process in the store, as in `StoredLock.processes`. Up to 255 characters without white space. */
  readonly process: string;
  /**
   * Sends a text of up to 256 KiB to the process of that name; without a name, to all processes, this one included.
   * Rejects with a `LockStoreError` or a `LockConfigurationError` where the sending is known to have failed; resolves
   * although nobody may receive the text.
   */
  send(text: string, process?: string): Promise<void>;
  /** Registers a listener, also before `open`. It stays until `until` aborts, also over `close`. */
  onMessage(listener: (text: string) => void, until?: AbortSignal): void;
}

/** The options that a store gets when it is opened. */
export interface OpenOptions {
  /** The prefix of the names of everything that the store keeps. */
  readonly prefix: string;
  /** Whether nothing may be written to check the rights of its user, as by tools that only look. Default: `false`. */
  readonly readOnly?: boolean | undefined;
  /** Writes a warning for operators. */
  readonly warn: (message: string) => void;
}

/**
 * Where locks live. A store makes single attempts: waiting, queueing within the process, renewing, re-entry and
 * deadlines exist once, in core. `docs/writing-a-store.md` leads through it, and
 * `nestjs-distributed-lock/store-contract` tests it.
 *
 * The rules of every operation:
 *
 * - *Answers.* Busy is a value. A rejection is a `LockStoreError` (the store failed or did not answer; `unknown` says
 *   whether the command may have been carried out) or a `LockConfigurationError` (no retry mends it).
 * - *Time.* An operation settles within `limitMs`, the shortest one where there are several holds, or a second where
 *   there is none. Core gives up a store that does not `keepsLimits` 100 to 150 ms later, and takes the outcome for
 *   unknown.
 * - *Twice.* Acquire, join and renew may arrive twice and answer the second time as the first time. So does a release
 *   of a hold that is `unanswered`; another release is asked for once, and a copy of it finds nothing.
 * - *Late.* A hold that was released while it is `unanswered` does not come in again: for ten seconds after its
 *   release, an acquire or a join of the same `id` is refused as busy or ended. Of other releases nothing is left.
 * - *Fences* are safe integers. For each key they rise with every grant, above all that the grants before reserved,
 *   over expiry, release and a restart of the store.
 * - *Sharing.* Holds with `shares` are in a key together, each with a lease of its own. See `LockStore.shared`
 *   and `LockStore.permits`.
 * - *Leases* end by the store's clock. No operation shortens one, but a renewal that lingers.
 * - *Contexts.* Timers and loops of the store do not keep the `AsyncLocalStorage` context of the call that started
 *   them.
 */
export interface LockStore {
  /** Whether leases end by time. Where they do not, core neither renews them nor watches their end. */
  readonly expires: boolean;
  /**
   * Whether a grant reserves as many fences as `hold.fences` says: the next grant of the key is above all of them.
   * Without it every call asks the store.
   */
  readonly reservesFences?: boolean;
  /**
   * Whether each call of the store settles within its limit, whatever holds up the servers: calls for a hold within
   * `limitMs`, others within a second. Without it core limits the calls itself.
   */
  readonly keepsLimits?: boolean;
  /**
   * Whether it grants holds that read: beside each other, never beside a hold of write mode. Those who queue are served
   * in order: at the head one hold of write mode alone, or as many others as have room, which are reserved and notified
   * together. A newcomer goes in only where nobody queues. Holds that share a key have one fence, given to the first of
   * them, above all before it, and each has a lease of its own: one that is over makes room, and its release does not.
   * While a key is a semaphore, an acquire of a lock rejects with a `LockConfigurationError`, and the other way round.
   */
  readonly shared?: boolean;
  /**
   * Whether it grants permits: as many as the smallest count of the newcomer and of those present. For the rest as
   * `shared`. No join is asked of a permit, and no exchange of any hold that shares its key.
   */
  readonly permits?: boolean;
  /**
   * The longest lease that it grants, in milliseconds; undefined where there is none. Core refuses calls that would ask
   * for more.
   */
  readonly longestLeaseMs?: number | undefined;
  /** The order of waiters, for a store that keeps one. Without it core polls. */
  readonly turns?: Turns | undefined;
  /** Entry by ticket, for a store that has it. Without it calls with a ticket are refused. */
  readonly tickets?: Tickets | undefined;
  /**
   * Inspection and forced release, for a store that has them. Without them `inspect` and `forceRelease` are refused.
   */
  readonly operator?: Operator | undefined;
  /**
   * Messages between processes, for a store that can carry them. Without them a process lists only its own locks, and
   * deadlocks are found only within a process.
   */
  readonly messages?: Messages | undefined;
  /**
   * Takes the prefix of its names, connects, and checks the conditions that no retry can mend. Called once, before any
   * operation, and again after `close` where the store is used again. A server that is away is worth a warning, not a
   * rejection.
   */
  open?(options: OpenOptions): Promise<void>;
  /**
   * Grants the lock to `hold.owner` if it is free and reserved for no other place, or again if this very hold is in the
   * lock: the same fence, and a lease of at least `ttlMs` from now. Otherwise answers busy, and queues at `place`, if
   * given.
   */
  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply>;
  /**
   * Sets each lease to at least `ttlMs` from now, and to exactly `ttlMs` for a hold that lingers alone. `holds` has at
   * least one hold, and may have several hundred. The answers are in the order of `holds`: false where the lock is not
   * held by that owner at that fence with that hold, undefined where this is unknown. Never creates a lock. A `by` that
   * is not empty names the holder of the lock from now on.
   */
  renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]>;
  /**
   * Takes the hold out of its lock, and frees the lock with the last one; false where the hold was not in. The hold is
   * known by its owner and `id`: `fence` is 0 where the reply with the fence was lost. Never frees another owner's
   * lock.
   */
  release(hold: HoldRecord): Promise<boolean>;
  /**
   * Asks the servers one cheap question, such as the time of their clocks, and tells what is known of them. Core calls
   * it only when a health check is made. It needs no right that the locks do not need, writes nothing that stays, and
   * names no host, key or owner. Settles within a second. Rejects where no server answers; where some servers answer,
   * the others are members that are not reachable. Without `health` a health check reports what core knows by itself.
   */
  health?(): Promise<StoreHealth>;
  /**
   * Ends the store's own connections and timers; never closes a client that it was given. Listeners stay: an
   * application that opens the store next may have registered its own already.
   * Called also after an `open` that failed, and perhaps twice.
   */
  close(): Promise<void>;
}
