import type { Lock } from '../words/lock.js';

/** The body of a locked call. */
export type Body<T> = (lock: Lock) => T | PromiseLike<T>;

/**
 * The result of a function; a thenable becomes the promise of its one run: a lazy thenable, such as a query builder,
 * runs each time its `then` is called.
 */
export function onceOnly<T>(result: T | PromiseLike<T>): T | Promise<T> {
  if (result instanceof Promise || !isThenable(result)) {
    return result as T | Promise<T>;
  }
  return new Promise((resolve, reject) => {
    result.then(resolve, reject);
  });
}

/** A plain result may have a property of that name. */
export function isThenable<T>(result: T | PromiseLike<T>): result is PromiseLike<T> {
  return typeof result === 'object' && result !== null && 'then' in result && typeof result.then === 'function';
}
