import { LOCK_OPTIONS, type OnUnavailable } from '../../core/words/call-options.js';
import type { OptionNames } from '../../core/words/check-options.js';
import { oneArgument } from './decorated-method.js';
import { checkGiven, lockMethod, type DecoratorName } from './distributed-lock.decorator.js';
import type { DistributedLockOptions, Given, LockDecorator, OfCall, Uninferred } from './distributed-lock.options.js';
import type { UnavailableError } from '../refused-call.js';

/**
 * The options of `@DistributedSemaphore`: those of `@DistributedLock`, on one key and without `mode`. `permits` may be
 * a function of the arguments too.
 */
export interface DistributedSemaphoreOptions<
  Args extends unknown[] = unknown[],
  Self = unknown,
  Answer = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
  Away = unknown,
> extends Omit<DistributedLockOptions<Args, Self, Answer, TimeArgs, SignalArgs, Away>, 'key' | 'mode' | 'onUnavailable'> {
  /** The name of the limit: a template such as `'erp:<tenant>'`, or a function of the arguments that returns a key. */
  key: string | OfCall<Self, Args, string>;
  /**
   * How many calls may run at once, over all processes: a whole number from 1 to 1,000. Where calls name different
   * counts, as during a deploy, the smallest of those present counts.
   */
  permits: number | OfCall<Self, TimeArgs, number>;
  /**
   * `'wait'` or `'throw'`, as for locks; `'run'`: run the method without a permit where `'throw'` would fail, since
   * traffic that is only shaped must not stop; or a function of the error and the arguments, whose result is taken.
   * Default: the module's, `'wait'`.
   */
  onUnavailable?: OnUnavailable | 'run' | ((this: Self, error: UnavailableError, ...args: Args) => Away) | undefined;
}

/**
 * Runs at most `permits` calls of a method at once, across all processes, among all calls with the same key; the others
 * queue. Calls made from inside on the same semaphore take no second permit.
 *
 * The method rejects as one with `@DistributedLock` does; where all permits are taken for the whole `wait`, with
 * `LockNotAcquiredError`, HTTP 429. Throws `LockConfigurationError` while the class is loaded where the options are
 * wrong. Several calls run at once, so there is no fence: what only one may do at a time needs a lock.
 */
export function DistributedSemaphore<
  Args extends unknown[] = unknown[],
  Self = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
  Away = unknown,
>(
  options: DistributedSemaphoreOptions<Args, Self, unknown, TimeArgs, SignalArgs, Away> & { onBusy: 'skip' },
): LockDecorator<Self, { args: Args; timeArgs: TimeArgs; signalArgs: SignalArgs; answer: unknown; away: Uninferred<Away>; skips: true }>;
export function DistributedSemaphore<
  Args extends unknown[] = unknown[],
  Self = unknown,
  Answer = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
  Away = unknown,
>(
  options: DistributedSemaphoreOptions<Args, Self, Answer, TimeArgs, SignalArgs, Away>,
): LockDecorator<
  Self,
  { args: Args; timeArgs: TimeArgs; signalArgs: SignalArgs; answer: Uninferred<Answer>; away: Uninferred<Away>; skips: false }
>;
export function DistributedSemaphore(given: DistributedSemaphoreOptions, ...more: unknown[]): LockDecorator<unknown, Given> {
  oneArgument(SEMAPHORE.name, more, SEMAPHORE.example);
  return lockMethod(SEMAPHORE, (site) => optionsOf(given, site));
}

const SEMAPHORE: DecoratorName = {
  name: '@DistributedSemaphore()',
  example: "@DistributedSemaphore({ key: 'erp:<tenant>', permits: 50 })",
  byHand: 'LockService.withPermit()',
  keys: 'a key',
};

const { ticket: _ticket, by: _by, mode: _mode, ...OF_CALLS } = LOCK_OPTIONS;
const OPTIONS: OptionNames<DistributedSemaphoreOptions> = {
  key: true,
  permits: true,
  ...OF_CALLS,
  onBusy: true,
  store: true,
  returns: true,
};

/** A count that is missing is refused as one that is wrong. */
function optionsOf(given: unknown, site: string): DistributedSemaphoreOptions {
  const options = checkGiven(given, OPTIONS, site, SEMAPHORE);
  return { ...options, permits: options.permits };
}
