import type { Lock } from '../../core/words/lock.js';
import type { LockedMethod } from './locked-method.js';
import { isAsyncIterable, wrongReturn } from './return-kind.js';

/**
 * A method that is an async generator: held from the first `next` to the end, `return` or `throw`. Its body runs inside
 * the lock each time it goes on; once the lease is lost it is ended with a `LockLostError`. What `onBusy` answers is
 * the value it returns.
 */
export async function* lockedGenerator(method: LockedMethod, self: unknown, args: unknown[]): AsyncGenerator {
  const { parts } = method;
  let leave!: () => void;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const [lock, held] = await enter(method, self, args, left);
  if (!lock) {
    return await held;
  }
  let failed = true;
  try {
    const inner = lock.run(() => parts.body.apply(self, args)) as AsyncGenerator;
    if (!isAsyncIterable(inner)) {
      throw wrongReturn(inner, parts);
    }
    const result: unknown = yield* inLock(inner, lock);
    failed = false;
    return result;
  } finally {
    leave();
    // The body's own error goes first.
    await (failed ? held.catch(() => undefined) : held);
  }
}

/** Resolves once inside, with the call that lasts until `left`; without a lock where `onBusy` answered instead. */
function enter(
  method: LockedMethod,
  self: unknown,
  args: readonly unknown[],
  left: Promise<void>,
): Promise<[Lock | undefined, Promise<unknown>]> {
  return new Promise((resolve, reject) => {
    const held = method.run(self, args, undefined, (lock) => {
      // The call is known only when this body has returned. Not by queueMicrotask, which fake timers hold up.
      void Promise.resolve().then(() => resolve([lock, held]));
      return left;
    });
    held.then(() => resolve([undefined, held]), reject);
  });
}

/** The body's iterator, which goes on inside the lock, and gets the error of a loss where it stands. */
function inLock(inner: AsyncGenerator, lock: Lock): AsyncIterable<unknown> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: (value: unknown) => (lock.isHeld() ? lock.run(() => inner.next(value)) : inner.throw(lossOf(lock))),
      return: (value: unknown) => (lock.isHeld() ? lock.run(() => inner.return(value)) : inner.return(value)),
      throw: (error: unknown) => (lock.isHeld() ? lock.run(() => inner.throw(error)) : inner.throw(error)),
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
