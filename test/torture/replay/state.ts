/** When something happens, at the earliest and at the latest, in milliseconds of `now()`. */
export type Span = readonly [least: number, most: number];

/**
 * A possible state of the table of one key. A time is a span: nobody knows at which moment of its interval an operation
 * was carried out. Frozen by use: a step makes a new state.
 */
export interface TableState {
  /** The next operation is carried out no earlier. */
  readonly now: number;
  /** The last fence that was given or reserved. */
  readonly fence: number;
  readonly grant?: HeldState | undefined;
  /** A place that the free lock is reserved for. */
  readonly turn?: { readonly place: string; readonly ends: Span } | undefined;
  readonly queue: readonly string[];
  readonly queueEnds: Span;
  /** The marks of releases, of holds that may still be named. */
  readonly done: readonly (readonly [hold: string, answer: boolean, until: Span])[];
  /** The parts that are not known, since a fault struck the servers at `since`. */
  readonly vague?: { readonly grant: boolean; readonly queue: boolean; readonly since: number } | undefined;
}

export interface HeldState {
  readonly owner: string;
  readonly fence: number;
  /** Whether somebody was told its fence. Otherwise it is at least that. */
  readonly isTold: boolean;
  readonly ttl: number;
  readonly ends: Span;
  readonly holds: readonly (readonly [hold: string, process: string])[];
}

const NEVER: Span = [Infinity, Infinity];

export const EMPTY: TableState = { now: 0, fence: 0, queue: [], queueEnds: NEVER, done: [] };

/** A table of which nothing is known but the last fence that was told. */
export function vagueSince(since: number, fence: number): TableState {
  return { ...EMPTY, now: since, fence, vague: { grant: true, queue: true, since } };
}

export function encode(state: TableState): string {
  return JSON.stringify(state);
}
