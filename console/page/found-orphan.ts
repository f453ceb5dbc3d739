import type { StoredLock } from '../../lib/core/seam/lock-store.js';
import type { FoundOrphan } from './snapshot.js';
import { shownHolder, type ShowKey } from './shown-key.js';

/** A lock as its store has it, as the page shows it. */
export function foundOrphan(key: string, { fence, by, since, remainingMs }: StoredLock, show: ShowKey): FoundOrphan {
  return { key: show(key), fence, by: shownHolder(by, show), since: since.getTime(), remainingMs: finite(remainingMs) };
}

/** Undefined for a lease that does not end by time. */
export function finite(ms: number): number | undefined {
  return Number.isFinite(ms) ? ms : undefined;
}
