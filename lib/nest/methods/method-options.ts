import { parseCall } from '../../core/words/call.js';
import type { DistributedLockOptions } from './distributed-lock.options.js';
import { checkOnBusy, type OnBusy, type WithLockOptions } from '../lock.service.js';

/** The defaults while a class is loaded, when no application is known yet. */
const NO_DEFAULTS = { ttlMs: 0, waitMs: 0, maxHoldMs: Infinity };

/**
 * The options of a locked method, checked when the class is loaded. What is a function of the call is called and checked with each call.
 */
export class MethodOptions {
  /** Those that are no functions. */
  readonly fixed: WithLockOptions;
  readonly onBusy: DistributedLockOptions['onBusy'];
  readonly #functions: readonly (readonly [string, Function])[];

  constructor(options: DistributedLockOptions, site: string) {
    const { key, name, ttl, wait, signal, maxHold, minHold, renew, onUnavailable, reentry, onBusy } = options;
    this.#functions = Object.entries({ ttl, wait, signal }).filter(
      (entry): entry is [string, (...args: unknown[]) => never] => typeof entry[1] === 'function',
    );
    this.onBusy = onBusy;
    this.fixed = {
      by: site,
      name: name ?? (typeof key === 'string' ? key : site),
      ttl: typeof ttl === 'function' ? undefined : ttl,
      wait: typeof wait === 'function' ? undefined : wait,
      signal: typeof signal === 'function' ? undefined : signal,
      maxHold,
      minHold,
      renew,
      onUnavailable,
      reentry,
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
