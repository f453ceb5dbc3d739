import { randomUUID } from 'node:crypto';
import type { HoldRecord } from '../../lib/core/seam/lock-store';

/** What core would ask a store for: a hold of a new owner, with what a test says of it. */
export function newHold(key: string, changes: Partial<HoldRecord> = {}): HoldRecord {
  return {
    key,
    owner: randomUUID(),
    id: randomUUID(),
    fence: 0,
    fences: 1,
    ttlMs: 5_000,
    limitMs: 1_000,
    lingering: false,
    unanswered: true,
    by: 'tester',
    ...changes,
  };
}
