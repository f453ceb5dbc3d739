import { parseCall } from '../../core/words/call.js';
import type { DistributedLockOptions } from './distributed-lock.options.js';
import type { WithLockOptions } from '../lock-service.options.js';
import { checkOnBusy, type OnBusy } from '../on-busy.js';

/** The defaults while a class is loaded, when no application is known yet. */
const NO_DEFAULTS = { ttlMs: 0, waitMs: 0, maxHoldMs: Infinity };

/** What may be a function of the call, beside `key` and `onBusy`. */
const MAY_BE_FUNCTIONS: ReadonlySet<string> = new Set(['ttl', 'wait', 'signal']);

/**
 * The options of a locked method, checked when the class is loaded. What is a function of the call is called and checked with each call.
 */
export class MethodOptions {
  /** Those that are no functions. */
  readonly fixed: WithLockOptions;
  readonly onBusy: DistributedLockOptions['onBusy'];
  readonly #functions: readonly (readonly [string, Function])[];

  constructor(given: DistributedLockOptions, site: string) {
    const { key, onBusy, store: _store, returns: _returns, ...options } = given;
    const entries = Object.entries(options);
    this.#functions = entries.filter(isFunction) as [string, Function][];
    this.onBusy = onBusy;
    this.fixed = {
      ...Object.fromEntries(entries.filter((entry) => !isFunction(entry))),
      by: site,
      name: options.name ?? (typeof key === 'string' ? key : site),
      onBusy: typeof onBusy === 'function' ? undefined : onBusy,
    };
    checkOnBusy(onBusy, site);
    parseCall(this.fixed, NO_DEFAULTS, site);
  }

  /** Whether all calls have the same. */
  get isFixed(): boolean {
    return this.#functions.length === 0;
  }

  /** The options of a call. */
  of(self: unknown, args: readonly unknown[]): WithLockOptions {
    const called = this.#functions.map(([name, option]) => [name, Reflect.apply(option, self, args) as unknown] as const);
    return { ...this.fixed, ...Object.fromEntries(called), onBusy: this.onBusyOf(self, args) };
  }

  onBusyOf(self: unknown, args: readonly unknown[]): OnBusy<unknown> | undefined {
    const { onBusy } = this;
    return typeof onBusy === 'function' ? (error) => onBusy.call(self, error, ...args) : onBusy;
  }
}

function isFunction([name, option]: [string, unknown]): boolean {
  return MAY_BE_FUNCTIONS.has(name) && typeof option === 'function';
}
