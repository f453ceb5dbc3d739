/**
 * Lets the stack of an error begin with another text than its message. It is put together when somebody reads it: the
 * error of a busy lock is made often, and its stack rarely read.
 */
export function beginStack(error: Error, text: () => string, made: Function): void {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, made);
  const put = (value: unknown): void => {
    Object.defineProperty(error, 'stack', { value, writable: true, configurable: true });
  };
  Object.defineProperty(error, 'stack', {
    configurable: true,
    get: () => {
      const { stack = '' } = trace;
      const frames = stack.indexOf('\n');
      put(frames === -1 ? text() : `${text()}${stack.slice(frames)}`);
      return error.stack;
    },
    set: put,
  });
}
