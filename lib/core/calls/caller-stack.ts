import { isLockError, writeStackLater, type LockError } from '../words/errors.js';

/** Errors that have their callers. One may refuse many calls, as at a shutdown. */
const COMPLETE = new WeakSet<LockError>();

/**
 * Rejects the promise of a call that is refused, by its `resolve`, and adds the lines of the callers that await the
 * promise to the stack of the error. V8 finds them from a reaction that leads to that promise, so a call that is
 * granted pays nothing.
 */
export function refuse<T>(resolve: (refused: Promise<T>) => void, error: unknown): void {
  // The stack is read one reaction later: by then, the caller's promise follows this one.
  const refused = Promise.resolve().then(() => undefined);
  resolve(
    refused.then(() => {
      if (isLockError(error) && !COMPLETE.has(error)) {
        COMPLETE.add(error);
        addFrames(error, tracedHere());
      }
      throw error;
    }),
  );
}

/** Adds the frames of a trace to the stack of an error, once somebody reads it. */
function addFrames(error: LockError, trace: { readonly stack?: string }): void {
  const own = Object.getOwnPropertyDescriptor(error, 'stack');
  if (own?.configurable) {
    writeStackLater(error, () => {
      Object.defineProperty(error, 'stack', own);
      const { stack = '' } = error;
      // The first frame is the reaction itself.
      const frames = (trace.stack?.match(/^\s+at .*/gm) ?? []).slice(1);
      return [stack, ...frames.filter((line) => !stack.includes(line))].join('\n');
    });
  }
}

function tracedHere(): { readonly stack?: string } {
  const trace = {};
  Error.captureStackTrace(trace, tracedHere);
  return trace;
}
