import { isReader, wasLost, type Entry } from '../entry.js';
import { within } from '../interval.js';
import type { Evidence, Finding, Violation } from './check.js';
import { mayHaveFaded } from './excuse.js';

/**
 * Whoever has a ticket enters the lock while it runs, and never one that has ended. The readers of a process may share
 * one lock, which runs until the last of them has left.
 */
export function checkTickets(evidence: Evidence): Finding {
  const byLock = new Map<string, Entry[]>();
  for (const entry of evidence.entries) {
    const name = `${entry.owner} ${entry.key}`;
    const known = byLock.get(name) ?? [];
    known.push(entry);
    byLock.set(name, known);
  }
  const readers = new Map<string, Entry[]>();
  for (const entry of evidence.entries.filter(isReader)) {
    readers.set(nameOf(entry), [...(readers.get(nameOf(entry)) ?? []), entry]);
  }
  const violations: Violation[] = [];
  let seen = 0;
  for (const entries of byLock.values()) {
    const holder = entries.find(({ op }) => op === 'acquire');
    // A nested call needs no ticket.
    for (const entry of entries.filter(({ op, process }) => op === 'enter' && process !== holder?.process)) {
      const beside = holder && isReader(holder) ? (readers.get(nameOf(holder)) ?? []) : [];
      // A guest of one of them keeps the lock of all.
      const shared = beside.flatMap(({ owner, key }) => byLock.get(`${owner} ${key}`) ?? []);
      const others = [...entries, ...shared].filter((other) => other !== entry);
      seen++;
      violations.push(...(entry.enteredAt === undefined ? refused(entry, holder, evidence) : entered(entry, others, evidence)));
    }
  }
  return { check: 'tickets enter running locks', seen: `${seen} tickets`, violations };
}

/** The lock of a reader, as its process may share it. */
function nameOf({ process, key, fence }: Entry): string {
  return `${process} ${key} ${fence}`;
}

/**
 * The holder had the lock before, and trusted it afterwards; nothing took it away, which a holder that is cut off may
 * not know.
 */
function refused(entry: Entry, holder: Entry | undefined, evidence: Evidence): Violation[] {
  const { faults } = evidence;
  const { key, process, invokedAt, settledAt = Infinity, outcome = '' } = entry;
  const { enteredAt = Infinity, leftAt = 0 } = holder ?? {};
  const taken = faults.taking(key, holder?.fence).some(({ from, to }) => holder && to >= holder.invokedAt && from <= settledAt);
  const isFaded = holder !== undefined && mayHaveFaded(holder, settledAt, evidence);
  return holder && !taken && !isFaded && enteredAt < invokedAt && leftAt > settledAt && !wasLost(holder) && outcome.startsWith('LOCK_LOST')
    ? [{ text: `${process} was refused at "${key}", whose lock ran`, entries: [holder, entry] }]
    : [];
}

/** Unless all who may have been in had given it back before. */
function entered(entry: Entry, others: readonly Entry[], { faults }: Evidence): Violation[] {
  const { key, process, fence, invokedAt } = entry;
  const ran = others.some((other) => {
    const { enteredAt, leftAt, settledAt = Infinity, outcome = '' } = other;
    if (enteredAt === undefined || leftAt === undefined) {
      return settledAt > invokedAt || /unknown|aborted/.test(outcome);
    }
    // A release that failed is repeated, and the lock runs until then.
    return settledAt > invokedAt || within({ from: leftAt, to: invokedAt }, faults.hindering(other)) > 0;
  });
  return ran ? [] : [{ text: `${process} entered "${key}" at fence ${fence} when its lock had ended`, entries: [...others, entry] }];
}
