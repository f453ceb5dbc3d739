import { confirmedAt, wasLost, type Entry } from '../entry.js';
import { within, without } from '../interval.js';
import { SLACK_MS, type Evidence, type Finding, type Violation } from './check.js';
import { mayHaveFaded, unnoticed } from './excuse.js';

/** By the keys of an owner. */
type Fences = Map<string, number | undefined>;

/** Higher fences that are looked at: an entry that ended late may have been overtaken by several. */
const NEAR = 50;

/**
 * For which part of a lease a process was kept from the servers that could not renew it: more than one cut of its
 * connections.
 */
const HINDERED = 0.55;

/**
 * Each caller that was overtaken was notified of the loss, nobody was notified of a loss that nothing caused, and each
 * was notified as soon as the lease was over.
 */
export function checkHonesty(evidence: Evidence): Finding {
  const entered = evidence.entries.filter(({ enteredAt }) => enteredAt !== undefined);
  const lost = entered.filter(wasLost);
  const fences = new Map<string, Fences>();
  for (const { owner, key, fence } of entered) {
    fences.set(owner, (fences.get(owner) ?? new Map()).set(key, fence));
  }
  const violations = [
    ...silentLosses(entered, evidence),
    ...lost.flatMap((entry) => falseLoss(entry, fences, evidence)),
    ...entered.flatMap((entry) => lateNotice(entry, evidence)),
  ];
  return { check: 'losses are notified', seen: `${lost.length} losses of ${entered.length} holds`, violations };
}

function silentLosses(entered: readonly Entry[], evidence: Evidence): Violation[] {
  return evidence.keys.flatMap((key) => {
    // A permit has no fence by which anybody could tell who overtook whom: `checkPermits` finds one too many.
    const byFence = entered
      .filter((entry) => entry.key === key && entry.fence !== undefined)
      .toSorted((first, second) => (first.fence as number) - (second.fence as number));
    return byFence.flatMap((entry, at) => {
      const { leftAt, settledAt } = entry;
      // A process that was killed could notify nobody.
      if (leftAt === undefined || settledAt === undefined || wasLost(entry)) {
        return [];
      }
      const next = byFence
        .slice(at + 1, at + 1 + NEAR)
        .find((other) => other.owner !== entry.owner && other.fence !== entry.fence && (other.enteredAt as number) < leftAt);
      if (!next) {
        return [];
      }
      // Where not even the release was answered, nobody could know.
      return unnoticed(entry, next.enteredAt as number, leftAt, evidence)
        ? []
        : [{ text: `"${key}" was lost by ${entry.process} at fence ${entry.fence}, which was not notified`, entries: [entry, next] }];
    });
  });
}

/** A lock on several keys is lost with each of them. */
function falseLoss(entry: Entry, fencesOf: ReadonlyMap<string, Fences>, evidence: Evidence): Violation[] {
  const { faults, leaseMs } = evidence;
  const reason = reasonOf(entry);
  if (reason === 'shutdown') {
    return [];
  }
  const lostAt = Math.min(entry.lostAt ?? Infinity, entry.settledAt ?? Infinity);
  // While the machine slept, nobody asked; and of several keys, the first was perhaps granted before that.
  const confirmed = confirmedAt(entry, leaseMs) - faults.sleptMs(entry.process, { from: entry.invokedAt, to: lostAt });
  const taken = [...(fencesOf.get(entry.owner) ?? [])]
    .flatMap(([key, fence]) => faults.taking(key, fence))
    .filter(({ from, to }) => to >= confirmed && from <= lostAt);
  const lease = { from: lostAt - leaseMs - SLACK_MS, to: lostAt };
  // A renewal is sent after a third of the lease, and then every tenth: being kept from a few of them is no reason.
  const hinderedMs = within(lease, faults.hindering(entry));
  // Before its deadline a lease is there, whatever keeps its holder from the servers.
  const mayHaveRunOut = lostAt >= entry.deadline && (entry.isFixed || hinderedMs > HINDERED * leaseMs);
  const isCaused =
    reason === 'forced'
      ? taken.some(({ fault }) => fault === 'force')
      : taken.length > 0 || mayHaveRunOut || mayHaveFaded(entry, lostAt, evidence);
  return isCaused
    ? []
    : [
        {
          text: `"${entry.key}" was notified as lost by ${entry.process} at fence ${entry.fence}, and nothing caused it`,
          entries: [entry],
        },
      ];
}

/**
 * The deadline of a lease is known to every process that has a clock: servers that do not answer are no reason for a
 * late notice, and only a process that stood still is.
 */
function lateNotice(entry: Entry, { faults }: Evidence): Violation[] {
  const { process, key, fence, enteredAt, lostAt, leftAt } = entry;
  const notifiedAt = lostAt ?? leftAt;
  // One that is renewed may have been renewed since its deadline was written down.
  if (notifiedAt === undefined || !entry.isFixed || notifiedAt <= entry.deadline + SLACK_MS) {
    return [];
  }
  // A clock that stood still knows later, unless a server answers before; the code could not trust its lease meanwhile.
  const deadline = entry.deadline + faults.sleptMs(process, { from: enteredAt as number, to: notifiedAt });
  if (notifiedAt <= deadline + SLACK_MS) {
    return [];
  }
  const lateMs = without({ from: deadline, to: notifiedAt }, faults.stopping(process)).reduce((ms, { from, to }) => ms + to - from, 0);
  return lateMs <= SLACK_MS
    ? []
    : [{ text: `the loss of "${key}" at fence ${fence} was notified ${Math.round(lateMs)} ms late in ${process}`, entries: [entry] }];
}

/** The first reason that its holder was notified of. */
function reasonOf({ events, outcome = '' }: Entry): string | undefined {
  return (events.find(({ op }) => op === 'lost')?.outcome ?? outcome).split(' ')[1];
}
