import { confirmedAt, type Entry } from '../entry.js';
import { within } from '../interval.js';
import { SLACK_MS, type Evidence } from './check.js';

/**
 * What took a lock away before another owner had it at `overtakenAt`, where its holder could not have noticed until `to`: within
 * a renewal interval and the pause before a renewal is repeated, not counting the time in which it was kept from the servers.
 */
export function unnoticed(entry: Entry, overtakenAt: number, to: number, { faults, leaseMs }: Evidence): string | undefined {
  const noticeMs = leaseMs / 3 + leaseMs / 10 + SLACK_MS;
  const hindered = faults.hindering(entry);
  return faults
    .taking(entry.key, entry.fence)
    .filter((taken) => taken.to >= confirmedAt(entry, leaseMs) && taken.from <= overtakenAt)
    .find((taken) => to <= taken.to + noticeMs + within({ from: taken.from, to }, hindered))?.fault;
}
