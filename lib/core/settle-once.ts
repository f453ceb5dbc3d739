/** A lazy thenable, such as a query builder, runs each time its `then` is called: once, and inside the lock. */
export function settleOnce<T>(result: T | PromiseLike<T>): T | Promise<T> {
  if (result instanceof Promise || !isThenable(result)) {
    return result as T | Promise<T>;
  }
  return new Promise((resolve, reject) => {
    result.then(resolve, reject);
  });
}

/** A plain result may have a property of that name. */
function isThenable<T>(result: T | PromiseLike<T>): result is PromiseLike<T> {
  return typeof result === 'object' && result !== null && 'then' in result && typeof result.then === 'function';
}
