import type { Acquisition } from './acquisition.js';
import type { Frame } from './frame.js';

/** Rejects as soon as the call's signal aborts; an attempt in flight goes on, and what it is granted is released. */
export function unlessAborted(entering: Promise<Frame>, acquisition: Acquisition<Frame>): Promise<Frame> {
  const { frame, call, obtained } = acquisition;
  const { signal } = call;
  if (!signal) {
    return entering;
  }
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(acquisition.refused(frame.keys[0] as string, 'aborted'));
    signal.addEventListener('abort', abort, { once: true });
    entering
      .then(() => {
        if (signal.aborted) {
          for (const lease of obtained) {
            lease.dropMinHold();
          }
          void frame.leave();
        }
        resolve(frame);
      }, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}
