import { parseCall } from '../../core/words/call-options.js';
import type { DistributedLockOptions } from './distributed-lock.options.js';
import type { DistributedSemaphoreOptions } from './distributed-semaphore.decorator.js';
import type { CallOf } from '../lock.service.js';
import { askedOf, checkAnswers, throwsAll, type Answers } from '../refused-call.js';

/** The defaults while a class is loaded, when no application is known yet. */
const NO_DEFAULTS = { ttlMs: 0, waitMs: 0, maxHoldMs: Infinity };

/** The options that may be functions of the call, beside `key` and the answers. */
const MAY_BE_FUNCTIONS: ReadonlySet<string> = new Set(['ttl', 'wait', 'signal', 'permits']);

/** The options of a method of either decorator. */
export type MethodOptionsGiven = DistributedLockOptions | DistributedSemaphoreOptions;

/**
 * The options of a locked method, checked when the class is loaded. An option that is a function of the call is called
 * and checked with each call.
 */
export class MethodOptions {
  /** The options that are no functions. */
  readonly fixed: CallOf;
  /** Undefined where every error is thrown. */
  readonly answers: Pick<DistributedSemaphoreOptions, 'onBusy' | 'onUnavailable'> | undefined;
  readonly #functions: readonly (readonly [string, Function])[];

  constructor(given: MethodOptionsGiven, site: string) {
    const { key, onBusy, onUnavailable, store: _store, returns: _returns, ...options } = given;
    const entries = Object.entries(options);
    this.#functions = entries.filter(isFunction) as [string, Function][];
    const answers = { onBusy, onUnavailable };
    checkAnswers(answers, site, 'permits' in given);
    this.answers = throwsAll(answers) ? undefined : answers;
    this.fixed = {
      ...Object.fromEntries(entries.filter((entry) => !isFunction(entry))),
      by: site,
      name: options.name ?? (typeof key === 'string' ? key : site),
      onBusy: typeof onBusy === 'function' ? undefined : onBusy,
      onUnavailable: typeof onUnavailable === 'function' ? 'throw' : onUnavailable,
    };
    parseCall(askedOf(this.fixed), NO_DEFAULTS, site);
  }

  /** Whether all calls have the same options. */
  get isFixed(): boolean {
    return this.#functions.length === 0;
  }

  /** The options of a call. */
  of(self: unknown, args: readonly unknown[]): CallOf {
    const called: CallOf = Object.fromEntries(
      this.#functions.map(([name, option]) => [name, Reflect.apply(option, self, args) as unknown]),
    );
    return { ...this.fixed, ...called, ...(this.answers && this.answersOf(self, args)) };
  }

  /** The answers of a call to its refusals. */
  answersOf(self: unknown, args: readonly unknown[]): Answers<unknown> {
    const { onBusy, onUnavailable } = this.answers ?? {};
    return {
      onBusy: typeof onBusy === 'function' ? (error) => onBusy.call(self, error, ...args) : onBusy,
      onUnavailable: typeof onUnavailable === 'function' ? (error) => onUnavailable.call(self, error, ...args) : onUnavailable,
    };
  }
}

function isFunction([name, option]: [string, unknown]): boolean {
  return MAY_BE_FUNCTIONS.has(name) && typeof option === 'function';
}
