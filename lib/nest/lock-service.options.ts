import type { OptionNames } from '../core/words/check-options.js';
import { LOCK_OPTIONS, type LockOptions, type OnUnavailable } from '../core/words/call-options.js';
import type { OnBusy, OnUnavailableOf, UnavailableError } from './refused-call.js';

/** The options of `withLock`. */
export interface WithLockOptions<T = unknown> extends Omit<LockOptions, 'onUnavailable'> {
  /**
   * `'throw'`; `'skip'`: resolve `undefined`, with `wait: 0` unless set; or a function whose result is taken. Default:
   * `'throw'`.
   */
  onBusy?: OnBusy<T> | undefined;
  /**
   * `'wait'`; `'throw'`: fail at once with `LockStoreError` while the store is known to be away; or a function: the
   * call fails in the same cases, and with every error of a store that is away or refuses all, and the function's
   * result is taken. The body never runs without its lock. Default: the module's, `'wait'`.
   */
  onUnavailable?: OnUnavailableOf<T> | undefined;
}

export const WITH_LOCK_OPTIONS: OptionNames<WithLockOptions> = { ...LOCK_OPTIONS, onBusy: true };

/** The options of `acquirePermit`: those of a lock, without `mode` and `ticket`. */
export interface PermitOptions extends Omit<LockOptions, 'mode' | 'ticket'> {}

/** The options of `withPermit`. */
export interface WithPermitOptions<T = unknown> extends Omit<PermitOptions, 'onUnavailable'> {
  /**
   * `'throw'`; `'skip'`: resolve `undefined`, with `wait: 0` unless set; or a function whose result is taken. Default:
   * `'throw'`.
   */
  onBusy?: OnBusy<T> | undefined;
  /**
   * `'wait'` or `'throw'`, as for locks; `'run'`: run the body without a permit where `'throw'` would fail, since
   * traffic that is only shaped must not stop; or a function, whose result is taken. Default: the module's, `'wait'`.
   */
  onUnavailable?: OnUnavailable | 'run' | ((error: UnavailableError) => T | PromiseLike<T>) | undefined;
}

const { mode: _mode, ticket: _ticket, ...OF_PERMITS } = LOCK_OPTIONS;
const { wait: _wait, ...OF_TRIES } = OF_PERMITS;

export const PERMIT_OPTIONS: OptionNames<PermitOptions> = OF_PERMITS;
export const TRY_PERMIT_OPTIONS: OptionNames<Omit<PermitOptions, 'wait'>> = OF_TRIES;
export const WITH_PERMIT_OPTIONS: OptionNames<WithPermitOptions> = { ...OF_PERMITS, onBusy: true };
