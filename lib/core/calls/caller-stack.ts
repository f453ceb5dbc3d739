import { isLockError, type LockError } from '../words/errors.js';

/** Errors that have their callers. One may refuse many calls, as at a shutdown. */
const COMPLETE = new WeakSet<LockError>();

/**
 * Rejects the promise of a call that is refused, by its `resolve`, and adds the lines of those who await it to the stack of the
 * error. V8 finds them from a reaction that leads to that promise, so a call that is granted pays nothing for them.
 */
export function refuse<T>(resolve: (refused: Promise<T>) => void, error: unknown): void {
  // One reaction later than the promise follows this one.
  const refused = Promise.resolve().then(() => undefined);
  resolve(
    refused.then(() => {
      if (isLockError(error) && !COMPLETE.has(error)) {
        COMPLETE.add(error);
        const awaiting = framesHere().filter((line) => !error.stack?.includes(line));
        error.stack = [error.stack, ...awaiting].join('\n');
      }
      throw error;
    }),
  );
}

/** The frames below the one that asks. */
function framesHere(): readonly string[] {
  const here: { stack?: string } = {};
  Error.captureStackTrace(here, framesHere);
  return (here.stack?.match(/^\s+at .*/gm) ?? []).slice(1);
}
