import ms from 'ms';
import { LockConfigurationError } from './errors.js';
import { shown } from './shown.js';

/** Milliseconds as a number, or a string such as `'500ms'`, `'30s'` or `'5m'`. */
export type Duration = number | string;

/** The longest delay that a Node timer can keep, about 24.8 days. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Milliseconds of a duration that lies between `least` and `most`, by default the longest timer.
 * Throws `LockConfigurationError`, which names `option` and `site`.
 */
export function parseDuration(value: Duration, option: string, least: number, site: string, most = LONGEST_TIMER_MS): number {
  const parsed = typeof value === 'number' ? value : parseText(value);
  if (!Number.isFinite(parsed) || parsed < least || parsed > most) {
    throw new LockConfigurationError(
      `${site}: ${option} is ${shown(value)}, which is not a duration from ` +
        `${least} to ${most} ms. Pass milliseconds as a number, or a string such as '500ms', '30s' or '5m'.`,
    );
  }
  return parsed;
}

function parseText(value: unknown): number {
  if (typeof value !== 'string' || value === '' || value.length > 100) {
    return Number.NaN;
  }
  // The type of `ms` lists the literals it knows; at run time it answers `undefined` for any other string.
  return (ms(value as ms.StringValue) as number | undefined) ?? Number.NaN;
}
