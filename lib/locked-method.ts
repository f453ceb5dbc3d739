import { Observable, type Subscription } from 'rxjs';
import { LockConfigurationError } from './core/errors.js';
import type { Lock } from './core/lock.js';
import { lockServiceOf, serviceOfStore } from './locked-instance.js';
import { LockService, type WithLockOptions } from './lock.service.js';
import { isAsyncIterable, isObservable, isPromise, type ReturnKind } from './return-kind.js';

/** A method and how to lock it, all checked when the class was loaded. */
export interface LockedMethod {
  /** `Class.method`, for messages. */
  readonly place: string;
  readonly store: string;
  readonly returns: ReturnKind;
  readonly body: (this: unknown, ...args: unknown[]) => unknown;
  readonly keyOf: (args: readonly unknown[]) => string | readonly string[];
  readonly optionsOf: (args: readonly unknown[]) => WithLockOptions;
}

/** The method that takes the place of the decorated one. */
export function lockMethod(method: LockedMethod): (this: unknown, ...args: unknown[]) => unknown {
  switch (method.returns) {
    case 'promise':
      return async function (this: unknown, ...args: unknown[]) {
        return runLocked(method, this, args, () => method.body.apply(this, args));
      };
    case 'observable':
      return function (this: unknown, ...args: unknown[]) {
        return lockedObservable(method, this, args);
      };
    case 'generator':
      return function (this: unknown, ...args: unknown[]) {
        return lockedGenerator(method, this, args);
      };
  }
}

async function runLocked(method: LockedMethod, self: unknown, args: unknown[], run: (lock: Lock) => unknown): Promise<unknown> {
  const service = serviceFor(method, self);
  const key = method.keyOf(args);
  const body = method.returns === 'promise' ? (lock: Lock) => promised(run(lock), method) : run;
  if (LockService.isGenuine(service)) {
    return service.withLock(key, method.optionsOf(args), body);
  }
  // Somebody replaced the service. Its contract is to run the body or to throw; a mock that does neither would swallow it.
  let ran = false;
  const result = await service.withLock(key, method.optionsOf(args), (lock) => {
    ran = true;
    return body(lock);
  });
  if (!ran) {
    throw new LockConfigurationError(
      `${method.place}: the LockService that was injected did not run the method; it seems to be a mock. ` +
        'Import LockModule.forTesting() in the test, or let withLock() of the replacement call its last argument.',
    );
  }
  return result;
}

/** Each subscription is a call of its own: acquired on subscribe, released when it completes, fails or is unsubscribed. */
function lockedObservable(method: LockedMethod, self: unknown, args: unknown[]): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    const { signal } = method.optionsOf(args);
    let subscription: Subscription | undefined;
    const whileSubscribed: LockedMethod = {
      ...method,
      optionsOf: () => ({
        ...method.optionsOf(args),
        signal: signal ? AbortSignal.any([signal, unsubscribed.signal]) : unsubscribed.signal,
      }),
    };
    runLocked(whileSubscribed, self, args, (lock) => {
      const source = method.body.apply(self, args);
      if (!isObservable(source)) {
        throw wrongReturn(source, method);
      }
      return new Promise<void>((resolve, reject) => {
        lock.signal.addEventListener('abort', () => {
          reject(lock.signal.reason as Error);
          subscription?.unsubscribe();
        });
        subscription = (source as Observable<unknown>).subscribe({
          next: (value) => subscriber.next(value),
          error: reject,
          complete: resolve,
        });
        subscription.add(resolve);
        if (unsubscribed.signal.aborted) {
          subscription.unsubscribe();
        }
      });
    }).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
    return () => {
      unsubscribed.abort();
      subscription?.unsubscribe();
    };
  });
}

/** Held from the first `next` to the end, `return` or `throw`. The body runs inside the lock, each time it goes on. */
async function* lockedGenerator(method: LockedMethod, self: unknown, args: unknown[]): AsyncGenerator {
  let leave!: () => void;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  let call!: Promise<unknown>;
  const lock = await new Promise<Lock | undefined>((resolve, reject) => {
    call = runLocked(method, self, args, (entered) => {
      resolve(entered);
      return left;
    });
    call.then(() => resolve(undefined), reject);
  });
  if (!lock) {
    return undefined;
  }
  try {
    const inner = lock.run(() => method.body.apply(self, args)) as AsyncGenerator;
    if (!isAsyncIterable(inner)) {
      throw wrongReturn(inner, method);
    }
    return yield* {
      [Symbol.asyncIterator]: () => ({
        next: (value: unknown) => lock.run(() => inner.next(value)),
        return: (value: unknown) => (lock.isHeld() ? lock.run(() => inner.return(value)) : inner.return(value)),
        throw: (error: unknown) => lock.run(() => inner.throw(error)),
      }),
    };
  } finally {
    leave();
    await call;
  }
}

function serviceFor(method: LockedMethod, self: unknown): LockService {
  const service = lockServiceOf(self);
  if (!service) {
    throw new LockConfigurationError(
      `${method.place} is locked, but this instance was not made by Nest, so it has no LockService. ` +
        'Make sure that the class is a provider and the method is called on it, or call lockService.attach(instance).',
    );
  }
  return serviceOfStore(service, method);
}

function promised(result: unknown, method: LockedMethod): unknown {
  if (!isPromise(result)) {
    throw wrongReturn(result, method);
  }
  return result;
}

function wrongReturn(result: unknown, method: LockedMethod): LockConfigurationError {
  const [what, cure] = isObservable(result)
    ? ['an Observable', "Declare the return type Observable<…>, or set returns: 'observable'."]
    : isAsyncIterable(result)
      ? ['an async iterator', "Make it an async generator, or set returns: 'generator'."]
      : isPromise(result)
        ? ['a promise', "Make it async, or set returns: 'promise'."]
        : ['a value that is neither a promise nor an Observable', 'Make the method async: a lock cannot be held for a synchronous one.'];
  return new LockConfigurationError(
    `${method.place} is locked and was taken for one that returns a ${method.returns}, but it returned ${what}. ${cure}`,
  );
}
