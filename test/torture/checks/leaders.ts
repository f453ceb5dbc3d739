import type { Entry } from '../entry.js';
import type { HistoryEvent } from '../event.js';
import { baseOf } from '../fleet.js';
import { without, type Interval } from '../interval.js';
import { CLAIM_MS, SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';

/** How often those look for their turn who are not about to have it, in milliseconds. */
const RECHECK_MS = 2_000;

/**
 * That two leaders never trust their leases is what "no overlap" checks of all keys. Here: no process leads, or stands by, while code of
 * its own that led before still runs; nobody leads or ends without an event; and nobody is missing for longer than is documented.
 */
export function checkLeaders(evidence: Evidence): Finding {
  const events = evidence.history.filter(({ op }) => op === 'leader');
  const entries = evidence.entries.filter(({ key }) => events.some((event) => event.key === key));
  const led = entries.filter(({ enteredAt }) => enteredAt !== undefined);
  const violations = [...twice(entries, evidence), ...untold(led, events, evidence), ...nobody(led, evidence)];
  return { check: 'one leads', seen: `${led.length} leaders, ${events.length} events`, violations };
}

/** When the code of a leader ran. */
function runOf({ enteredAt = 0, leftAt = Infinity, process }: Entry, { faults }: Evidence): Interval {
  return { from: enteredAt, to: Math.min(leftAt, faults.deathOf(process)) };
}

function twice(entries: readonly Entry[], evidence: Evidence): Violation[] {
  return entries.flatMap((entry) => {
    const { process, key, invokedAt, enteredAt } = entry;
    if (enteredAt === undefined) {
      return [];
    }
    const run = runOf(entry, evidence);
    const early = entries.find(
      (other) => other !== entry && other.process === process && other.key === key && other.invokedAt > invokedAt && other.invokedAt < run.to,
    );
    return early
      ? [{ text: `${process} stood by for "${key}" while its code of fence ${entry.fence} still ran`, entries: [entry, early] }]
      : [];
  });
}

function untold(led: readonly Entry[], events: readonly HistoryEvent[], { faults }: Evidence): Violation[] {
  return led.flatMap((entry) => {
    const { process, key, fence, lostAt, settledAt } = entry;
    const told = events.filter((event) => event.process === process && event.fence === fence).map(({ outcome = '' }) => outcome.split(' ')[0]);
    const isDead = faults.deathOf(process) < Infinity;
    const missing = ['elected', ...(lostAt !== undefined && !isDead ? ['revoked'] : []), ...(settledAt !== undefined ? ['ended'] : [])].filter(
      (change) => !told.includes(change),
    );
    return missing.length > 0
      ? [{ text: `${process} led "${key}" at fence ${fence}, and there was no event: ${missing.join(', ')}`, entries: [entry] }]
      : [];
  });
}

/**
 * Somebody leads, but for a lease, a claim window and a recheck. A time in which a fault kept one of the candidates from its turn does
 * not count, since it may have been the next.
 */
function nobody(led: readonly Entry[], evidence: Evidence): Violation[] {
  const longestMs = evidence.leaseMs + CLAIM_MS + RECHECK_MS + SLACK_MS;
  const runs = led.map((entry) => runOf(entry, evidence));
  const first = Math.min(...runs.map(({ from }) => from));
  const last = Math.max(...led.map(({ enteredAt = 0 }) => enteredAt));
  const processes = [...new Set(led.map(({ process }) => baseOf(process)))];
  const denied = processes.flatMap((process) => evidence.faults.denying({ process, keys: led[0]?.keys ?? [] }));
  return without({ from: first, to: last }, [...runs, ...denied])
    .filter(({ from, to }) => to - from > longestMs)
    .map(({ from, to }) => ({ text: `nobody led for ${Math.round(to - from)} ms`, entries: led.filter(({ enteredAt }) => enteredAt === to) }));
}
