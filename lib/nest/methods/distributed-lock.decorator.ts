import { LOCK_OPTIONS } from '../../core/words/call-options.js';
import { checkOptions, type OptionNames, wrongOption } from '../../core/words/check-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import { checkKeys } from '../../core/words/lock-key.js';
import { compileKeyTemplate } from '../keys/key-template.js';
import { ParameterNames } from '../keys/parameter-names.js';
import { isClass, shown } from '../../core/words/shown.js';
import { decoratedMethod, imitate, oneArgument } from './decorated-method.js';
import type { DistributedLockOptions, Given, LockDecorator, Uninferred } from './distributed-lock.options.js';
import { lockKeyNames } from './lock-key.decorator.js';
import { requestLockService } from './locked-instance.js';
import { lockedGenerator } from './locked-generator.js';
import { LockedMethod, lockedPromise, type MethodParts } from './locked-method.js';
import { MethodOptions } from './method-options.js';
import { lockedObservable } from './locked-observable.js';
import { TransactionWarning } from './transaction-warning.js';
import { isUndeclared, RETURN_KINDS, returnKindOf, type ReturnKind } from './return-kind.js';

/**
 * Runs a method alone, across all processes, among all calls with the same key; calls made from inside re-enter.
 *
 * The method rejects with `LockNotAcquiredError` (busy for the whole `wait`), `LockLostError` (the lease ended before
 * it did), `LockKeyError` (a placeholder has no value) or `LockStoreError` (the store did not answer); its own result
 * and errors pass unchanged. Throws `LockConfigurationError` while the class is loaded where the options are wrong.
 *
 * Place it above decorators that open a transaction, so that the lock outlives the commit.
 */
export function DistributedLock<
  Args extends unknown[] = unknown[],
  Self = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
  Away = unknown,
>(
  options: DistributedLockOptions<Args, Self, unknown, TimeArgs, SignalArgs, Away> & { onBusy: 'skip' },
): LockDecorator<Self, { args: Args; timeArgs: TimeArgs; signalArgs: SignalArgs; answer: unknown; away: Uninferred<Away>; skips: true }>;
export function DistributedLock<
  Args extends unknown[] = unknown[],
  Self = unknown,
  Answer = unknown,
  TimeArgs extends unknown[] = unknown[],
  SignalArgs extends unknown[] = unknown[],
  Away = unknown,
>(
  options: DistributedLockOptions<Args, Self>['key'] | DistributedLockOptions<Args, Self, Answer, TimeArgs, SignalArgs, Away>,
): LockDecorator<
  Self,
  { args: Args; timeArgs: TimeArgs; signalArgs: SignalArgs; answer: Uninferred<Answer>; away: Uninferred<Away>; skips: false }
>;
export function DistributedLock(
  given: DistributedLockOptions['key'] | DistributedLockOptions,
  ...more: unknown[]
): LockDecorator<unknown, Given> {
  oneArgument('@DistributedLock()', more, "@DistributedLock({ key: 'balance:<customerId>', ttl: '30s' })");
  return (target, name, descriptor) => {
    const { site, body } = decoratedMethod('@DistributedLock()', target, name, descriptor, 'LockService.withLock()');
    const parts = partsOf(optionsOf(given, site), body, target as object, name, site);
    const wrapper = new LockedMethod(parts).wrapper(RUN[parts.returns]);
    imitate(wrapper, body);
    Object.defineProperty(wrapper, LOCKED, { value: parts });
    requestLockService(target as object, parts);
    (descriptor as PropertyDescriptor).value = wrapper;
  };
}

// A method enters by the tickets that it was called with, and is called `Class.method`.
const { ticket: _ticket, by: _by, ...OF_CALLS } = LOCK_OPTIONS;
const OPTIONS: OptionNames<DistributedLockOptions> = { key: true, ...OF_CALLS, onBusy: true, store: true, returns: true };

/** The options, of which the key may stand alone. */
function optionsOf(given: unknown, site: string): DistributedLockOptions {
  if (typeof given === 'string' || (typeof given === 'function' && !isClass(given))) {
    return { key: given as DistributedLockOptions['key'] };
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw noKey(site, `what was passed is ${shown(given)}`);
  }
  const options = { ...given } as DistributedLockOptions;
  checkOptions(`${site}: @DistributedLock()`, options, OPTIONS);
  return options;
}

function noKey(site: string, what: string): LockConfigurationError {
  return new LockConfigurationError(
    `${site}: @DistributedLock() has no key: ${what}. Pass a template such as 'balance:<customerId>', or a function of the arguments, ` +
      'which returns a key or a list of keys.',
  );
}

/** How a call of each kind of method is run. */
const RUN: Readonly<Record<ReturnKind, Parameters<LockedMethod['wrapper']>[0]>> = {
  promise: lockedPromise,
  observable: lockedObservable,
  generator: lockedGenerator,
};

/** The parts that one of our wrappers was made for: another decorator above it sees the method through the wrapper. */
const LOCKED = Symbol('locked method');

type WrappedMethod = MethodParts['body'] & { readonly [LOCKED]?: MethodParts };

function partsOf(options: DistributedLockOptions, body: WrappedMethod, target: object, name: string | symbol, site: string): MethodParts {
  if (options.returns !== undefined && !RETURN_KINDS.includes(options.returns)) {
    throw wrongOption(`${site}: returns`, options.returns, `Use one of '${RETURN_KINDS.join("', '")}'.`);
  }
  const { [LOCKED]: below } = body;
  const declared: unknown = Reflect.getMetadata('design:returntype', target, name);
  return {
    site,
    body,
    source: below?.source ?? body,
    store: options.store ?? 'default',
    returns: options.returns ?? below?.returns ?? returnKindOf(body, declared),
    undeclared: options.returns === undefined && (below ? below.undeclared : isUndeclared(body, declared)),
    keysOf: keysFunction(options.key, below?.source ?? body, target, name, site),
    options: new MethodOptions(options, site),
    warning: new TransactionWarning(site),
  };
}

function keysFunction(key: unknown, source: Function, target: object, name: string | symbol, site: string): MethodParts['keysOf'] {
  if (typeof key === 'string') {
    const declared = Reflect.getOwnMetadata('design:paramtypes', target, name) as readonly unknown[] | undefined;
    let names: ParameterNames | undefined;
    const parameters = {
      given: lockKeyNames(target, name),
      get source(): ParameterNames {
        return (names ??= new ParameterNames(source, target.constructor, declared?.length));
      },
    };
    return compileKeyTemplate(key, parameters, site);
  }
  if (typeof key === 'function' && !isClass(key)) {
    return (args, self) => checkKeys(Reflect.apply(key, self, args) as string | readonly string[], site);
  }
  throw noKey(site, `the option key is ${shown(key)}`);
}
