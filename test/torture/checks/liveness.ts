import { TRIAL_KEY } from '../../../lib/core/watching/trials.js';
import { wasLost, type Entry } from '../entry.js';
import { within, without, type Interval } from '../interval.js';
import { CLAIM_MS, SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';

/** How often the others look for their turn who are not about to have it, in milliseconds. */
const RECHECK_MS = 2_000;

/** Nobody waits for a lock that is free, and nothing is left after the last fault. */
export function checkLiveness(evidence: Evidence): Finding {
  const longestMs = evidence.leaseMs + CLAIM_MS + RECHECK_MS + SLACK_MS;
  let waits = 0;
  const violations: Violation[] = evidence.leftovers.map((text) => ({ text, entries: [] }));
  for (const key of evidence.keys) {
    const entries = evidence.entries.filter((entry) => entry.key === key);
    const held = entries.flatMap((entry) => possiblyHeld(entry, evidence));
    for (const entry of entries.filter(({ op, alone }) => op === 'acquire' && alone)) {
      waits++;
      const wait = waitOf(entry);
      if (wait.to - wait.from <= longestMs) {
        continue;
      }
      const idle = without(wait, [...held.filter(({ hold }) => hold !== entry.hold), ...evidence.faults.denying(entry)]);
      const longest = idle.find(({ from, to }) => to - from > longestMs);
      if (longest) {
        const ms = Math.round(longest.to - longest.from);
        violations.push({ text: `${entry.process} waited for "${key}" while it was free for ${ms} ms`, entries: [entry] });
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
function possiblyHeld(entry: Entry, { faults, leaseMs }: Evidence): (Interval & { hold: string })[] {
  const { enteredAt, settledAt, invokedAt, process, hold, outcome = '' } = entry;
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
  return [{ from: enteredAt ?? invokedAt, to, hold }];
}
