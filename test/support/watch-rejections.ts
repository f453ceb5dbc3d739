import { setImmediate } from 'node:timers';

/** Of the test runner: the `process` of a test is a copy, which hears of no rejections and no warnings. */
export const realProcess = (setImmediate.constructor as FunctionConstructor)('return process')() as NodeJS.Process;

/** Hears of unhandled rejections in place of the test runner; answers how to end that. */
export function watchRejections(listener: (reason: unknown) => void): () => void {
  const others = realProcess.listeners('unhandledRejection');
  realProcess.removeAllListeners('unhandledRejection');
  realProcess.on('unhandledRejection', listener);
  return () => {
    realProcess.removeAllListeners('unhandledRejection');
    others.forEach((other) => realProcess.on('unhandledRejection', other));
  };
}
