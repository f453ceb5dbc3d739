import type { LostReason } from '../words/errors.js';

/** As many keys are remembered. A fence is granted once, so one that is remembered for too long does no harm. */
const MOST = 100;

/** What is known of a lock that was released by force. */
interface ForcedRelease {
  readonly fence: number;
  readonly reason: LostReason;
}

/** The last forced release of each key: the reply that grants its fence may come after the message. */
export class ForcedReleases extends Map<string, ForcedRelease> {
  note(key: string, release: ForcedRelease): void {
    const [oldest] = this.size < MOST ? [] : this.keys();
    this.delete(oldest ?? key);
    this.set(key, release);
  }
}
