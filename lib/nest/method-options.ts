import { parseCall, type Call } from '../core/words/call.js';
import type { DistributedLockOptions } from './distributed-lock.options.js';
import { checkOnBusy, type LockService, type OnBusy, type WithLockOptions } from './lock.service.js';

/** The defaults while a class is loaded, when no application is known yet. */
const NO_DEFAULTS = { ttlMs: 0, waitMs: 0, maxHoldMs: Infinity };

/**
 * The options of a locked method: checked when the class is loaded, and completed once for each application. What is a
 * function of the call is called and checked with each call.
 */
export class MethodOptions {
  readonly #site: string;
  readonly #fixed: WithLockOptions;
  readonly #functions: readonly (readonly [string, Function])[];
  readonly #onBusy: DistributedLockOptions['onBusy'];
  readonly #calls = new WeakMap<LockService, Call>();

  constructor(options: DistributedLockOptions, site: string) {
    const { key, name, ttl, wait, signal, maxHold, minHold, renew, onUnavailable, reentry, onBusy } = options;
    this.#site = site;
    this.#functions = Object.entries({ ttl, wait, signal }).filter(
      (entry): entry is [string, (...args: unknown[]) => never] => typeof entry[1] === 'function',
    );
    this.#onBusy = onBusy;
    this.#fixed = {
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
    parseCall(this.#fixed, NO_DEFAULTS, site);
  }

  /** The options of a call, for a service that takes the place of ours. */
  of(self: unknown, args: readonly unknown[]): WithLockOptions {
    const called = this.#functions.map(([name, option]) => [name, Reflect.apply(option, self, args) as unknown] as const);
    return { ...this.#fixed, ...Object.fromEntries(called), onBusy: this.onBusyOf(self, args) };
  }

  /** The options of a call, checked and complete. */
  callOf(service: LockService, self: unknown, args: readonly unknown[]): Call {
    if (this.#functions.length > 0) {
      return service.parse(this.of(self, args), this.#site);
    }
    let call = this.#calls.get(service);
    if (!call) {
      call = service.parse(this.#fixed, this.#site);
      this.#calls.set(service, call);
    }
    return call;
  }

  onBusyOf(self: unknown, args: readonly unknown[]): OnBusy<unknown> | undefined {
    const onBusy = this.#onBusy;
    return typeof onBusy === 'function' ? (error) => onBusy.call(self, error, ...args) : onBusy;
  }
}
