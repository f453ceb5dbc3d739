import type { Frame } from './frame.js';
import type { LockHandle } from '../calls/lock-handle.js';

/** Makes handles, and reports those that were collected while their lock was held: no code can release it any more. */
export class Handles {
  readonly #collected: FinalizationRegistry<Frame>;

  constructor(onCollected: (frame: Frame) => void) {
    this.#collected = new FinalizationRegistry((frame) => {
      if (frame.isUnreleased) {
        onCollected(frame);
      }
    });
  }

  give(frame: Frame): LockHandle {
    const handle = frame.giveHandle();
    this.#collected.register(handle, frame);
    return handle;
  }
}
