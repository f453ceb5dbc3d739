import { LEAST_TTL_MS, parseCall } from '../core/call.js';
import { parseDuration } from '../core/duration.js';
import { LockConfigurationError } from '../core/errors.js';
import { compileKeyTemplate } from './key-template.js';
import { ParameterNames } from './parameter-names.js';
import { shown } from '../core/shown.js';
import type { DistributedLockOptions, Given, LockDecorator, Uninferred } from './distributed-lock.options.js';
import { lockKeyNames } from './lock-key.decorator.js';
import type { WithLockOptions } from './lock.service.js';
import { requestLockService } from './locked-instance.js';
import { lockedGenerator } from './locked-generator.js';
import { lockedPromise, type LockedCall, type LockedMethod } from './locked-method.js';
import { lockedObservable } from './locked-observable.js';
import { isUndeclared, RETURN_KINDS, returnKindOf, type ReturnKind } from './return-kind.js';

/**
 * Runs a method alone, across all processes, among all calls with the same key; calls made from inside re-enter.
 *
 * The method rejects with `LockNotAcquiredError` (busy for the whole `wait`), `LockLostError` (the lease ended before it
 * did), `LockKeyError` (a placeholder has no value) or `LockStoreError` (the store did not answer); its own result and
 * errors pass unchanged. Throws `LockConfigurationError` while the class is loaded where the options are wrong.
 *
 * Place it above decorators that open a transaction, so that the lock outlives the commit.
 */
export function DistributedLock<
  Args extends unknown[] = unknown[],
  Self = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
>(
  options: DistributedLockOptions<Args, Self, unknown, TimeArgs, SignalArgs> & { onBusy: 'skip' },
): LockDecorator<Self, { args: Args; timeArgs: TimeArgs; signalArgs: SignalArgs; answer: unknown; skips: true }>;
export function DistributedLock<
  Args extends unknown[] = unknown[],
  Self = unknown,
  Answer = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
>(
  options: string | DistributedLockOptions<Args, Self, Answer, TimeArgs, SignalArgs>,
): LockDecorator<Self, { args: Args; timeArgs: TimeArgs; signalArgs: SignalArgs; answer: Uninferred<Answer>; skips: false }>;
export function DistributedLock(options: string | DistributedLockOptions): LockDecorator<unknown, Given> {
  return (target, name, descriptor) => {
    const body: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
    const place = `${typeof target === 'function' ? (target as Function).name : target?.constructor?.name}.${String(name)}`;
    if (typeof target === 'function') {
      throw new LockConfigurationError(
        `${place}: @DistributedLock() does not work on static methods, which belong to no instance that Nest could give its locks. ` +
          'Make it an instance method of a provider, or use LockService.withLock().',
      );
    }
    if (typeof body !== 'function') {
      throw new LockConfigurationError(
        `${place}: @DistributedLock() works on instance methods, with "experimentalDecorators" in tsconfig.json. ` +
          'Move it to a method of a provider or controller; for other code use LockService.withLock().',
      );
    }
    const method = describeMethod(
      typeof options === 'string' ? { key: options } : { ...options },
      body as WrappedMethod,
      target as object,
      name,
      place,
    );
    const run = RUN[method.returns];
    const wrapper = function (this: unknown, ...args: unknown[]): unknown {
      return run({ method, self: this, args });
    };
    imitate(wrapper, body);
    Object.defineProperty(wrapper, LOCKED, { value: method });
    requestLockService(target as object, method);
    (descriptor as PropertyDescriptor).value = wrapper;
  };
}

/** How a call of each kind of method is run. */
const RUN: Readonly<Record<ReturnKind, (call: LockedCall) => unknown>> = {
  promise: lockedPromise,
  observable: lockedObservable,
  generator: lockedGenerator,
};

/** What a wrapper of ours was made for: another decorator above it sees the method through it. */
const LOCKED = Symbol('locked method');

type WrappedMethod = LockedMethod['body'] & { readonly [LOCKED]?: LockedMethod };

function describeMethod(
  options: DistributedLockOptions,
  body: WrappedMethod,
  target: object,
  name: string | symbol,
  place: string,
): LockedMethod {
  if (options.returns !== undefined && !RETURN_KINDS.includes(options.returns)) {
    throw new LockConfigurationError(`${place}: returns is ${shown(options.returns)}. Use one of '${RETURN_KINDS.join("', '")}'.`);
  }
  const { [LOCKED]: below } = body;
  const declared: unknown = Reflect.getMetadata('design:returntype', target, name);
  return {
    place,
    body,
    source: below?.source ?? body,
    store: options.store ?? 'default',
    returns: options.returns ?? below?.returns ?? returnKindOf(body, declared),
    undeclared: options.returns === undefined && (below ? below.undeclared : isUndeclared(body, declared)),
    keyOf: keyFunction(options.key, below?.source ?? body, target, name, place),
    optionsOf: optionsFunction(options, place),
  };
}

function keyFunction(key: unknown, source: Function, target: object, name: string | symbol, place: string): LockedMethod['keyOf'] {
  if (typeof key === 'string') {
    const declared = Reflect.getOwnMetadata('design:paramtypes', target, name) as readonly unknown[] | undefined;
    const names = new ParameterNames(source, target.constructor, declared?.length);
    const keyOf = compileKeyTemplate(key, { given: lockKeyNames(target, name), source: names }, place);
    return (_self, args) => keyOf(args);
  }
  if (typeof key === 'function') {
    return (self, args) => Reflect.apply(key, self, args) as string | readonly string[];
  }
  throw new LockConfigurationError(
    `${place}: @DistributedLock() has no key. Pass a template such as 'balance:<customerId>', or a function of the arguments.`,
  );
}

/** Checks the options once, when the class is loaded; what is a function is called and checked with each call. */
function optionsFunction(options: DistributedLockOptions, place: string): LockedMethod['optionsOf'] {
  const { ttl, wait, maxHold, minHold, signal, renew, onUnavailable, reentry, onBusy } = options;
  const functions = Object.entries({ ttl, wait, signal }).filter(([, option]) => typeof option === 'function');
  const checked: WithLockOptions = {
    by: place,
    signal: typeof signal === 'function' ? undefined : signal,
    renew,
    onUnavailable,
    reentry,
    ttl: ttl === undefined || typeof ttl === 'function' ? undefined : parseDuration(ttl, 'ttl', LEAST_TTL_MS, place),
    wait: wait === undefined || typeof wait === 'function' ? undefined : parseDuration(wait, 'wait', 0, place),
    maxHold: maxHold === undefined ? undefined : parseDuration(maxHold, 'maxHold', 1, place),
    minHold: minHold === undefined ? undefined : parseDuration(minHold, 'minHold', 0, place),
  };
  parseCall(checked, { ttlMs: 0, waitMs: 0, maxHoldMs: 0 }, place);
  if (typeof onBusy !== 'function') {
    if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip') {
      throw new LockConfigurationError(`${place}: onBusy is ${JSON.stringify(onBusy)}. Use 'throw', 'skip' or a function.`);
    }
    checked.onBusy = onBusy;
    if (functions.length === 0) {
      return () => checked;
    }
  }
  return (self, args) => ({
    ...checked,
    ...Object.fromEntries(functions.map(([name, option]) => [name, Reflect.apply(option as Function, self, args) as unknown])),
    ...(typeof onBusy === 'function' && { onBusy: (error) => onBusy.call(self, error, ...args) }),
  });
}

/** Gives the wrapper the name, length and metadata of the method, so that decorators work in any order. */
function imitate(wrapper: Function, method: Function): void {
  Object.defineProperty(wrapper, 'name', { value: method.name, configurable: true });
  Object.defineProperty(wrapper, 'length', { value: method.length, configurable: true });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
  }
}
