import { isPermit, isReader, type Entry } from '../entry.js';
import { within } from '../interval.js';
import { baseOf } from '../fleet.js';
import { type Evidence, type Finding, type Violation } from './check.js';

/** How often a process may have a lock in a row while others wait. */
const BURST = 16;
/** After this long a process that waits is in the queue, in milliseconds. */
const QUEUED_MS = 400;

/**
 * How often a process has a turn before another process that waits: the turn that it has already, and none that it
 * queues for later.
 */
const TURNS = 2;

/**
 * A process that waits is passed over by no other for longer than a burst, nor again and again, unless it was kept from
 * its turn.
 */
export function checkOrder(evidence: Evidence): Finding {
  if (!evidence.keepsOrder) {
    return { check: 'turns are in order', seen: 'none: the store keeps no order', violations: [] };
  }
  const violations: Violation[] = [];
  let judged = 0;
  for (const key of evidence.keys) {
    const granted = evidence.entries
      .filter((entry) => entry.key === key && entry.op === 'acquire' && entry.enteredAt !== undefined)
      .toSorted((first, second) => (first.enteredAt as number) - (second.enteredAt as number));
    // Each permit serves as many calls of its process.
    const mostPermits = granted.reduce((most, entry) => (isPermit(entry) ? Math.max(most, entry.shares) : most), 1);
    for (const entry of evidence.entries) {
      const to = entry.enteredAt ?? entry.settledAt;
      if (entry.key !== key || entry.op !== 'acquire' || !entry.alone || to === undefined) {
        continue;
      }
      const wait = { from: entry.invokedAt, to };
      if (
        to - entry.invokedAt <= QUEUED_MS ||
        within(wait, evidence.faults.hindering(entry)) > 0 ||
        within(wait, lost(key, evidence)) > 0
      ) {
        continue;
      }
      judged++;
      if (!isPermit(entry) && within(wait, evidence.faults.silencing(entry.process)) === 0) {
        violations.push(...passedOver(entry, to, granted));
      }
      const most = BURST * mostPermits;
      for (const [process, overtakers] of overtakersOf(entry, to, granted)) {
        if (overtakers.length > most) {
          violations.push({
            text: `${entry.process} waited for "${key}", and ${process}, which came later, had it ${overtakers.length} times first`,
            entries: [entry, ...overtakers.slice(0, 2)],
          });
        }
      }
    }
  }
  return { check: 'turns are in order', seen: `${judged} waits without a fault`, violations };
}

/**
 * Those of other processes that came later and had the key first, by process. Readers that are in together are one for
 * another reader; a writer counts each of them, since its own process last had a turn.
 */
function overtakersOf(entry: Entry, to: number, granted: readonly Entry[]): ReadonlyMap<string, readonly Entry[]> {
  const found = new Map<string, Entry[]>();
  const turns = new Set<string>();
  for (const other of granted.filter(({ enteredAt = 0 }) => enteredAt > entry.invokedAt && enteredAt < to)) {
    const process = baseOf(other.process);
    if (process === baseOf(entry.process) && !isReader(entry)) {
      found.forEach((others, name) =>
        found.set(
          name,
          others.filter((earlier) => !isReader(earlier)),
        ),
      );
    }
    const isOfTurn = isReader(entry) && isReader(other) && turns.has(turnOf(other));
    if (other.process !== entry.process && other.invokedAt > entry.invokedAt + QUEUED_MS && !isOfTurn) {
      turns.add(turnOf(other));
      found.set(process, [...(found.get(process) ?? []), other]);
    }
  }
  return found;
}

/** The turn of a reader: its process has the key at one fence. */
function turnOf({ process, fence }: Entry): string {
  return `${process} ${fence}`;
}

/** When the servers forgot the queue of a key. */
function lost(key: string, { faults }: Evidence): { from: number; to: number }[] {
  return faults.all
    .filter(({ fault, target }) => fault === 'flush' || fault === 'restart' || (fault === 'erase' && target === key))
    .map(({ from, to }) => ({ from, to: to + 1 }));
}

/** Since its own process last had a turn. One whose message was lost queues anew, and nobody knows when. */
function passedOver(entry: Entry, to: number, granted: readonly Entry[]): Violation[] {
  const turns = new Map<string, Entry[]>();
  const reading = new Set<string>();
  let last: string | undefined;
  for (const other of granted.filter(({ enteredAt = 0 }) => enteredAt > entry.invokedAt + QUEUED_MS && enteredAt < to)) {
    const process = baseOf(other.process);
    if (process === baseOf(entry.process)) {
      turns.clear();
    } else if (process !== last && !(isReader(other) && reading.has(turnOf(other)))) {
      reading.add(turnOf(other));
      const own = [...(turns.get(process) ?? []), other];
      turns.set(process, own);
      if (own.length > TURNS) {
        const text = `${entry.process} waited for "${entry.key}", and ${process} had ${own.length} turns first`;
        return [{ text, entries: [entry, ...own] }];
      }
    }
    last = process;
  }
  return [];
}
