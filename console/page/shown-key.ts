import { createHash } from 'node:crypto';

/** How the page shows a key. */
export type ShowKey = (key: string) => string;

export const showWhole: ShowKey = (key) => key;

/** A key has the same hash in every process. Whoever can guess a key can know it by its hash. */
export const showHash: ShowKey = (key) => `#${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;

/** The words for a holder without the description behind them: host, process id and, where it is known, the place. */
const UNDESCRIBED = /^(?:.*? \(pid \d+\))?[^(]*/s;

/** Who holds a lock, as the page says it: where keys are hidden, without what `describe` says. */
export function shownHolder(by: string, show: ShowKey): string {
  return show === showWhole ? by : (UNDESCRIBED.exec(by) as RegExpExecArray)[0].trim();
}
