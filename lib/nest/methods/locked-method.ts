import type { CallOptions } from '../../core/words/call-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import type { Lock } from '../../core/words/lock.js';
import { EarlyValues } from './early-values.js';
import { isHot } from './hot-observable.js';
import { LockService } from '../lock.service.js';
import { LOCK_SERVICE, serviceOfStore, type StoreServices } from './locked-instance.js';
import type { MethodOptions } from './method-options.js';
import { runReplaced } from './replaced-service.js';
import { isPromise, lateWork, refuseSubscribers, wrongReturn, type ReturnKind } from './return-kind.js';
import type { TransactionWarning } from './transaction-warning.js';

/** The facts that a decorator finds out about a method while its class is loaded. */
export interface MethodParts {
  /** `Class.method`, for messages. */
  readonly site: string;
  readonly store: string;
  readonly returns: ReturnKind;
  /** Whether `returns` is a guess. */
  readonly undeclared: boolean;
  readonly body: (this: unknown, ...args: unknown[]) => unknown;
  /** The method itself, where `body` is the body of a `@DistributedLock` below this one. */
  readonly source: Function;
  /** The key of a call, or its keys, checked and sorted, each once. */
  readonly keysOf: (args: readonly unknown[], self: unknown) => string | readonly string[];
  readonly options: MethodOptions;
  readonly warning: TransactionWarning;
}

/**
 * A method in one application: the service of its store, and its options, unless one of them is a function of the call.
 */
type InApplication =
  | { readonly isOurs: true; readonly service: LockService; readonly call: CallOptions | undefined }
  | { readonly isOurs: false; readonly service: Partial<LockService> };

/** A locked method, as the code that runs its calls sees it. */
export type RunnableMethod = Pick<LockedMethod, 'parts' | 'run'>;

/** Runs inside the lock of a call. `args` are given where the method is to get others than its caller passed. */
type MethodBody = (lock: Lock, args?: unknown[]) => unknown;

/** How many results of a method are looked at. */
const MOST_RESULTS = 100;

/** A method that is locked. The values that are the same for all its calls are made once for each application. */
export class LockedMethod {
  readonly parts: MethodParts;
  readonly #applications = new WeakMap<StoreServices, InApplication>();
  /** Undefined once enough calls were looked at. */
  #warning: TransactionWarning | undefined;
  #resultsLeft = MOST_RESULTS;

  constructor(parts: MethodParts) {
    this.parts = parts;
    this.#warning = parts.warning;
  }

  /** Makes the function that takes the place of the method. */
  wrapper(run: (method: RunnableMethod, self: unknown, args: unknown[]) => unknown): MethodParts['body'] {
    // oxlint-disable-next-line unicorn/no-this-assignment, typescript/no-this-alias -- `this` is the instance inside
    const method = this;
    return function (this: unknown, ...args: unknown[]): unknown {
      for (const arg of args) {
        if (typeof arg === 'object' && arg !== null && isHot(arg)) {
          return run(withEarlyValues(method), this, args);
        }
      }
      return run(method, this, args);
    };
  }

  /**
   * Runs `body` inside the lock of a call. `unsubscribed` ends the wait as the call's own signal does; its owner aborts
   * it also when the call has ended. Never throws.
   */
  run(self: unknown, args: readonly unknown[], unsubscribed: AbortController | undefined, body: MethodBody): Promise<unknown> {
    try {
      const { keysOf, options } = this.parts;
      const given = (self as { [LOCK_SERVICE]?: StoreServices } | null | undefined)?.[LOCK_SERVICE] as StoreServices;
      const known = this.#applications.get(given) ?? this.#inApplicationOf(given);
      const keys = keysOf(args, self);
      if (!known.isOurs) {
        return runReplaced(known.service, this.parts, keys, withSignal(options.of(self, args), unsubscribed), body);
      }
      const { service } = known;
      const list = typeof keys === 'string' ? [keys] : keys;
      if (this.#warning && !this.#warning.look(service, list, args)) {
        this.#warning = undefined;
      }
      const call = known.call ?? service.parse(options.of(self, args), this.parts.site);
      const answers = options.answers && options.answersOf(self, args);
      const watched = this.#resultsLeft > 0 ? this.#watched(body, service) : body;
      return service.runCall(list, unsubscribed ? withSignal(call, unsubscribed) : call, answers, watched);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** Warns, once for a method, that its promise gives what does its work after the lock. */
  #watched(body: MethodBody, service: LockService): MethodBody {
    const look = (value: unknown): void => {
      const late = this.#resultsLeft-- > 0 ? lateWork(value, this.parts.site) : undefined;
      if (late) {
        this.#resultsLeft = 0;
        service.warn(late);
      }
    };
    return (lock, args) => {
      const result = body(lock, args);
      if (result instanceof Promise) {
        result.then(look, () => undefined);
      }
      return result;
    };
  }

  /**
   * Throws `LockConfigurationError` where the instance has no service, and for options that are wrong. A replacement of
   * our service is asked anew each time.
   */
  #inApplicationOf(given: StoreServices | undefined): InApplication {
    const { site, options } = this.parts;
    if (!given) {
      throw new LockConfigurationError(
        `${site} is locked, but this instance was not made by Nest, or its constructor still runs, so it has no LockService yet. ` +
          'Make sure that the class itself is a provider (useFactory and useValue do not count) and the method is called on its instance, ' +
          'from onModuleInit() on, or call lockService.attach(instance).',
      );
    }
    const service = serviceOfStore(given, this.parts);
    if (!LockService.isGenuine(service)) {
      return { isOurs: false, service: service as Partial<LockService> };
    }
    const known: InApplication = { isOurs: true, service, call: options.isFixed ? service.parse(options.fixed, site) : undefined };
    this.#applications.set(given, known);
    return known;
  }
}

/** The method for a call that has a hot Observable among its arguments: no value of it is lost while the call waits. */
function withEarlyValues(method: LockedMethod): RunnableMethod {
  return {
    parts: method.parts,
    run: (self, args, unsubscribed, body) => {
      const early = new EarlyValues(args);
      return method.run(self, early.args, unsubscribed, (lock) => body(lock, early.args)).finally(() => early.end());
    },
  };
}

/** A method that returns a promise: held until it settles. */
export function lockedPromise(method: RunnableMethod, self: unknown, args: unknown[]): Promise<unknown> {
  const { parts } = method;
  const settled = method.run(self, args, undefined, (_, given = args) => {
    const result = parts.body.apply(self, given);
    if (!(result instanceof Promise) && !isPromise(result)) {
      throw wrongReturn(result, parts);
    }
    return result;
  });
  return parts.undeclared ? refuseSubscribers(settled, parts.site) : settled;
}

function withSignal<Options extends { readonly signal?: AbortSignal | undefined }>(
  options: Options,
  unsubscribed: AbortController | undefined,
): Options {
  if (!unsubscribed) {
    return options;
  }
  const { signal } = options;
  const abort = (): void => unsubscribed.abort(signal?.reason);
  if (signal?.aborted) {
    abort();
  }
  // AbortSignal.any would leave something of each call in a signal that lives on:
  // https://github.com/nodejs/node/issues/55351
  signal?.addEventListener('abort', abort, { signal: unsubscribed.signal });
  return { ...options, signal: unsubscribed.signal };
}
