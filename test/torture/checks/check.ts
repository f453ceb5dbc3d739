import type { HistoryEvent } from '../event.js';
import type { Entry } from '../entry.js';
import type { Faults } from '../struck.js';

/** The evidence that the checks read. */
export interface Evidence {
  readonly history: readonly HistoryEvent[];
  readonly entries: readonly Entry[];
  readonly faults: Faults;
  readonly leaseMs: number;
  /** Whether the store keeps the order of those who wait. */
  readonly keepsOrder: boolean;
  readonly keys: readonly string[];
  /** The values of the registers at the end, by key. */
  readonly registers: ReadonlyMap<string, { readonly claimed: number; readonly plain: number }>;
  /** The problems after the last fault: keys that could not be had or stayed. */
  readonly leftovers: readonly string[];
  /** Processes that ended by themselves, or did not end. */
  readonly failures: readonly string[];
}

/** Something that must not happen, with the entries that show it. */
export interface Violation {
  readonly text: string;
  readonly entries: readonly Entry[];
}

export interface Finding {
  readonly check: string;
  /** The observations, for people to see that there were some. */
  readonly seen: string;
  readonly violations: readonly Violation[];
}

/** For how long a lock is reserved for the process whose turn it is, in milliseconds. */
export const CLAIM_MS = 1_000;
/** The most that the timers of a loaded machine may be late, in milliseconds. */
export const SLACK_MS = 250;
