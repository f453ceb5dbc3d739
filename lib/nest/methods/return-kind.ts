import { hasMethod } from '../../core/words/check-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';

/** The kind of value that a locked method returns; it decides how long the lock is held. */
export type ReturnKind = (typeof RETURN_KINDS)[number];

export const RETURN_KINDS = ['promise', 'observable', 'generator'] as const;

type Tag = '[object AsyncFunction]' | '[object AsyncGeneratorFunction]' | '[object AsyncGenerator]' | '[object Function]';

/**
 * Async functions and generators speak for themselves; others by their declared type, and are taken for promises
 * otherwise.
 */
export function returnKindOf(method: Function, declared: unknown): ReturnKind {
  switch (tagOf(method)) {
    case '[object AsyncFunction]':
      return 'promise';
    case '[object AsyncGeneratorFunction]':
      return 'generator';
    default:
      return typeof declared === 'function' && isObservable(declared.prototype) ? 'observable' : 'promise';
  }
}

/**
 * Whether neither the code nor the declared type says what a method returns. For an inferred type, compilers write no
 * type, or Object.
 */
export function isUndeclared(method: Function, declared: unknown): boolean {
  return tagOf(method) === '[object Function]' && (declared === undefined || declared === Object);
}

/**
 * Decides by the methods of the value, not by its class: an application may have two copies of rxjs. The promise of an
 * undeclared method has these methods too (`refuseSubscribers`).
 */
export function isObservable(value: unknown): boolean {
  return hasMethod(value, 'subscribe') && hasMethod(value, 'pipe') && !isPromise(value);
}

export function isPromise(value: unknown): boolean {
  return hasMethod(value, 'then');
}

export function isAsyncIterable(value: unknown): boolean {
  return hasMethod(value, Symbol.asyncIterator);
}

function tagOf(value: unknown): Tag {
  return Object.prototype.toString.call(value) as Tag;
}

const DECLARE_OBSERVABLE = "Declare the return type Observable<…>, or set returns: 'observable'.";

/** The error of a body whose result is of another kind than expected: it says which kind to declare. */
export function wrongReturn(
  result: unknown,
  { site, returns }: { readonly site: string; readonly returns: ReturnKind },
): LockConfigurationError {
  const [what, cure] = isObservable(result)
    ? ['an Observable', DECLARE_OBSERVABLE]
    : isAsyncIterable(result)
      ? ['an async iterator', "Make it an async generator, or set returns: 'generator'."]
      : isPromise(result)
        ? ['a promise', "Make it async, or set returns: 'promise'."]
        : ['a value that is neither a promise nor an Observable', 'Make the method async: a lock cannot be held for a synchronous one.'];
  return new LockConfigurationError(`${site} is locked and was taken for one that returns a ${returns}, but it returned ${what}. ${cure}`);
}

/**
 * Says why the work of a method whose promise gives such a value is not locked: it begins when somebody subscribes or
 * iterates. Undefined for other values, streams among them, which may be at work already.
 */
export function lateWork(value: unknown, site: string): string | undefined {
  const [what, cure] = isObservable(value)
    ? ['an Observable', `Return the Observable itself, or await it inside. ${DECLARE_OBSERVABLE}`]
    : tagOf(value) === '[object AsyncGenerator]'
      ? ['an async generator', 'Make the method itself an async generator, or read the values inside.']
      : [];
  return (
    what &&
    `${site} is locked until its promise settles, which gave ${what}: its work is not locked. ${cure} This is said once for each method.`
  );
}

/**
 * A caller who takes the promise of an undeclared method for an Observable gets an error where it subscribes. The
 * promise then has no reader, and its rejection must not end the process.
 */
export function refuseSubscribers<T>(promise: Promise<T>, site: string): Promise<T> {
  const refuse = (): never => {
    promise.catch(() => undefined);
    throw new LockConfigurationError(
      `${site} is locked and was taken for one that returns a promise, but its caller subscribes to what it returned. ${DECLARE_OBSERVABLE}`,
    );
  };
  return Object.defineProperties(promise, { subscribe: { value: refuse }, pipe: { value: refuse } });
}
