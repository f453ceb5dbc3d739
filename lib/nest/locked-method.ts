import { LockConfigurationError } from '../core/words/errors.js';
import type { Lock } from '../core/words/lock.js';
import { lockServiceOf, serviceOfStore, type StoreServices } from './locked-instance.js';
import { LockService, type WithLockOptions } from './lock.service.js';
import type { MethodOptions } from './method-options.js';
import type { TransactionWarning } from './transaction-warning.js';
import { isPromise, refuseSubscribers, wrongReturn, type ReturnKind } from './return-kind.js';

/** A method and how to lock it, all checked when the class was loaded. */
export interface LockedMethod {
  /** `Class.method`, for messages. */
  readonly site: string;
  readonly store: string;
  readonly returns: ReturnKind;
  /** Whether `returns` is a guess. */
  readonly undeclared: boolean;
  readonly body: (this: unknown, ...args: unknown[]) => unknown;
  /** The method itself, where `body` is that of a `@DistributedLock` below this one. */
  readonly source: Function;
  /** The keys of a call, checked and sorted, each once. */
  readonly keysOf: (self: unknown, args: readonly unknown[]) => readonly string[];
  readonly options: MethodOptions;
  readonly transactionWarning: TransactionWarning;
}

/** One call of a locked method. */
export interface LockedCall {
  readonly method: LockedMethod;
  readonly self: unknown;
  readonly args: unknown[];
}

/** A method that returns a promise: held until it settles. */
export function lockedPromise(call: LockedCall): Promise<unknown> {
  const { method, self, args } = call;
  const settled = runLocked(call, undefined, () => {
    const result = method.body.apply(self, args);
    if (!isPromise(result)) {
      throw wrongReturn(result, method);
    }
    return result;
  });
  return method.undeclared ? refuseSubscribers(settled, method.site) : settled;
}

/** Runs `body` inside the lock of a call; `unsubscribed` ends the wait as the call's own signal does. */
export function runLocked(call: LockedCall, unsubscribed: AbortSignal | undefined, body: (lock: Lock) => unknown): Promise<unknown> {
  try {
    return run(call, unsubscribed, body);
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

function run({ method, self, args }: LockedCall, unsubscribed: AbortSignal | undefined, body: (lock: Lock) => unknown): Promise<unknown> {
  const service = serviceFor(method, self);
  const keys = method.keysOf(self, args);
  if (!LockService.isGenuine(service)) {
    const options = method.options.of(self, args);
    return runReplaced(
      service as Partial<LockService>,
      method,
      keys.length === 1 ? (keys[0] as string) : keys,
      withSignal(options, unsubscribed),
      body,
    );
  }
  if (method.transactionWarning.isDue) {
    method.transactionWarning.look(service, keys, args);
  }
  const call = withSignal(method.options.callOf(service, self, args), unsubscribed);
  return service.runCall(keys, call, method.options.onBusyOf(self, args), body);
}

function withSignal<Options extends { readonly signal?: AbortSignal | undefined }>(
  options: Options,
  unsubscribed: AbortSignal | undefined,
): Options {
  if (!unsubscribed) {
    return options;
  }
  return { ...options, signal: options.signal ? AbortSignal.any([options.signal, unsubscribed]) : unsubscribed };
}

/**
 * Somebody replaced the service. Its contract is to run the body or to throw; a mock that does neither would swallow
 * it.
 */
async function runReplaced(
  service: Partial<LockService>,
  { site, returns }: LockedMethod,
  key: string | readonly string[],
  options: WithLockOptions,
  body: (lock: Lock) => unknown,
): Promise<unknown> {
  if (typeof service.withLock !== 'function') {
    throw new LockConfigurationError(
      `${site}: the LockService that was injected has no withLock(). Replace it with an object that has one.`,
    );
  }
  let ran = false;
  const { onBusy = 'throw' } = options;
  const watched: WithLockOptions = {
    ...options,
    wait: onBusy === 'skip' ? (options.wait ?? 0) : options.wait,
    onBusy:
      onBusy === 'throw'
        ? onBusy
        : (error) => {
            ran = true;
            return onBusy === 'skip' ? undefined : onBusy(error);
          },
  };
  const result: unknown = await service.withLock(key, watched, (lock: Lock | undefined) => {
    ran = true;
    if (!lock && returns !== 'promise') {
      throw new LockConfigurationError(
        `${site}: the LockService that was injected gave its body no lock. Let withLock() call it with one.`,
      );
    }
    return body(lock as Lock);
  });
  if (!ran) {
    throw new LockConfigurationError(
      `${site}: the LockService that was injected did not run the method; it seems to be a mock. ` +
        'Import LockModule.forTesting() in the test, or let withLock() of the replacement call its last argument.',
    );
  }
  return result;
}

function serviceFor(method: LockedMethod, self: unknown): StoreServices {
  const service = lockServiceOf(self);
  if (!service) {
    throw new LockConfigurationError(
      `${method.site} is locked, but this instance was not made by Nest, so it has no LockService. ` +
        'Make sure that the class itself is a provider (useFactory and useValue do not count) and the method is called on its instance, ' +
        'or call lockService.attach(instance).',
    );
  }
  return serviceOfStore(service, method);
}
