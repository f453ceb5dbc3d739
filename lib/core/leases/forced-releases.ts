import type { LostReason } from '../words/errors.js';

/**
 * The most keys that are remembered. A fence is granted once, so a fence that is remembered for too long does no harm.
 */
const MOST = 100;

/** The last forced release of each key: the reply that grants its fence may come after the message. */
export class ForcedReleases extends Map<string, { readonly fence: number; readonly reason: LostReason }> {
  note(key: string, fence: number, reason: LostReason): void {
    const [oldest] = this.size < MOST ? [] : this.keys();
    this.delete(oldest ?? key);
    this.set(key, { fence, reason });
  }
}
