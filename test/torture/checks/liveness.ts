import { TRIAL_KEY } from '../../../lib/core/watching/trials.js';
import { isPermit, isReader, wasLost, type Entry } from '../entry.js';
import { within, without, type Interval } from '../interval.js';
import { CLAIM_MS, SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';

/** How often the others look for their turn who are not about to have it, in milliseconds. */
const RECHECK_MS = 2_000;

/** When an entry may have had its key, or a call waited for it. */
interface Presence extends Interval {
  readonly entry: Entry;
}

/**
 * Nobody waits for a lock that is free, to read beside readers only, or for a permit where there is room; and nothing
 * is left after the last fault.
 */
export function checkLiveness(evidence: Evidence): Finding {
  const longestMs = evidence.leaseMs + CLAIM_MS + RECHECK_MS + SLACK_MS;
  let waits = 0;
  const violations: Violation[] = evidence.leftovers.map((text) => ({ text, entries: [] }));
  for (const key of evidence.keys) {
    const entries = evidence.entries.filter((entry) => entry.key === key);
    const held = entries.flatMap((entry) => possiblyHeld(entry, evidence));
    const waiting = entries.filter(({ op }) => op === 'acquire').map((entry) => queued(entry, evidence));
    for (const entry of entries.filter(({ op, alone }) => op === 'acquire' && alone)) {
      waits++;
      const wait = waitOf(entry);
      if (wait.to - wait.from <= longestMs) {
        continue;
      }
      const idle = without(wait, [...blocking(entry, held, waiting), ...evidence.faults.denying(entry)]);
      const longest = idle.find(({ from, to }) => to - from > longestMs);
      if (longest) {
        const ms = Math.round(longest.to - longest.from);
        violations.push({
          text: `${entry.process} waited for "${key}" while ${isPermit(entry) ? 'there was room' : 'it was free'} for ${ms} ms`,
          entries: [entry],
        });
      }
    }
  }
  return { check: 'no turn is missed', seen: `${waits} waits`, violations };
}

/**
 * A process that is killed leaves such a lease: of a nested call, which the fault `nest` makes, and of the keys on
 * which a store checks its start, and core an outage.
 */
export function hasLongerLease(leftover: string): boolean {
  return leftover.includes(TRIAL_KEY) || / nest|start-up check/.test(leftover);
}

/** From the call to the moment when its code began, or it gave up. */
function waitOf({ invokedAt, enteredAt, settledAt }: Entry): Interval {
  return { from: invokedAt, to: enteredAt ?? settledAt ?? invokedAt };
}

/** When it may have had the lock: where nobody knows how it ended, for a lease longer. */
function possiblyHeld(entry: Entry, { faults, leaseMs }: Evidence): Presence[] {
  const { enteredAt, settledAt, invokedAt, process, outcome = '' } = entry;
  const died = faults.deathOf(process);
  if (enteredAt === undefined && !/unknown|aborted/.test(outcome) && settledAt !== undefined) {
    return [];
  }
  const isCertain = enteredAt !== undefined && settledAt !== undefined && !wasLost(entry);
  const ended = Math.min(settledAt ?? Infinity, died);
  // A grant that comes after its caller was aborted is given back at once, if its process can.
  const isAborted = enteredAt === undefined && settledAt !== undefined && outcome.endsWith('aborted');
  const isGivenBack = isAborted && within({ from: invokedAt, to: ended + leaseMs }, faults.hindering(entry)) === 0;
  const to = ended + (isCertain ? 0 : isGivenBack ? leaseMs / 2 : leaseMs);
  return [{ from: enteredAt ?? invokedAt, to, entry }];
}

/** When a call waited, and its process perhaps stood in the queue: that of one that was killed, for a while longer. */
function queued(entry: Entry, { faults, leaseMs }: Evidence): Presence {
  const { from } = waitOf(entry);
  return { from, to: entry.enteredAt ?? entry.settledAt ?? faults.deathOf(entry.process) + leaseMs, entry };
}

/** Those that may keep a call from its key: a writer all that may be in, a reader the writers that are in or wait. */
function blocking(entry: Entry, held: readonly Presence[], waiting: readonly Presence[]): readonly Interval[] {
  const isOther = (other: Presence): boolean => other.entry.hold !== entry.hold;
  if (isPermit(entry)) {
    const { from, to } = waitOf(entry);
    const metIt = (other: Presence): boolean => isOther(other) && other.from <= to && other.to >= from;
    return full(entry.shares, held.filter(metIt), waiting.filter(metIt));
  }
  return isReader(entry) ? [...held, ...waiting].filter((other) => !isReader(other.entry)) : held.filter(isOther);
}

/**
 * When there was perhaps no room for one more of that count: by the smallest count of those who may have been in, and
 * of those who waited, of whom one that has no room may be the first.
 */
function full(count: number, held: readonly Presence[], waiting: readonly Presence[]): Interval[] {
  const moments = [...new Set([...held, ...waiting].flatMap(({ from, to }) => [from, to]))].toSorted((first, second) => first - second);
  return moments.flatMap((from, at) => {
    const to = moments[at + 1] ?? from;
    const there = (other: Presence): boolean => other.from <= from && other.to >= to;
    const inside = held.filter((other) => there(other) && other.entry.op === 'acquire');
    const counts = [...inside, ...waiting.filter(there)].map(({ entry }) => entry.shares as number);
    return inside.length >= Math.min(count, ...counts) ? [{ from, to }] : [];
  });
}
