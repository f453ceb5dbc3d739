import type { Entry } from '../entry.js';
import { without, type Interval } from '../interval.js';
import { WAIT_LEASES } from '../worker-options.js';
import { SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';

/**
 * How calls may end here. No call closes a cycle, is one of too many, or is made wrongly; a ticket may come when its
 * worker ends.
 */
const OUTCOMES =
  /^(returned|LOCK_NOT_ACQUIRED (busy|aborted|shutdown)|LOCK_LOST (expired|forced|released|shutdown)|LOCK_STORE( unknown)?)$/;

/** Every call ends, in time, and in a way that something explains. */
export function checkCalls(evidence: Evidence): Finding {
  const violations = evidence.entries.flatMap((entry) => [...unended(entry, evidence), ...late(entry, evidence), ...odd(entry, evidence)]);
  return { check: 'calls end as they may', seen: `${evidence.entries.length} calls`, violations };
}

function unended(entry: Entry, { faults }: Evidence): Violation[] {
  return entry.settledAt === undefined && faults.deathOf(entry.process) === Infinity
    ? [{ text: `${entry.process} never ended its call on "${entry.key}"`, entries: [entry] }]
    : [];
}

/**
 * A wait, and a release, last no longer than they may, not counting the time in which the process was kept from the
 * servers.
 */
function late(entry: Entry, { faults, leaseMs }: Evidence): Violation[] {
  const { process, key, invokedAt, enteredAt, leftAt, settledAt, waitMs = WAIT_LEASES * leaseMs } = entry;
  const end = settledAt ?? faults.deathOf(process);
  // The last attempt may come on top, and where replicas confirm, what it takes to undo it.
  const commandMs = leaseMs + SLACK_MS;
  const takenMs = (from: number, to: number, mostMs: number): number =>
    to - from <= mostMs ? 0 : sum(without({ from, to }, faults.denying(entry)));
  const waitedMs = takenMs(invokedAt, enteredAt ?? end, waitMs + commandMs);
  const leavingMs = leftAt === undefined ? 0 : takenMs(leftAt, end, commandMs);
  const violations: Violation[] = [];
  if (waitedMs > waitMs + commandMs) {
    violations.push({
      text: `${process} waited ${Math.round(waitedMs)} ms for "${key}", and no more than ${waitMs} ms were asked for`,
      entries: [entry],
    });
  }
  if (leavingMs > commandMs) {
    violations.push({ text: `${process} took ${Math.round(leavingMs)} ms to give "${key}" back`, entries: [entry] });
  }
  return violations;
}

function odd(entry: Entry, { faults, leaseMs }: Evidence): Violation[] {
  const { process, key, outcome, invokedAt, settledAt } = entry;
  if (outcome === undefined || settledAt === undefined) {
    return [];
  }
  if (!OUTCOMES.test(outcome)) {
    return [{ text: `a call of ${process} on "${key}" ended with ${outcome}`, entries: [entry] }];
  }
  const during = { from: invokedAt - leaseMs, to: settledAt };
  return outcome.startsWith('LOCK_STORE') && !faults.failing(entry).some(({ from, to }) => to >= during.from && from <= during.to)
    ? [{ text: `the store failed ${process} for "${key}", and nothing had struck it`, entries: [entry] }]
    : [];
}

function sum(pieces: readonly Interval[]): number {
  return pieces.reduce((ms, { from, to }) => ms + to - from, 0);
}
