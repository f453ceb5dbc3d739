import { setMaxListeners } from 'node:events';
import { callerOf, type Caller } from './caller.js';
import { checkSwitch, checkText, type OptionNames, wrongOption } from './check-options.js';
import { parseDuration, type Duration } from './duration.js';
import { LockConfigurationError } from './errors.js';

/** How a call has its key: alone, or beside other readers. */
export type LockMode = 'write' | 'read';

/**
 * With whom a hold shares its key: `'read'`: with other readers; a number: with other permits, so many in all, 1 to
 * 1,000. A key is a lock or a semaphore for as long as somebody is in.
 */
export type Shares = 'read' | number;

/** How a hold has its key, as events, metrics and spans say it. */
export type HoldMode = LockMode | 'permit';

export function modeOf(shares: Shares | undefined): HoldMode {
  return typeof shares === 'number' ? 'permit' : (shares ?? 'write');
}

/** How a call behaves while the store is known to be away: it waits, or it throws at once. */
export type OnUnavailable = 'wait' | 'throw';

/** The options of one locked call. */
export interface LockOptions {
  /**
   * `'write'`: alone. `'read'`: beside other readers, never beside a writer; for stores that are `shared`. Default:
   * `'write'`. A call of write mode inside a lock of read mode is refused, with the reason `'upgrade'`.
   */
  mode?: LockMode | undefined;
  /** How long the lease outlives a crashed process; at least 100 ms. Default: the module's, `'10s'`. */
  ttl?: Duration | undefined;
  /**
   * How long the call queues before it gives up with `LockNotAcquiredError`; 0: not at all. Default: the module's,
   * `'5s'`.
   */
  wait?: Duration | undefined;
  /**
   * Ends the wait when it aborts, with a `LockNotAcquiredError` whose `cause` is the signal's reason. Does not end the
   * body.
   */
  signal?: AbortSignal | undefined;
  /**
   * Whether the lease is renewed while the code runs. `false` is a fixed lease: code that runs longer than `ttl` loses
   * it. Default: `true`.
   */
  renew?: boolean | undefined;
  /**
   * After this long the lock's signal aborts, renewal stops and the lease runs out. Default: the module's, none. Counts
   * for the outermost call.
   */
  maxHold?: Duration | undefined;
  /**
   * Keeps the lock taken at least so long after it was acquired, though the call returns at once. Default: 0. Counts
   * for the outermost call.
   */
  minHold?: Duration | undefined;
  /**
   * `'wait'`: a store that does not answer is asked again for as long as the call may wait. `'throw'`: while the store
   * is known to be away, the call fails at once with `LockStoreError`. Known to be away: attempts have failed for a
   * second, and none was answered. One call in 500 ms asks it all the same, so that it is noticed when it answers
   * again. Default: the module's, `'wait'`.
   */
  onUnavailable?: OnUnavailable | undefined;
  /** `'context'`: a call made from inside the lock re-enters. `'never'`: it acquires anew. Default: `'context'`. */
  reentry?: 'context' | 'never' | undefined;
  /** The ticket of a running lock to enter, from whichever process. `LockLostError` where that lock has ended. */
  ticket?: string | undefined;
  /**
   * The name of this caller in `inspect`, in logs and in the `detail` of errors, after host and process. Default for a
   * decorated method: `Class.method`.
   */
  by?: string | undefined;
  /**
   * The name that events and metrics count this call under. Choose one of few names: metrics are kept for each name, so
   * put no id into it. Default for a decorated method: its key template, or `Class.method` where its key is a function.
   * Default for other calls: `by`, or the method of `LockService`.
   */
  name?: string | undefined;
}

/** The options of a locked call; of one that takes a permit, where they have `permits`. */
export interface CallGiven extends LockOptions {
  permits?: number | undefined;
}

/** The most permits of a semaphore: a store looks at all that are taken. */
const MOST_PERMITS = 1_000;

export const LOCK_OPTIONS: OptionNames<LockOptions> = {
  ttl: true,
  wait: true,
  signal: true,
  renew: true,
  maxHold: true,
  minHold: true,
  onUnavailable: true,
  reentry: true,
  ticket: true,
  by: true,
  name: true,
  mode: true,
};

/** A call's options, checked and complete. Durations in milliseconds. */
export interface CallOptions {
  /** `'read'`, or the count of a permit; undefined for a call of write mode. */
  readonly shares: Shares | undefined;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly minHoldMs: number;
  readonly onUnavailable: OnUnavailable;
  readonly reentry: 'context' | 'never';
  readonly ticket: string | undefined;
  /** Whether its caller goes on where the lock is busy (`LockNotAcquiredError.reason`), so that this is no failure. */
  readonly skips: boolean;
  readonly caller: Caller;
}

/** How many calls of that mode there are of each name; of all modes where none is given. */
export function countByName(calls: Iterable<Pick<CallOptions, 'caller' | 'shares'>>, mode?: HoldMode): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { caller, shares } of calls) {
    if (mode === undefined || mode === modeOf(shares)) {
      counts.set(caller.name, (counts.get(caller.name) ?? 0) + 1);
    }
  }
  return counts;
}

/** The smallest count of the permits that calls of each name have, or want. */
export function permitsByName(calls: Iterable<Pick<CallOptions, 'caller' | 'shares'>>): ReadonlyMap<string, number> {
  const permits = new Map<string, number>();
  for (const { caller, shares } of calls) {
    if (typeof shares === 'number') {
      permits.set(caller.name, Math.min(shares, permits.get(caller.name) ?? shares));
    }
  }
  return permits;
}

export const LEAST_TTL_MS = 100;

/** The options that count where a call does not set its own. */
export interface CallDefaults {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly maxHoldMs: number;
  readonly onUnavailable?: OnUnavailable;
}

/** Checks a call's options against the module's defaults; throws `LockConfigurationError` that names `site`. */
export function parseCall(options: CallGiven, defaults: CallDefaults, site: string, skips = false): CallOptions {
  const { mode, permits, ttl, wait, signal, renew, maxHold, minHold, onUnavailable, reentry, ticket, by, name } = options;
  checkKinds(options, site);
  const call = {
    shares: 'permits' in options ? checkPermits(permits, site) : mode === 'read' ? mode : undefined,
    ttlMs: ttl === undefined ? defaults.ttlMs : parseDuration(ttl, 'ttl', LEAST_TTL_MS, site),
    waitMs: wait === undefined ? defaults.waitMs : parseDuration(wait, 'wait', 0, site),
    signal,
    renew: renew ?? true,
    maxHoldMs: maxHold === undefined ? defaults.maxHoldMs : parseDuration(maxHold, 'maxHold', 1, site),
    minHoldMs: minHold === undefined ? 0 : parseDuration(minHold, 'minHold', 0, site),
    onUnavailable: onUnavailable ?? defaults.onUnavailable ?? 'wait',
    reentry: reentry ?? 'context',
    ticket,
    skips,
    caller: callerOf(by ?? '', site, name),
  };
  // The module's maxHold ends code that runs too long, and minHold may well keep the lock for longer than that.
  if (maxHold !== undefined && call.minHoldMs > call.maxHoldMs) {
    throw new LockConfigurationError(
      `${site}: minHold is ${call.minHoldMs} ms, and maxHold ${call.maxHoldMs} ms: the lock cannot be kept longer than it may be held. ` +
        'Raise maxHold, or lower minHold.',
    );
  }
  return call;
}

/** Throws `LockConfigurationError` for a count of permits that is no whole number from 1 to 1,000. */
function checkPermits(permits: unknown, site: string): number {
  if (!Number.isInteger(permits) || (permits as number) < 1 || (permits as number) > MOST_PERMITS) {
    throw wrongOption(`${site}: permits`, permits, `Pass how many may run at once, a whole number from 1 to ${MOST_PERMITS}.`);
  }
  return permits as number;
}

function checkKinds({ mode, signal, renew, onUnavailable, reentry, by, name }: LockOptions, site: string): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new LockConfigurationError(
      `${site}: signal is not an AbortSignal. Pass the signal of an AbortController, or AbortSignal.timeout(ms).`,
    );
  }
  if (mode !== undefined && mode !== 'write' && mode !== 'read') {
    throw wrongOption(`${site}: mode`, mode, "Use 'write' or 'read'.");
  }
  if (onUnavailable !== undefined) {
    checkOnUnavailable(onUnavailable, site);
  }
  if (reentry !== undefined && reentry !== 'context' && reentry !== 'never') {
    throw wrongOption(`${site}: reentry`, reentry, "Use 'context' or 'never'.");
  }
  checkSwitch(site, 'renew', renew);
  checkText(site, 'by', by, "Pass a text such as 'Balances.close'.");
  checkText(site, 'name', name, "Pass a text that many calls share, such as 'balance'.");
  if (signal) {
    // Many calls may wait on one signal, each with a listener.
    setMaxListeners(0, signal);
  }
}

/** Throws `LockConfigurationError` for anything else. */
export function checkOnUnavailable(value: OnUnavailable, site: string): OnUnavailable {
  if (value !== 'wait' && value !== 'throw') {
    throw wrongOption(`${site}: onUnavailable`, value, "Use 'wait' or 'throw', or in @DistributedLock() and withLock() a function.");
  }
  return value;
}
