import type { LockError, LostReason, NotAcquiredReason } from './errors.js';
import type { Hold } from './hold.js';
import { hasListeners, publish, type LockEvent } from './lock-event.js';

/** Events that an operator should see even where nobody listens to the channel. */
export type LockTrouble = Extract<LockEvent, { type: 'lost' | 'endedLate' | 'releaseFailed' | 'storeUnavailable' }>;

/** Tells what happens to the locks of one store. Nothing it calls can stop a release. */
export class Reporter {
  readonly #store: string;
  readonly #onTrouble: (trouble: LockTrouble) => void;
  #unavailable = false;

  constructor(store: string, onTrouble: (trouble: LockTrouble) => void) {
    this.#store = store;
    this.#onTrouble = onTrouble;
  }

  acquired(hold: Hold, waitedMs: number): void {
    this.storeAnswered();
    if (hasListeners()) {
      publish({ type: 'acquired', ...this.#subject(hold), fence: hold.fence, waitedMs });
    }
  }

  waited(key: string, by: string, waitedMs: number, gaveUp: NotAcquiredReason | undefined): void {
    if (hasListeners()) {
      publish({ type: 'waited', store: this.#store, key, by, waitedMs, gaveUp });
    }
  }

  released(hold: Hold, heldMs: number): void {
    if (hasListeners()) {
      publish({ type: 'released', ...this.#subject(hold), fence: hold.fence, heldMs });
    }
  }

  lost(hold: Hold, heldMs: number, reason: LostReason): void {
    this.#trouble({ type: 'lost', ...this.#subject(hold), fence: hold.fence, heldMs, reason });
  }

  endedLate(hold: Hold, heldMs: number, thrown: unknown): void {
    this.#trouble({ type: 'endedLate', ...this.#subject(hold), fence: hold.fence, heldMs, thrown });
  }

  releaseFailed(hold: Hold, error: LockError): void {
    this.#trouble({ type: 'releaseFailed', ...this.#subject(hold), fence: hold.fence, error });
  }

  /** Told once per outage: until the store has answered again, further failures are the same news. */
  storeUnavailable(hold: { readonly key: string; readonly by: string }, error: LockError): void {
    if (!this.#unavailable) {
      this.#unavailable = true;
      this.#trouble({ type: 'storeUnavailable', ...this.#subject(hold), error });
    }
  }

  storeAnswered(): void {
    this.#unavailable = false;
  }

  #trouble(trouble: LockTrouble): void {
    publish(trouble);
    try {
      this.#onTrouble(trouble);
    } catch {
      // A broken logger must not keep a lock taken.
    }
  }

  #subject(hold: { readonly key: string; readonly by: string }): { store: string; key: string; by: string } {
    return { store: this.#store, key: hold.key, by: hold.by };
  }
}
