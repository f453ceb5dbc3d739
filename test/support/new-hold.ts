import { randomUUID } from 'node:crypto';
import type { HoldRecord } from '../../lib/core/seam/lock-store';

/** A hold as core would ask a store for it: of a new owner, with the changes of a test. */
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
