import { AsyncResource } from 'node:async_hooks';
import type { Lock } from '../../core/words/lock.js';
import type { RunnableMethod } from './locked-method.js';
import { isAsyncIterable, wrongReturn } from './return-kind.js';

/**
 * A method that is an async generator: held from the first `next` to the end, `return` or `throw`. Its body runs inside
 * the lock each time it goes on; once the lease is lost it is ended with a `LockLostError`. An answer in its place is
 * the value it returns.
 */
export async function* lockedGenerator(method: RunnableMethod, self: unknown, args: unknown[]): AsyncGenerator {
  const { parts } = method;
  let leave!: () => void;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const [lock, held, given] = await enter(method, self, args, left);
  if (!lock) {
    return await held;
  }
  let failed = false;
  try {
    const [inner, inContext] = lock.run(() => [parts.body.apply(self, given) as AsyncGenerator, AsyncResource.bind(runStep)] as const);
    if (!isAsyncIterable(inner)) {
      throw wrongReturn(inner, parts);
    }
    return yield* inLock(inner, lock, inContext);
  } catch (error) {
    failed = true;
    throw error;
  } finally {
    leave();
    // The body's own error goes first.
    await (failed ? held.catch(() => undefined) : held);
  }
}

/**
 * Resolves once inside, with the call that lasts until `left` and its arguments; without a lock where an answer was
 * given in its place.
 */
function enter(
  method: RunnableMethod,
  self: unknown,
  args: unknown[],
  left: Promise<void>,
): Promise<[Lock | undefined, Promise<unknown>, unknown[]]> {
  return new Promise((resolve, reject) => {
    const held = method.run(self, args, undefined, (lock, given = args) => {
      // The call is known only when this body has returned. Not by queueMicrotask, which fake timers hold up.
      void Promise.resolve().then(() => resolve([lock, held, given]));
      return left;
    });
    held.then(() => resolve([undefined, held, args]), reject);
  });
}

/** A step of the body's iterator. */
type Step = () => Promise<IteratorResult<unknown>>;

function runStep(step: Step): Promise<IteratorResult<unknown>> {
  return step();
}

/**
 * The iterator of the body, which goes on inside the lock. After a loss, the error is thrown where the body stands.
 * Whatever the body does then belongs to a call that has lost its lock, and not to a call that may acquire it anew.
 */
function inLock(inner: AsyncGenerator, lock: Lock, inContext: (step: Step) => Promise<IteratorResult<unknown>>): AsyncIterable<unknown> {
  const go = (step: Step): Promise<IteratorResult<unknown>> => (lock.isHeld() ? lock.run(step) : inContext(step));
  return {
    [Symbol.asyncIterator]: () => ({
      next: (value: unknown) => (lock.isHeld() ? lock.run(() => inner.next(value)) : inContext(() => inner.throw(lossOf(lock)))),
      return: (value: unknown) => go(() => inner.return(value)),
      throw: (error: unknown) => go(() => inner.throw(error)),
    }),
  };
}

function lossOf(lock: Lock): unknown {
  try {
    lock.assertHeld();
    return undefined;
  } catch (error) {
    return error;
  }
}
