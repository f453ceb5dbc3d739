/** A lazy thenable, such as a query builder, runs each time its `then` is called: once, and inside the lock. */
export function settleOnce<T>(result: T | PromiseLike<T>): T | Promise<T> {
  if (result instanceof Promise || typeof result !== 'object' || result === null || !('then' in result)) {
    return result as T | Promise<T>;
  }
  return new Promise((resolve, reject) => {
    result.then(resolve, reject);
  });
}
