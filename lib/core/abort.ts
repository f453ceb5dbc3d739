import type { Entry } from './entry.js';
import type { LockFrame } from './lock-frame.js';

/** Rejects as soon as the signal aborts; an attempt in flight goes on, and what it brings is given back. */
export function orAbort(entering: Promise<LockFrame>, entry: Entry, signal: AbortSignal): Promise<LockFrame> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(entry.refused(entry.frame.keys[0] as string, 'aborted'));
    signal.addEventListener('abort', abort, { once: true });
    entering
      .then((frame) => {
        if (signal.aborted) {
          for (const hold of entry.obtained) {
            hold.minHoldAt = 0;
          }
          void frame.leave();
        }
        resolve(frame);
      }, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}
