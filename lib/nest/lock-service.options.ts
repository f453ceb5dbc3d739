import type { OptionNames } from '../core/words/check-options.js';
import { LOCK_OPTIONS, type LockOptions } from '../core/words/call-options.js';
import type { OnBusy, OnUnavailableOf } from './refused-call.js';

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
