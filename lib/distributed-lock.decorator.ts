import type { Observable } from 'rxjs';
import { LEAST_TTL_MS, parseCall, type LockOptions } from './core/call.js';
import { parseDuration } from './core/duration.js';
import { LockConfigurationError, type LockNotAcquiredError } from './core/errors.js';
import { compileKeyTemplate } from './core/key-template.js';
import { shown } from './core/shown.js';
import { parameterNames } from './core/parameter-names.js';
import { lockKeyNames } from './lock-key.decorator.js';
import type { WithLockOptions } from './lock.service.js';
import { requestLockService } from './locked-instance.js';
import { lockedGenerator } from './locked-generator.js';
import { lockedPromise, type LockedCall, type LockedMethod } from './locked-method.js';
import { lockedObservable } from './locked-observable.js';
import { isUndeclared, RETURN_KINDS, returnKindOf, type ReturnKind } from './return-kind.js';

/** A method that can be locked: it returns a promise, an Observable or an async generator. */
export type LockableMethod = (...args: never[]) => PromiseLike<unknown> | Observable<unknown> | AsyncGenerator;

/** The options of `@DistributedLock`. Durations are milliseconds, or strings such as `'30s'`. */
export interface DistributedLockOptions<Args extends unknown[] = unknown[]> extends Omit<LockOptions, 'ticket' | 'by'> {
  /**
   * What to lock: a template such as `'balance:<customerId>'`, `'<dto.accountId>'` or `'<0>'`, or a function of the
   * arguments that returns a key or a list of keys.
   */
  key: string | ((...args: Args) => string | readonly string[]);
  /**
   * `'throw'`; `'skip'`: resolve `undefined` or complete empty, with `wait: 0` unless set; or a function of the error and
   * the arguments, whose result is taken (an Observable emits it or subscribes to it, a generator returns it). Not for a
   * call that was aborted, or that closes a cycle. Default: `'throw'`.
   */
  onBusy?: 'throw' | 'skip' | ((error: LockNotAcquiredError, ...args: Args) => unknown) | undefined;
  /** The name of the store, where the application has several. Default: `'default'`. */
  store?: string | undefined;
  /** What the method returns, where its code and declared type do not say. Default: by its code, else by its declared type, else `'promise'`. */
  returns?: ReturnKind | undefined;
}

/** Refuses a key function whose parameters do not fit, and a skipped call whose result cannot be `undefined`. */
type Fits<Args extends unknown[], Skips, Method extends LockableMethod> = ((...args: Args) => unknown) extends (
  ...args: Parameters<Method>
) => unknown
  ? Skips extends true
    ? ReturnType<Method> extends PromiseLike<infer Result>
      ? undefined extends Result
        ? unknown
        : { readonly onBusy: "a method with onBusy: 'skip' has to allow undefined as its result" }
      : unknown
    : unknown
  : { readonly key: 'the parameters of the key function are not those of the method' };

type LockDecorator<Args extends unknown[], Skips> = <Method extends LockableMethod>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<Method> & Fits<Args, Skips, Method>,
) => void;

/**
 * Runs a method alone, across all processes, among all calls with the same key; calls made from inside re-enter.
 *
 * The method rejects with `LockNotAcquiredError` (busy for the whole `wait`), `LockLostError` (the lease ended before it
 * did), `LockKeyError` (a placeholder has no value) or `LockStoreError` (the store did not answer); its own result and
 * errors pass unchanged. Throws `LockConfigurationError` while the class is loaded where the options are wrong.
 *
 * Place it above decorators that open a transaction, so that the lock outlives the commit.
 */
export function DistributedLock<Args extends unknown[] = unknown[]>(
  options: DistributedLockOptions<Args> & { onBusy: 'skip' },
): LockDecorator<Args, true>;
export function DistributedLock<Args extends unknown[] = unknown[]>(
  options: string | DistributedLockOptions<Args>,
): LockDecorator<Args, false>;
export function DistributedLock<Args extends unknown[]>(options: string | DistributedLockOptions<Args>): LockDecorator<Args, false> {
  return (target, name, descriptor) => {
    const body: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
    const place = `${typeof target === 'function' ? target.name : target?.constructor?.name}.${String(name)}`;
    if (typeof target === 'function' || typeof body !== 'function') {
      throw new LockConfigurationError(
        `${place}: @DistributedLock() works on instance methods, with "experimentalDecorators" in tsconfig.json. ` +
          'Move it to a method of a provider or controller; for other code use LockService.withLock().',
      );
    }
    const method = describeMethod(
      typeof options === 'string' ? { key: options } : { ...options },
      body as LockedMethod['body'],
      target,
      name,
      place,
    );
    const run = RUN[method.returns];
    const wrapper = function (this: unknown, ...args: unknown[]): unknown {
      return run({ method, self: this, args });
    };
    imitate(wrapper, body);
    requestLockService(target, method);
    (descriptor as PropertyDescriptor).value = wrapper;
  };
}

/** How a call of each kind of method is run. */
const RUN: Readonly<Record<ReturnKind, (call: LockedCall) => unknown>> = {
  promise: lockedPromise,
  observable: lockedObservable,
  generator: lockedGenerator,
};

function describeMethod<Args extends unknown[]>(
  options: DistributedLockOptions<Args>,
  body: LockedMethod['body'],
  target: object,
  name: string | symbol,
  place: string,
): LockedMethod {
  if (options.returns !== undefined && !RETURN_KINDS.includes(options.returns)) {
    throw new LockConfigurationError(`${place}: returns is ${shown(options.returns)}. Use one of '${RETURN_KINDS.join("', '")}'.`);
  }
  const declared: unknown = Reflect.getMetadata('design:returntype', target, name);
  return {
    place,
    body,
    store: options.store ?? 'default',
    returns: options.returns ?? returnKindOf(body, declared),
    undeclared: options.returns === undefined && isUndeclared(body, declared),
    keyOf: keyFunction(options.key, body, target, name, place),
    optionsOf: optionsFunction(options, place),
  };
}

function keyFunction(key: unknown, body: Function, target: object, name: string | symbol, place: string): LockedMethod['keyOf'] {
  if (typeof key === 'string') {
    return compileKeyTemplate(key, { given: lockKeyNames(target, name), source: parameterNames(body) }, place);
  }
  if (typeof key === 'function') {
    return (args) => (key as (...args: readonly unknown[]) => string | readonly string[])(...args);
  }
  throw new LockConfigurationError(
    `${place}: @DistributedLock() has no key. Pass a template such as 'balance:<customerId>', or a function of the arguments.`,
  );
}

/** Checks the options once, when the class is loaded; a call then finds numbers. */
function optionsFunction<Args extends unknown[]>(options: DistributedLockOptions<Args>, place: string): LockedMethod['optionsOf'] {
  const { ttl, wait, maxHold, minHold, signal, renew, reentry, onBusy } = options;
  // The durations are checked below, with the defaults of the module out of the way.
  parseCall({ signal, renew, reentry }, { ttlMs: 0, waitMs: 0 }, place);
  const checked: WithLockOptions = {
    by: place,
    signal,
    renew,
    reentry,
    ttl: ttl === undefined ? undefined : parseDuration(ttl, 'ttl', LEAST_TTL_MS, place),
    wait: wait === undefined ? undefined : parseDuration(wait, 'wait', 0, place),
    maxHold: maxHold === undefined ? undefined : parseDuration(maxHold, 'maxHold', 1, place),
    minHold: minHold === undefined ? undefined : parseDuration(minHold, 'minHold', 0, place),
  };
  if (typeof onBusy === 'function') {
    const answer = onBusy as (error: LockNotAcquiredError, ...args: readonly unknown[]) => unknown;
    return (args) => ({ ...checked, onBusy: (error) => answer(error, ...args) });
  }
  if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip') {
    throw new LockConfigurationError(`${place}: onBusy is ${JSON.stringify(onBusy)}. Use 'throw', 'skip' or a function.`);
  }
  checked.onBusy = onBusy;
  return () => checked;
}

/** Gives the wrapper the name, length and metadata of the method, so that decorators work in any order. */
function imitate(wrapper: Function, method: Function): void {
  Object.defineProperty(wrapper, 'name', { value: method.name, configurable: true });
  Object.defineProperty(wrapper, 'length', { value: method.length, configurable: true });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
  }
}
