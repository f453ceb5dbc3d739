import type { OnUnavailable } from '../core/words/call-options.js';
import { checkOptions, hasMethod, type OptionNames, wrongOption } from '../core/words/check-options.js';
import type { Describe } from '../core/words/description.js';
import type { Duration } from '../core/words/duration.js';
import { LockConfigurationError } from '../core/words/errors.js';
import type { MaxWaiters } from '../core/entering/waiters.js';
import type { LockStore } from '../core/seam/lock-store.js';
import { shownWithoutText } from '../core/words/shown.js';
import { onlyDuration } from './lock-operations.options.js';
import type { LockTelemetry } from '../core/words/lock-telemetry.js';
import { END_OF_TRANSACTION, type TransactionEnd } from '../core/transactions/transactions.js';

/** The options of `LockModule`: a store, or several with names, and the defaults of every call. */
export interface LockModuleOptions {
  /**
   * Where locks live. The store belongs to the module from here on, which closes it; a client given to the store stays
   * yours.
   */
  store?: LockStore | undefined;
  /** Several stores by name, one of them `default`; instead of `store`. */
  stores?: Readonly<Record<string, LockStore>> | undefined;
  /** How long a lease outlives a crashed process; at least 100 ms. Default: `'10s'`. */
  ttl?: Duration | undefined;
  /** How long a call queues before it gives up; 0: not at all. Default: `'5s'`. */
  wait?: Duration | undefined;
  /**
   * How calls behave while the store is known to be away: `'wait'`, or `'throw'` to fail at once. Default: `'wait'`.
   */
  onUnavailable?: OnUnavailable | undefined;
  /**
   * Whether each step of each lock is a debug line of Nest's `Logger`; owners and tickets are in none. Default:
   * `false`.
   */
  debug?: boolean | undefined;
  /**
   * After this long a call's lock signal aborts, renewal stops and the lease runs out; a call may set its own. Default:
   * no limit.
   */
  maxHold?: Duration | undefined;
  /** The prefix of the names of everything in a server; without braces. Default: `'lock'`. */
  prefix?: string | undefined;
  /**
   * How many calls of this process may wait: for one key, and in all for a store. A further call is refused at once,
   * with the reason `'tooManyWaiters'`; with 0, each call that would have to wait. A call waits if it did not get its
   * lock at once: another call here or in another process has it, or the store does not answer. A call that enters a
   * lock which it is inside of already does not count. A single number is the limit for one key. Default: 10 000, and
   * 50 000 in all.
   */
  maxWaiters?: number | { readonly perKey?: number | undefined; readonly perProcess?: number | undefined } | undefined;
  /**
   * Whether calls of several processes that wait for each other are found. A call that is inside a lock and has waited
   * for another lock for `after` searches for them, and one of the calls fails with the reason `'cycle'`. `false`: each
   * call waits for its `wait`. Default: `{ after: '1s' }`.
   */
  deadlocks?: { readonly after?: Duration | undefined } | false | undefined;
  /** Makes traces and metrics of the locks: telemetry of this library, or your own. Default: nothing. */
  telemetry?: LockTelemetry | readonly LockTelemetry[] | undefined;
  /**
   * Describes the purpose of the running call, such as `{ request: id, tenant }`: a few short texts, 200 characters in
   * all. The texts are shown with the holder of a lock by `inspect`, `list`, the page and the `detail` of errors, kept
   * in the store with the lock, and are in events and logs: put no secret in them. Called once for each locked call, in
   * its context, so it has to be quick; an error that it throws fails no call. Default: nothing, and the trace of the
   * call with `otelTelemetry()`.
   */
  describe?: Describe | undefined;
  /**
   * Returns the promise of the end of the transaction around the running code, and undefined where there is none. Locks
   * that are taken inside a transaction are held until that promise settles, either way. Called once for each locked
   * call, in its context; all calls of one transaction have to get the same promise. A `TransactionScope` has such a
   * function. Default: none, and a lock is released when its method ends.
   */
  transaction?: TransactionEnd | undefined;
}

/** Makes the options of `LockModule`, for `forRootAsync({ useClass })` and `useExisting`. */
export interface LockOptionsFactory {
  createLockOptions(): LockModuleOptions | Promise<LockModuleOptions>;
}

const OPERATIONS = ['acquire', 'renew', 'release', 'close'] as const;

const OPTIONS: OptionNames<LockModuleOptions> = {
  store: true,
  stores: true,
  ttl: true,
  wait: true,
  maxHold: true,
  onUnavailable: true,
  debug: true,
  prefix: true,
  maxWaiters: true,
  deadlocks: true,
  telemetry: true,
  describe: true,
  transaction: true,
};

/** Throws `LockConfigurationError` for a store in place of options. */
export function refuseStore(options: unknown): void {
  if (isStore(options)) {
    throw noOptions('a store in place of options');
  }
}

/** Throws `LockConfigurationError` where there are no options, or one that is unknown. */
export function checkNames(options: LockModuleOptions | undefined): asserts options is LockModuleOptions {
  if (options === undefined || options === null) {
    throw noOptions('no options');
  }
  refuseStore(options);
  checkOptions('LockModule', options, OPTIONS);
}

function noOptions(what: string): LockConfigurationError {
  return new LockConfigurationError(
    `LockModule has ${what}. Import LockModule.forRoot({ store }) or LockModule.forRootAsync(…), whose factory returns { store }.`,
  );
}

/** The stores by name. Throws `LockConfigurationError` for a value that is no store. */
export function storesOf(options: LockModuleOptions): ReadonlyMap<string, LockStore> {
  const stores = new Map(Object.entries(options.stores ?? { default: options.store }));
  if (options.stores && (options.store !== undefined || !stores.has('default'))) {
    throw new LockConfigurationError("LockModule: pass either store, or stores with one of them named 'default'.");
  }
  for (const [name, store] of stores) {
    if (!isStore(store)) {
      throw new LockConfigurationError(
        `LockModule: the store '${name}' is ${shownWithoutText(store)}, not a lock store. Pass new RedisLockStore(redis) or new MemoryLockStore().`,
      );
    }
  }
  return stores as ReadonlyMap<string, LockStore>;
}

const MOST_WAITERS: MaxWaiters = { perKey: 10_000, perProcess: 50_000 };

/** Throws `LockConfigurationError` for a value that is no count. */
export function checkMaxWaiters(given: LockModuleOptions['maxWaiters']): MaxWaiters {
  const limits = typeof given === 'object' && given !== null ? given : { perKey: given };
  checkOptions('LockModule: maxWaiters', limits, { perKey: true, perProcess: true });
  const { perKey = MOST_WAITERS.perKey } = limits;
  const { perProcess = Math.max(MOST_WAITERS.perProcess, checkCount(perKey)) } = limits;
  return { perKey: checkCount(perKey), perProcess: checkCount(perProcess) };
}

function checkCount(count: number): number {
  if (!Number.isSafeInteger(count) || count < 0) {
    throw wrongOption('LockModule: maxWaiters', count, 'Pass a whole number of calls, 0 or more.');
  }
  return count;
}

/**
 * For how long a call waits before it searches for a deadlock, in milliseconds. Throws `LockConfigurationError` for a
 * value that the option does not allow.
 */
export function checkDeadlocks(given: LockModuleOptions['deadlocks']): number {
  return given === false ? Infinity : onlyDuration('LockModule: deadlocks', given ?? {}, 'after', '1s', 100);
}

const OF_TELEMETRY: readonly (keyof LockTelemetry)[] = ['watch', 'event', 'entered', 'describe', 'operation', 'section', 'resume'];

/**
 * The telemetry as a list. Throws `LockConfigurationError` for a value that is no telemetry, and for a part that
 * follows nothing.
 */
export function checkTelemetry(given: LockModuleOptions['telemetry']): readonly LockTelemetry[] {
  const parts: readonly unknown[] = given === undefined ? [] : Array.isArray(given) ? given : [given];
  const wrong = parts.find((part) => !OF_TELEMETRY.some((method) => hasMethod(part, method)));
  if (wrong !== undefined) {
    throw wrongOption('LockModule: telemetry', wrong, 'Pass what otelTelemetry() or prometheusTelemetry() returns, or a list of them.');
  }
  return parts as readonly LockTelemetry[];
}

const FUNCTIONS = [
  ['describe', 'says what the running call is made for, such as () => ({ request: id })'],
  ['transaction', `returns ${END_OF_TRANSACTION}`],
] as const;

/** Throws `LockConfigurationError` where an option is no function. */
export function checkFunctions(options: LockModuleOptions): void {
  for (const [name, what] of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw wrongOption(`LockModule: ${name}`, options[name], `Pass a function that ${what}.`);
    }
  }
}

function isStore(value: unknown): value is LockStore {
  return OPERATIONS.every((name) => hasMethod(value, name));
}

/** The source of the stores of `LockModule.forTesting()`: a `LockTesting` of `nestjs-distributed-lock/testing`. */
export interface LockTestController {
  /** The stores of those names. */
  storesFor(names: readonly string[]): Readonly<Record<string, LockStore>>;
  /** Follows the locks of these stores. */
  readonly telemetry: LockTelemetry;
}

/** The options of `LockModule.forTesting()`. */
export interface LockTestOptions {
  /** The stores besides `default` that the code under test names. Default: none. */
  storeNames?: readonly string[] | undefined;
  /** Makes faults and tells which locks were taken: `new LockTesting()`. Default: stores in memory without it. */
  controller?: LockTestController | undefined;
}
