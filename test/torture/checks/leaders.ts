import type { Entry } from '../entry.js';
import type { HistoryEvent } from '../event.js';
import { without, type Interval } from '../interval.js';
import { SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';

/**
 * For how long a process may neither lead nor stand by, in leases: the pause after several errors in a row, or its own
 * end.
 */
const ABSENT = 3;

/**
 * Checks what the checks of all locks do not see. "no overlap" says that two leaders never trust their leases at once,
 * and "no turn is missed" that nobody who stands by waits for longer than is documented. Here: no process stands by
 * while code of its own that led before still runs; each process does stand by again; and nobody leads, is notified or
 * ends without an event.
 */
export function checkLeaders(evidence: Evidence): Finding {
  const events = evidence.history.filter(({ op }) => op === 'leader');
  const entries = evidence.entries.filter(({ key }) => events.some((event) => event.key === key));
  const led = entries.filter(({ enteredAt }) => enteredAt !== undefined);
  const gapMs = Math.max(0, ...gapsBetween(led.map((entry) => runOf(entry, evidence))).map(({ from, to }) => to - from));
  const violations = [
    ...processesOf(entries).flatMap((own) => [...twice(own, evidence), ...absent(own, evidence)]),
    ...untold(led, events),
  ];
  return { check: 'one leads', seen: `${led.length} leaders, none for ${Math.round(gapMs)} ms at most`, violations };
}

function processesOf(entries: readonly Entry[]): Entry[][] {
  const found = new Map<string, Entry[]>();
  for (const entry of entries) {
    found.set(entry.process, [...(found.get(entry.process) ?? []), entry]);
  }
  return [...found.values()].map((own) => own.toSorted((first, second) => first.invokedAt - second.invokedAt));
}

/** When the code of a leader ran. */
function runOf({ enteredAt = 0, leftAt = Infinity, process }: Entry, { faults }: Evidence): Interval {
  return { from: enteredAt, to: Math.min(leftAt, faults.deathOf(process)) };
}

function gapsBetween(runs: readonly Interval[]): Interval[] {
  return runs.length === 0
    ? []
    : without({ from: Math.min(...runs.map(({ from }) => from)), to: Math.max(...runs.map(({ from }) => from)) }, runs);
}

function twice(own: readonly Entry[], evidence: Evidence): Violation[] {
  return own.flatMap((entry, at) => {
    const next = own[at + 1];
    return next && entry.enteredAt !== undefined && next.invokedAt < runOf(entry, evidence).to
      ? [{ text: `${entry.process} stood by while its code of fence ${entry.fence} still ran`, entries: [entry, next] }]
      : [];
  });
}

function absent(own: readonly Entry[], { history, faults, leaseMs }: Evidence): Violation[] {
  return own.flatMap((entry, at) => {
    const { process, settledAt } = entry;
    const stopped = history.find((event) => event.process === process && event.op === 'stop')?.t ?? Infinity;
    const until = own[at + 1]?.invokedAt ?? Math.min(stopped, faults.deathOf(process));
    if (settledAt === undefined || until === Infinity) {
      return [];
    }
    const ms = without({ from: settledAt, to: until }, faults.stopping(process)).reduce((sum, { from, to }) => sum + to - from, 0);
    return ms > ABSENT * leaseMs + SLACK_MS
      ? [{ text: `${process} neither led nor stood by for ${Math.round(ms)} ms`, entries: [entry] }]
      : [];
  });
}

function untold(led: readonly Entry[], events: readonly HistoryEvent[]): Violation[] {
  return led.flatMap((entry) => {
    const { process, fence, lostAt, settledAt } = entry;
    const own = events.filter((event) => event.process === process && event.fence === fence);
    const told = new Set(own.map(({ outcome = '' }) => outcome.split(' ')[0]));
    // One that was killed may have had no time for more.
    const due = ['elected', ...(settledAt === undefined ? [] : lostAt === undefined ? ['ended'] : ['revoked', 'ended'])];
    const missing = due.filter((change) => !told.has(change));
    return missing.length > 0
      ? [{ text: `${process} led at fence ${fence}, and there was no event: ${missing.join(', ')}`, entries: [entry] }]
      : [];
  });
}
