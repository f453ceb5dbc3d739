import { isReader, type Entry } from '../entry.js';
import type { Evidence, Finding, Violation } from './check.js';
import { unnoticed } from './excuse.js';
import { certainHolds, type CertainHold } from './overlap.js';

/**
 * Fences rise with the grants of a key, none is given twice but to readers, all readers that are in at once have one,
 * and whoever enters a running lock has the fence of its holder. Permits have none.
 */
export function checkFences(evidence: Evidence): Finding {
  const { entries, keys } = evidence;
  const readers = certainHolds(evidence).filter(({ entry }) => isReader(entry) && entry.op === 'acquire');
  const violations: Violation[] = [];
  let seen = 0;
  for (const key of keys) {
    const grants = entries.filter((entry) => entry.key === key && entry.op === 'acquire' && entry.fence !== undefined);
    seen += grants.length;
    violations.push(...twice(grants), ...falling(grants, ticketsOf(entries, key, grants), evidence), ...foreign(entries, key, grants));
    violations.push(
      ...apart(
        readers.filter(({ entry }) => entry.key === key),
        evidence,
      ),
    );
  }
  return { check: 'fences rise', seen: `${seen} grants`, violations };
}

function twice(grants: readonly Entry[]): Violation[] {
  const byFence = new Map<number, Entry>();
  return grants.flatMap((grant) => {
    const other = byFence.get(grant.fence as number);
    byFence.set(grant.fence as number, grant);
    return other && !(isReader(grant) && isReader(other))
      ? [{ text: `fence ${grant.fence} of "${grant.key}" was given twice`, entries: [other, grant] }]
      : [];
  });
}

/** Entries that the servers let in, and not only the process that held the lock already. */
function ticketsOf(entries: readonly Entry[], key: string, grants: readonly Entry[]): Entry[] {
  const holders = new Map(grants.map(({ owner, process }) => [owner, process]));
  return entries.filter(
    (entry) => entry.key === key && entry.op === 'enter' && entry.enteredAt !== undefined && entry.process !== holders.get(entry.owner),
  );
}

/** Readers that are in at once came in beside each other: the key was never free between them. */
function apart(readers: readonly CertainHold[], evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  let open: CertainHold[] = [];
  for (const reader of readers) {
    open = open.filter(({ to }) => to > reader.from);
    for (const other of open.filter(({ entry }) => entry.fence !== reader.entry.fence)) {
      const [older, newer] = (other.entry.fence as number) < (reader.entry.fence as number) ? [other, reader] : [reader, other];
      if (!unnoticed(older.entry, newer.from, older.to, evidence)) {
        violations.push({
          text: `two readers of "${reader.entry.key}" were in at once, at fences ${older.entry.fence} and ${newer.entry.fence}`,
          entries: [older.entry, newer.entry],
        });
      }
    }
    open.push(reader);
  }
  return violations;
}

/**
 * A lease that was taken away serves calls of its process, at fences of its block, until the process notices: such a
 * call is no grant.
 */
function falling(grants: readonly Entry[], tickets: readonly Entry[], evidence: Evidence): Violation[] {
  const byEnd = grants.toSorted((first, second) => (first.enteredAt as number) - (second.enteredAt as number));
  let highest: Entry | undefined;
  let at = 0;
  const violations: Violation[] = [];
  for (const grant of [...grants, ...tickets].toSorted((first, second) => first.invokedAt - second.invokedAt)) {
    for (; at < byEnd.length && ((byEnd[at] as Entry).enteredAt as number) < grant.invokedAt; at++) {
      const before = byEnd[at] as Entry;
      highest = highest && (highest.fence as number) > (before.fence as number) ? highest : before;
    }
    const mayBeSame = grant.op === 'enter' || (isReader(grant) && highest !== undefined && isReader(highest));
    const isLower = mayBeSame
      ? (highest?.fence as number) > (grant.fence as number)
      : (highest?.fence as number) >= (grant.fence as number);
    if (highest && isLower && !unnoticed(grant, highest.enteredAt as number, grant.enteredAt as number, evidence)) {
      violations.push({ text: `fence ${grant.fence} of "${grant.key}" came after ${highest.fence}`, entries: [highest, grant] });
    }
  }
  return violations;
}

function foreign(entries: readonly Entry[], key: string, grants: readonly Entry[]): Violation[] {
  const byOwner = new Map(grants.map((grant) => [grant.owner, grant]));
  return entries.flatMap((entry) => {
    const grant = byOwner.get(entry.owner);
    return entry.key === key && entry.op === 'enter' && entry.enteredAt !== undefined && grant && grant.fence !== entry.fence
      ? [{ text: `"${key}" was entered at fence ${entry.fence}, and its holder has ${grant.fence}`, entries: [grant, entry] }]
      : [];
  });
}
