import { wasLost, type Entry } from '../entry.js';
import { within } from '../interval.js';
import { SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';
import { unnoticed } from './excuse.js';

/** Whoever was overtaken was told of the loss, and nobody was told of one that nothing caused. */
export function checkHonesty(evidence: Evidence): Finding {
  const entered = evidence.entries.filter(({ enteredAt }) => enteredAt !== undefined);
  const lost = entered.filter(wasLost);
  const keys = new Map<string, Set<string>>();
  for (const { owner, key } of entered) {
    keys.set(owner, (keys.get(owner) ?? new Set()).add(key));
  }
  const violations = [...silentLosses(entered, evidence), ...lost.flatMap((entry) => falseLoss(entry, keys, evidence))];
  return { check: 'losses are told', seen: `${lost.length} losses of ${entered.length} holds`, violations };
}

function silentLosses(entered: readonly Entry[], evidence: Evidence): Violation[] {
  return evidence.keys.flatMap((key) => {
    const byFence = entered
      .filter((entry) => entry.key === key)
      .toSorted((first, second) => (first.fence as number) - (second.fence as number));
    return byFence.flatMap((entry, at) => {
      const next = byFence.slice(at + 1).find((other) => other.owner !== entry.owner && (other.fence as number) > (entry.fence as number));
      const { leftAt, settledAt } = entry;
      // A process that was killed could tell nobody.
      if (!next || leftAt === undefined || settledAt === undefined || wasLost(entry) || (next.enteredAt as number) >= leftAt) {
        return [];
      }
      // Where not even the release was answered, nobody could know.
      return unnoticed(entry, next.enteredAt as number, leftAt, evidence)
        ? []
        : [{ text: `"${key}" was lost by ${entry.process} at fence ${entry.fence}, which was not told`, entries: [entry, next] }];
    });
  });
}

/** A lock on several keys is lost with each of them. */
function falseLoss(entry: Entry, keysOf: ReadonlyMap<string, ReadonlySet<string>>, { faults, leaseMs }: Evidence): Violation[] {
  if (entry.outcome === 'LOCK_LOST shutdown') {
    return [];
  }
  const lostAt = Math.min(entry.lostAt ?? Infinity, entry.settledAt ?? Infinity);
  const taken = [...(keysOf.get(entry.owner) ?? [])].some((key) =>
    faults.taking(key).some(({ from, to }) => to >= entry.ownedSince && from <= lostAt),
  );
  const lease = { from: lostAt - leaseMs - SLACK_MS, to: lostAt };
  // A renewal is sent after a third of the lease, and then every tenth: being kept from a few of them is no reason.
  const hinderedMs = within(lease, faults.hindering(entry.process));
  return taken || hinderedMs > leaseMs / 3
    ? []
    : [{ text: `"${entry.key}" was told to be lost by ${entry.process} at fence ${entry.fence}, and nothing caused it`, entries: [entry] }];
}
