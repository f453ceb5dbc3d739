import type { Shares } from '../../lib/core/words/call-options.js';
import type { HistoryEvent } from './event.js';

/** By how much a deadline may differ that was worked out at two moments, in milliseconds. */
const CLOCK_MS = 5;

/** One process's entry into the lock of a key, or its attempt at one, put together from the events of a history. */
export interface Entry {
  readonly key: string;
  readonly owner: string;
  readonly hold: string;
  readonly process: string;
  /** `enter` joins a lock that runs already. */
  readonly op: 'acquire' | 'enter';
  readonly events: HistoryEvent[];
  readonly invokedAt: number;
  /** All keys of its owner. */
  keys: readonly string[];
  /** Whether its call wants this key only: one on several waits for them one after the other. */
  alone: boolean;
  /** For how long its call may wait; undefined for what most may. */
  readonly waitMs: number | undefined;
  /** `read`, or the count of a permit; undefined for one that is alone in its key. */
  readonly shares: Shares | undefined;
  /** Whether its lease is not renewed. */
  readonly isFixed: boolean;
  /** When the code inside began; undefined where it never did. */
  enteredAt?: number;
  /** Undefined for a permit also when it is in. */
  fence?: number;
  /** Until when the lease was to be trusted, as far as was written down. */
  deadline: number;
  lostAt?: number;
  /** When the code inside ended, before the release was sent. */
  leftAt?: number;
  settledAt?: number;
  outcome?: string;
}

export function entriesOf(history: readonly HistoryEvent[]): Entry[] {
  const entries = new Map<string, Entry>();
  for (const event of history) {
    const { op, phase, hold, t } = event;
    if (hold === undefined) {
      continue;
    }
    if ((op === 'acquire' || op === 'enter') && phase === 'invoke') {
      const { key = '', owner = '', process, waitMs, shares, isFixed = false } = event;
      const subject = { key, owner, hold, process, op, waitMs, shares, isFixed };
      entries.set(hold, { ...subject, events: [], invokedAt: t, keys: [key], alone: true, deadline: 0 });
    }
    const entry = entries.get(hold);
    if (entry) {
      entry.events.push(event);
      add(event, entry);
    }
  }
  const all = [...entries.values()];
  const keys = new Map<string, Set<string>>();
  for (const { owner, key } of all) {
    keys.set(owner, (keys.get(owner) ?? new Set()).add(key));
  }
  for (const entry of all) {
    entry.keys = [...(keys.get(entry.owner) ?? [])];
    entry.alone = entry.op !== 'acquire' || entry.keys.length === 1;
  }
  return all;
}

function add({ op, phase, t, fence, deadline, outcome }: HistoryEvent, entry: Entry): void {
  entry.deadline = Math.max(entry.deadline, deadline ?? 0);
  if ((op === 'acquire' || op === 'enter') && phase === 'ok') {
    entry.enteredAt = t;
    if (fence !== undefined) {
      entry.fence = fence;
    }
  } else if (op === 'lost') {
    entry.lostAt = t;
  } else if (op === 'release' && phase === 'invoke') {
    entry.leftAt = t;
  } else if (phase !== 'invoke' && op !== 'trust') {
    entry.settledAt = t;
    entry.outcome = outcome ?? '';
  }
}

/**
 * When the servers had it for certain: its lease was granted or renewed later than that. A fault that took it away came
 * after that too.
 */
export function confirmedAt({ deadline, events }: Entry, leaseMs: number): number {
  const seen = events.findIndex((event) => event.deadline !== undefined && Math.abs(event.deadline - deadline) < CLOCK_MS);
  const seenAt = events[seen]?.t;
  if (seenAt === undefined || deadline - leaseMs <= seenAt) {
    return deadline - leaseMs;
  }
  // A nested call asked for a longer one, which was confirmed after the last event that showed another deadline.
  return events.slice(0, seen).findLast((event) => event.deadline !== undefined)?.t ?? deadline - leaseMs;
}

/** Whether it has its key beside other readers. */
export function isReader({ shares }: Pick<Entry, 'shares'>): boolean {
  return shares === 'read';
}

/** Whether it is one of the permits of a semaphore. */
export function isPermit<E extends Pick<Entry, 'shares'>>(entry: E): entry is E & { readonly shares: number } {
  return typeof entry.shares === 'number';
}

/** Whether its holder was notified that the lease was lost. */
export function wasLost(entry: Entry): boolean {
  return entry.lostAt !== undefined || (entry.enteredAt !== undefined && /^LOCK_LOST/.test(entry.outcome ?? ''));
}
