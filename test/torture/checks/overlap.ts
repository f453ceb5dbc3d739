import { isPermit, isReader, type Entry } from '../entry.js';
import type { Evidence, Finding, Violation } from './check.js';
import { unnoticed } from './excuse.js';

/** When its owner trusted a hold. */
export interface CertainHold {
  readonly entry: Entry;
  readonly from: number;
  readonly to: number;
}

/**
 * Holds that their owners trust never overlap, but for a moment after something took a lock away, and for readers.
 * `checkPermits` has the rule of permits.
 */
export function checkOverlap(evidence: Evidence): Finding {
  const holds = certainHolds(evidence).filter(({ entry }) => !isPermit(entry));
  const violations: Violation[] = [];
  const excused = new Map<string, number>();
  for (const key of evidence.keys) {
    let open: CertainHold[] = [];
    for (const hold of holds.filter(({ entry }) => entry.key === key)) {
      open = open.filter(({ to }) => to > hold.from);
      for (const other of open.filter(({ entry }) => mayNotMeet(entry, hold.entry))) {
        // The reply of the older grant may be the later one.
        const [older, newer] = (other.entry.fence as number) < (hold.entry.fence as number) ? [other, hold] : [hold, other];
        const cause = unnoticed(older.entry, newer.from, older.to, evidence);
        if (cause) {
          excused.set(cause, (excused.get(cause) ?? 0) + 1);
        } else {
          const ms = Math.min(other.to, hold.to) - hold.from;
          violations.push({
            text: `two owners of "${key}" trusted their leases for ${ms.toFixed(1)} ms: ${describe(other)} and ${describe(hold)}`,
            entries: [other.entry, hold.entry],
          });
        }
      }
      open.push(hold);
    }
  }
  const causes = [...excused].map(([cause, count]) => `${count} after ${cause}`).join(', ');
  return { check: 'no overlap', seen: `${holds.length} holds${causes && `; overlapped for a moment: ${causes}`}`, violations };
}

function mayNotMeet(one: Entry, other: Entry): boolean {
  return one.owner !== other.owner && !(isReader(one) && isReader(other));
}

/** From the moment its code begins to the first of its end, its loss and its deadline; in the order of time. */
export function certainHolds({ entries, faults }: Evidence): CertainHold[] {
  return entries
    .flatMap((entry) => {
      const { enteredAt: from, leftAt = Infinity, lostAt = Infinity, deadline, process } = entry;
      if (from === undefined) {
        return [];
      }
      const to = Math.min(leftAt, lostAt, deadline, faults.deathOf(process));
      return to > from ? [{ entry, from, to }] : [];
    })
    .toSorted((first, second) => first.from - second.from);
}

function describe({ entry }: CertainHold): string {
  return `${entry.process}${isReader(entry) ? ', which reads,' : ''} at fence ${entry.fence}`;
}
