import type { Shares } from '../../lib/core/seam/lock-store.js';

/** How a process wants the key: alone, beside others that read, or with a permit of so many. */
export type Want = 'write' | Shares;

/**
 * The scope of an exploration: the number of processes, calls and keys, and the faults that may happen. Everything
 * within a scope is explored, in every order.
 */
export interface Scope {
  readonly name: string;
  readonly processes: number;
  /** How each process wants the key; alone, where nothing is said. */
  readonly wants?: readonly Want[];
  /** Calls that each process makes. */
  readonly calls: number;
  /** Keys that each call locks. */
  readonly keys: number;
  /** How many of the faults may happen, one after the other or at once. */
  readonly faults: number;
  readonly kinds: readonly FaultKind[];
  /** Whether a call may enter the lock of another process by its ticket. */
  readonly tickets?: boolean;
  /** Whether a caller may give up while it waits. */
  readonly givesUp?: boolean;
  /** Whether time stands still. */
  readonly isInstant?: boolean;
  /** A defect of the processes. */
  readonly flaw?: Flaw;
}

/** A mistake of a process about commands that were not answered. */
export type Flaw =
  | 'leaves no mark'
  | 'counts a lost acquire as answered'
  | 'counts a lost join as answered'
  | 'counts a lost exchange as answered'
  | 'repeats a release without its mark'
  | 'releases a lease that is over';

/**
 * The kinds of faults. `lost`: a command, a reply or a message is lost. `doubled`: one of them is carried out twice.
 * `late`: it stays on its way for as long as it likes. `stopped`: a process takes no step until it goes on. `crashed`:
 * a process ends, and the server sees its connection close; `cut`: the server does not see it. `ahead` and `back`: the
 * server's clock is set. `flushed`: the server loses its keys. `forced`: an operator releases a lock.
 */
export type FaultKind = 'lost' | 'doubled' | 'late' | 'stopped' | 'crashed' | 'cut' | 'ahead' | 'back' | 'flushed' | 'forced';

/** Time passes in steps of so many milliseconds. */
export const STEP_MS = 500;
/** The time of the server's clock at the start: fences are made of it. */
export const START_MS = 1_000_000;
/** The lease that a call asks for, in milliseconds. */
export const TTL_MS = 2_000;
/**
 * The lease that a call by a ticket asks for, in milliseconds: shorter, so that it could shorten the lease of the lock.
 */
export const JOINED_TTL_MS = 1_500;
/** How long a process waits for the answer to a command, in milliseconds: what core does for such a lease. */
export const LIMIT_MS = 500;
/** By how much a clock is set, in milliseconds: more than a claim window, less than a lease. */
export const CLOCK_STEP_MS = 1_500;

const ALL: readonly FaultKind[] = ['lost', 'doubled', 'late', 'stopped', 'crashed', 'cut', 'ahead', 'back', 'flushed', 'forced'];
const ONE_KEY = { calls: 1, keys: 1, kinds: ALL, givesUp: true } as const;

const SHARED = { ...ONE_KEY, faults: 1 } as const;

/** Each is explored by itself: together they would be too many states to look at all of them to any depth. */
export const SCOPES = {
  alone: { ...ONE_KEY, name: 'one process', processes: 1, faults: 2 },
  pair: { ...ONE_KEY, name: 'two processes', processes: 2, faults: 2 },
  trio: { ...ONE_KEY, name: 'three processes', processes: 3, faults: 1 },
  keys: { ...ONE_KEY, name: 'two processes, two keys in each call', processes: 2, keys: 2, faults: 1 },
  tickets: { ...ONE_KEY, name: 'two processes, with tickets', processes: 2, faults: 1, tickets: true },
  guests: {
    ...ONE_KEY,
    name: 'two processes, two calls each, with tickets, in an instant',
    processes: 2,
    calls: 2,
    faults: 0,
    tickets: true,
    isInstant: true,
  },
  turns: { ...ONE_KEY, name: 'two processes, two calls each', processes: 2, calls: 2, faults: 1 },
  blocks: {
    ...ONE_KEY,
    name: 'two processes, three calls each, in an instant',
    processes: 2,
    calls: 3,
    faults: 0,
    givesUp: false,
    isInstant: true,
  },
  readers: { ...SHARED, name: 'two readers and a writer', processes: 3, wants: ['read', 'read', 'write'] },
  writers: { ...SHARED, name: 'two writers and a reader', processes: 3, wants: ['write', 'write', 'read'] },
  crowd: { ...SHARED, name: 'three readers and a writer', processes: 4, wants: ['read', 'read', 'read', 'write'] },
  crossing: {
    ...SHARED,
    name: 'two readers and two writers, none of which fails',
    processes: 4,
    wants: ['read', 'read', 'write', 'write'],
    faults: 0,
  },
  visits: { ...SHARED, name: 'a reader and a writer, two calls each', processes: 2, calls: 2, wants: ['read', 'write'] },
  passes: { ...SHARED, name: 'two readers and a writer, with tickets', processes: 3, wants: ['read', 'read', 'write'], tickets: true },
  permits: { ...SHARED, name: 'three processes, two permits', processes: 3, wants: [2, 2, 2] },
  seat: { ...SHARED, name: 'three processes, one permit', processes: 3, wants: [1, 1, 1] },
  counts: { ...SHARED, name: 'three processes, one or two permits', processes: 3, wants: [1, 2, 2] },
  leaps: { ...SHARED, name: 'four processes, one to three permits, none of which fails', processes: 4, wants: [1, 2, 3, 3], faults: 0 },
  kinds: { ...SHARED, name: 'a writer, a reader and a permit', processes: 3, wants: ['write', 'read', 1] },
} satisfies Record<string, Scope>;

export type ScopeName = keyof typeof SCOPES;
