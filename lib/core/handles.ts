import type { LockFrame } from './lock-frame.js';
import { LockHandle } from './lock-handle.js';

/** Makes handles, and tells of those that were collected while their lock was held: nobody can release it any more. */
export class Handles {
  readonly #collected: FinalizationRegistry<LockFrame>;

  constructor(onCollected: (frame: LockFrame) => void) {
    this.#collected = new FinalizationRegistry((frame) => {
      if (frame.isHeld()) {
        onCollected(frame);
      }
    });
  }

  give(frame: LockFrame): LockHandle {
    const handle = new LockHandle(frame);
    frame.isGivenAs(handle);
    this.#collected.register(handle, frame);
    return handle;
  }
}
