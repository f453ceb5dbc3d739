import type { LockMode } from 'nestjs-distributed-lock';

/** How a worker reaches the locks: through proxies of its own, so that faults can strike it alone. */
export type WorkerSource =
  | { readonly kind: 'single'; readonly url: string }
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'mysql'; readonly urls: readonly string[] }
  | { readonly kind: 'quorum'; readonly urls: readonly string[]; readonly longestLeaseMs: number }
  | {
      readonly kind: 'cluster' | 'sentinel';
      /** How many replicas confirm a grant. */
      readonly minReplicas: number;
      readonly ports: readonly number[];
      readonly natMap: Readonly<Record<string, { host: string; port: number }>>;
    };

/** The lease of a call that asks for no other, in milliseconds. */
export const LEASE_MS = 1_000;

/** How long a call waits unless it says otherwise, in leases. */
export const WAIT_LEASES = 6;

/** The keys that the calls of a worker contend for. */
export interface WorkerKeys {
  readonly busy: readonly string[];
  readonly quiet: readonly string[];
  /** The key for which all are candidates. */
  readonly led: string;
  /** Keys that are read and written; none where the store has no readers. */
  readonly shelves: readonly string[];
  readonly semaphores: readonly string[];
}

/** The options that a worker process is given when it starts. */
export interface WorkerOptions {
  readonly name: string;
  /** Whether it is there before any fault. */
  readonly isFirst: boolean;
  readonly seed: number;
  readonly source: WorkerSource;
  readonly registers: string;
  readonly folder: string;
  readonly keys: WorkerKeys;
  readonly leaseMs: number;
  /** How far its wall clock is ahead of the machine's, in milliseconds. */
  readonly wallMs: number;
}

/** The messages between the nemesis and the workers. */
export type WorkerMessage =
  | { readonly type: 'started' }
  | { readonly type: 'stop' }
  /** Says that a `block`, `wall` or `sleep` is over. */
  | { readonly type: 'done'; readonly id: number }
  | { readonly type: 'block'; readonly id: number; readonly ms: number }
  | { readonly type: 'forceOld'; readonly key: string }
  | { readonly type: 'wall'; readonly id: number; readonly offsetMs: number }
  /** Loses a lock whose listener works for `ms`, beside others. */
  | { readonly type: 'listener'; readonly ms: number; readonly isAbort: boolean }
  /** Makes a nested call with a much longer ttl. */
  | { readonly type: 'nest' }
  /**
   * Takes a key and sleeps for `ms`, which its monotonic clock does not count; its code then runs for as long again. It
   * does not sleep if it has the key later than `before`, by `now()`.
   */
  | { readonly type: 'sleep'; readonly id: number; readonly key: string; readonly ms: number; readonly before: number }
  /** Takes a key for `ms`, or for a lease that is not renewed. */
  | { readonly type: 'hold'; readonly key: string; readonly ms: number; readonly isFixed?: boolean }
  /** A further application in the process, with connections of its own, takes a key for `ms`. */
  | { readonly type: 'newcomer'; readonly key: string; readonly ms: number }
  | {
      readonly type: 'ticket';
      readonly from: string;
      readonly id: number;
      readonly key: string;
      readonly owner: string;
      readonly ticket: string;
      readonly mode: LockMode;
    }
  | { readonly type: 'ticketDone'; readonly to: string; readonly id: number };

/** A message that the worker answers when it has done what it says. */
export type WorkerTask = Extract<WorkerMessage, { readonly type: 'block' | 'wall' | 'sleep' }>;
