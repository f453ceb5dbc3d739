import { checkOptions, type OptionNames, wrongOption } from '../core/words/check-options.js';
import { parseDuration, type Duration } from '../core/words/duration.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { shown } from '../core/words/shown.js';
import type { ListLimits } from '../operate/peers/lock-list.js';

/** The options of a health check. */
export interface HealthOptions {
  /** How long a store may answer nothing until it counts as down: a failover takes a few seconds. Default: `'5s'`. */
  downAfter?: Duration | undefined;
}

/** The only option of something, a duration, in milliseconds. Throws `LockConfigurationError` for anything else. */
export function onlyDuration<Name extends string>(
  site: string,
  options: { readonly [name in Name]?: Duration | undefined },
  name: Name,
  usual: Duration,
  least: number,
): number {
  checkOptions(site, options, { [name]: true } as OptionNames<typeof options>);
  return parseDuration(options[name] ?? usual, name, least, site);
}

/** For how long a store may be down, in milliseconds. Throws `LockConfigurationError`. */
export function downAfterOf(options: HealthOptions, site: string): number {
  return onlyDuration(site, options, 'downAfter', '5s', 0);
}

/** The lock to release by force, and the words that are told about it. */
export interface ForceReleaseOptions {
  /** The fence that `inspect` showed: a later holder keeps its lock. */
  fence: number;
  /** Who does it: the name of a user, or of a program. At most 200 characters. */
  by?: string | undefined;
  /** Why. At most 200 characters. */
  reason?: string | undefined;
}

const FORCE_RELEASE_OPTIONS: OptionNames<ForceReleaseOptions> = { fence: true, by: true, reason: true };

/** How long an operator's words may be, in characters. */
const MOST_WORDS = 200;

/** Throws `LockConfigurationError` for options of a forced release that are wrong. */
export function checkForceRelease(key: string, options: ForceReleaseOptions, site: string): void {
  checkOptions(site, options, FORCE_RELEASE_OPTIONS);
  const { fence }: { readonly fence: unknown } = options;
  if (!Number.isSafeInteger(fence)) {
    throw new LockConfigurationError(`${site}("${key}"): fence is ${shown(fence)}. Pass the fence that inspect("${key}") showed.`, key);
  }
  for (const option of ['by', 'reason'] as const) {
    const words: unknown = options[option];
    if (words !== undefined && (typeof words !== 'string' || words.length > MOST_WORDS)) {
      throw wrongOption(`${site}: ${option}`, words, `Pass a text of ${MOST_WORDS} characters at most.`);
    }
  }
}

/** The options of a list of incidents. */
export interface IncidentOptions {
  /** How far back. Default: `'24h'`, which is as long as they are kept. */
  since?: Duration | undefined;
}

/** The options of a list of locks. */
export interface ListOptions {
  /** The beginning of the keys that are listed. Default: `''`, all keys. */
  prefix?: string | undefined;
  /** The most locks. Default: 1,000. */
  limit?: number | undefined;
  /** Whether the store is searched for locks of processes that do not answer. Default: `true`. */
  scan?: boolean | undefined;
  /** For how long the store is searched at most. Default: `'10s'`. */
  timeout?: Duration | undefined;
}

/** The limits of a list. Throws `LockConfigurationError`. */
export function limitsOf(options: ListOptions, site: string): ListLimits {
  checkOptions(site, options, { prefix: true, limit: true, scan: true, timeout: true });
  const { prefix = '', limit = 1_000, scan = true, timeout = '10s' } = options;
  if (typeof prefix !== 'string') {
    throw wrongOption(`${site}: prefix`, prefix, 'Pass what the keys begin with.');
  }
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw wrongOption(`${site}: limit`, limit, 'Pass a whole number of locks, 1 or more.');
  }
  return { prefix, limit, searchMs: scan ? parseDuration(timeout, 'timeout', 1, site) : 0 };
}
