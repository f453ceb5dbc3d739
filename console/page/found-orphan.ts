import type { StoredLock } from '../../lib/core/seam/lock-store.js';
import type { FoundOrphan } from './snapshot.js';
import { shownHolder, type ShowKey } from './shown-key.js';

/** A lock as its store has it, as the page shows it. */
export function foundOrphan(key: string, { fence, by, since, remainingMs, holds, shares }: StoredLock, show: ShowKey): FoundOrphan {
  const found = { fence, count: holds, shares, since: since.getTime(), remainingMs: finite(remainingMs) };
  return { ...found, key: show(key), by: shownHolder(by, show) };
}

/** Undefined for a lease that does not end by time. */
export function finite(ms: number): number | undefined {
  return Number.isFinite(ms) ? ms : undefined;
}
