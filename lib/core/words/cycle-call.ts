/** One call of a cycle: it is inside a lock, and waits for the lock that the next call of the cycle is inside of. */
export interface CycleCall {
  /** Host and process id. */
  readonly process: string;
  /** Where it stands in the code: `LockEvent.site`. */
  readonly site: string;
  /** The key of the lock that it is inside of. */
  readonly holds: string;
  /** For how long that lock has been held, in milliseconds. */
  readonly heldMs: number;
  /** The key that it waits for. */
  readonly waitsFor: string;
  /** For how long it has waited, in milliseconds. */
  readonly waitedMs: number;
}

/** Calls that wait for each other: of one process, or of several (`fleet`). */
export interface Cycle {
  readonly scope: 'process' | 'fleet';
  readonly calls: readonly CycleCall[];
}

/** The keys of a cycle, each of a lock whose holder waits for the next; the last is the first again. */
export function keysOf({ calls }: Cycle): string[] {
  return [...calls, ...calls.slice(0, 1)].map(({ holds }) => holds);
}
