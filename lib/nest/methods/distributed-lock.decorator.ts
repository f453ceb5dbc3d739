import { LOCK_OPTIONS } from '../../core/words/call-options.js';
import { checkOptions, type OptionNames, wrongOption } from '../../core/words/check-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import { checkKeys, checkOneKey } from '../../core/words/lock-key.js';
import { compileKeyTemplate } from '../keys/key-template.js';
import { ParameterNames } from '../keys/parameter-names.js';
import { isClass, shown } from '../../core/words/shown.js';
import { decoratedMethod, imitate, oneArgument } from './decorated-method.js';
import type { DistributedLockOptions, Given, LockDecorator, Uninferred } from './distributed-lock.options.js';
import { lockKeyNames } from './lock-key.decorator.js';
import { requestLockService } from './locked-instance.js';
import { lockedGenerator } from './locked-generator.js';
import { LockedMethod, lockedPromise, type MethodParts } from './locked-method.js';
import { MethodOptions, type MethodOptionsGiven } from './method-options.js';
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
  oneArgument(LOCK.name, more, LOCK.example);
  return lockMethod(LOCK, (site) => optionsOf(given, site));
}

/** A decorator as it is written, for messages. */
export interface DecoratorName {
  readonly name: string;
  readonly example: string;
  /** The method of the service that does the same by hand. */
  readonly byHand: string;
  /** The values that a function for the key may return. */
  readonly keys: string;
}

const LOCK: DecoratorName = {
  name: '@DistributedLock()',
  example: "@DistributedLock({ key: 'balance:<customerId>', ttl: '30s' })",
  byHand: 'LockService.withLock()',
  keys: 'a key or a list of keys',
};

/** Makes the decorator of a method whose calls run inside a lock, or with a permit. */
export function lockMethod(decorator: DecoratorName, optionsAt: (site: string) => MethodOptionsGiven): LockDecorator<unknown, Given> {
  return (target, name, descriptor) => {
    const { site, body } = decoratedMethod(decorator.name, target, name, descriptor, decorator.byHand);
    const options = optionsAt(site);
    checkKeyOption(options.key, site, decorator);
    const parts = partsOf(options, body, target as object, name, site);
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
  return checkGiven(given, OPTIONS, site, LOCK);
}

/** The options of a decorator; throws `LockConfigurationError` where they are none, or have one that is unknown. */
export function checkGiven<Options extends object>(
  given: unknown,
  known: OptionNames<Options>,
  site: string,
  decorator: DecoratorName,
): Options {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw noKey(site, `what was passed is ${shown(given)}`, decorator);
  }
  const options = { ...given } as Options;
  checkOptions(`${site}: ${decorator.name}`, options, known);
  return options;
}

/** Throws `LockConfigurationError` for a key that is neither a template nor a function. */
function checkKeyOption(key: unknown, site: string, decorator: DecoratorName): void {
  if (typeof key !== 'string' && (typeof key !== 'function' || isClass(key))) {
    throw noKey(site, `the option key is ${shown(key)}`, decorator);
  }
}

function noKey(site: string, what: string, { name, keys, example }: DecoratorName): LockConfigurationError {
  return new LockConfigurationError(
    `${site}: ${name} has no key: ${what}. Pass a template such as 'balance:<customerId>', or a function of the arguments, ` +
      `which returns ${keys}: ${example}.`,
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

function partsOf(options: MethodOptionsGiven, body: WrappedMethod, target: object, name: string | symbol, site: string): MethodParts {
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
    keysOf: keysFunction(options, below?.source ?? body, target, name, site),
    options: new MethodOptions(options, site),
    warning: new TransactionWarning(site),
  };
}

function keysFunction(
  options: MethodOptionsGiven,
  source: Function,
  target: object,
  name: string | symbol,
  site: string,
): MethodParts['keysOf'] {
  const { key } = options;
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
  const keysOf: MethodParts['keysOf'] = (args, self) => checkKeys(Reflect.apply(key, self, args) as string | readonly string[], site);
  return 'permits' in options ? (args, self) => checkOneKey(keysOf(args, self) as readonly string[], site) : keysOf;
}
