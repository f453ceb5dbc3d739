import { confirmedAt, type Entry } from '../entry.js';
import { within } from '../interval.js';
import { SLACK_MS, type Evidence } from './check.js';

/**
 * Whether the grant of a quorum may have ended before its time: a server that missed its vote does not make up for it.
 * Servers that were away missed it, and so did some where others asked for the key at the same moment: votes were
 * split, and the grant is on the fewest servers.
 */
export function mayHaveFaded(entry: Entry, to: number, { entries, faults, leaseMs }: Evidence): boolean {
  const { key, owner, process, invokedAt, enteredAt = Infinity, alone } = entry;
  // The attempt that was granted began at most a lease before. Of several keys, the first was perhaps granted long
  // before the last.
  const from = alone ? enteredAt - leaseMs : invokedAt;
  const isContended = entries.some(
    (other) =>
      other.key === key && other.owner !== owner && other.invokedAt <= enteredAt && (other.enteredAt ?? other.settledAt ?? to) >= from,
  );
  return faults.missedVotes(process, { from, to }, isContended ? faults.spare : 0);
}

/**
 * The event that took a lock away before another owner had it at `overtakenAt`, where its holder could not have noticed
 * until `to`: within a renewal interval and the pause before a renewal is repeated, not counting the time in which it
 * was kept from the servers.
 */
export function unnoticed(entry: Entry, overtakenAt: number, to: number, { faults, leaseMs }: Evidence): string | undefined {
  // A machine that sleeps trusts its lease for longer, and asks nobody meanwhile.
  const confirmed = confirmedAt(entry, leaseMs) - faults.sleptMs(entry.process, { from: entry.invokedAt, to });
  const noticeMs = leaseMs / 3 + leaseMs / 10 + SLACK_MS;
  const hindered = faults.hindering(entry);
  return faults
    .taking(entry.key, entry.fence)
    .filter((taken) => taken.to >= confirmed && taken.from <= overtakenAt)
    .find((taken) => to <= taken.to + noticeMs + within({ from: taken.from, to }, hindered))?.fault;
}
