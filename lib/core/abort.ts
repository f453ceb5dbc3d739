import type { Acquisition } from './acquisition.js';
import type { Frame } from './frame.js';

/**
 * Rejects as soon as the call's signal aborts, unless the call has its locks by then; an attempt in flight goes on, and what it is
 * granted is released.
 */
export function unlessAborted(entering: Promise<Frame>, acquisition: Acquisition<Frame>): Promise<Frame> {
  const { signal } = acquisition.call;
  if (!signal) {
    return entering;
  }
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      if (!acquisition.hasEntered) {
        reject(acquisition.refused(acquisition.frame.keys[0] as string, 'aborted'));
      }
    };
    signal.addEventListener('abort', abort, { once: true });
    void entering.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
