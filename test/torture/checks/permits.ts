import { isPermit } from '../entry.js';
import type { Evidence, Finding, Violation } from './check.js';
import { unnoticed } from './excuse.js';
import { certainHolds, type CertainHold } from './overlap.js';

/**
 * Never are more permits of a semaphore trusted at once than the smallest count of theirs. The last of them was granted
 * when all others were in: there was room by each of their counts, whoever else was in besides. So this holds at every
 * moment, also where counts change, and where nobody knows who else was in.
 */
export function checkPermits(evidence: Evidence): Finding {
  const holds = permitsOf(evidence);
  const violations: Violation[] = [];
  let excused = 0;
  for (const { last, inside } of momentsOf(holds)) {
    if (inside.length <= smallestCountOf(inside)) {
      continue;
    }
    // Those that may have been taken out before leave room.
    const certain = inside.filter(({ entry, to }) => !unnoticed(entry, last.from, to, evidence));
    if (certain.length <= smallestCountOf(certain)) {
      excused++;
      continue;
    }
    violations.push({
      text: `${certain.length} permits of "${last.entry.key}" were trusted at once, and one of them is of ${smallestCountOf(certain)}`,
      entries: certain.map(({ entry }) => entry),
    });
  }
  const seen = `${holds.length} permits, which filled their semaphore ${timesFull(evidence)} times`;
  return { check: 'no permit too many', seen: `${seen}${excused > 0 ? `; too many for a moment: ${excused}` : ''}`, violations };
}

/** How often a permit was granted that left no room. */
export function timesFull(evidence: Evidence): number {
  return momentsOf(permitsOf(evidence)).filter(({ inside }) => inside.length >= smallestCountOf(inside)).length;
}

/** A nested call takes no permit of its own. */
function permitsOf(evidence: Evidence): CertainHold[] {
  return certainHolds(evidence).filter(({ entry }) => isPermit(entry) && entry.op === 'acquire');
}

/** All that are in at the moment when another one comes in, it included. */
function momentsOf(holds: readonly CertainHold[]): { last: CertainHold; inside: CertainHold[] }[] {
  const open = new Map<string, CertainHold[]>();
  return holds.map((last) => {
    const inside = [...(open.get(last.entry.key) ?? []).filter(({ to }) => to > last.from), last];
    open.set(last.entry.key, inside);
    return { last, inside };
  });
}

function smallestCountOf(holds: readonly CertainHold[]): number {
  return Math.min(...holds.map(({ entry }) => (isPermit(entry) ? entry.shares : Infinity)));
}
