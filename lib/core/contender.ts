import { attempt, renewIdentity } from './attempt.js';
import type { BackgroundReleases } from './background-releases.js';
import type { Clock } from './clock.js';
import type { Entry } from './entry.js';
import { LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import type { Holds } from './holds.js';
import type { LocalQueue } from './local-queue.js';
import type { Busy, LockStore } from './lock-store.js';
import type { Reporter } from './reporter.js';
import type { WaitOutcome } from './waiter.js';
import type { Waiters } from './waiters.js';

/** Between two polls of a busy lock, in milliseconds. */
const POLL = { least: 50, most: 250 } as const;

/** Contends for a lock in the store: one attempt after the other until one is granted or the caller gives up. */
export class Contender {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #queue: LocalQueue;
  readonly #holds: Holds;
  readonly #releases: BackgroundReleases;
  readonly #waiters: Waiters;
  readonly #reporter: Reporter;
  #contending = 0;
  #onDrained: (() => void) | undefined;

  constructor(
    store: LockStore,
    clock: Clock,
    queue: LocalQueue,
    holds: Holds,
    releases: BackgroundReleases,
    waiters: Waiters,
    reporter: Reporter,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#queue = queue;
    this.#holds = holds;
    this.#releases = releases;
    this.#waiters = waiters;
    this.#reporter = reporter;
  }

  /**
   * | attempt | what follows |
   * |---|---|
   * | granted | the hold starts; if the caller has given up, it is given back |
   * | late | it is given back, and the next attempt is a new hold |
   * | busy | the same hold is tried again after a pause |
   * | failed, nobody knows how | the same hold is tried again; given back once the caller gives up |
   */
  async obtain(hold: Hold, entry: Entry): Promise<void> {
    this.#contending++;
    try {
      await this.#obtain(hold, entry);
    } finally {
      this.#contending--;
      if (this.#contending === 0) {
        this.#onDrained?.();
      }
    }
  }

  /** Resolves when no attempt is on its way any more; for shutdown, when nobody begins another. */
  async drained(): Promise<void> {
    if (this.#contending > 0) {
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
  }

  async #obtain(hold: Hold, entry: Entry): Promise<void> {
    // Sticky: a busy reply does not tell that an earlier attempt is not still on its way.
    let unknown = false;
    try {
      for (;;) {
        const result = await attempt(this.#store, hold, this.#clock);
        if (!hold.joined) {
          this.#queue.answered(hold.key, result.outcome === 'failed' ? result.error : undefined);
        }
        const gaveUp = this.#waiters.closed ? 'closed' : entry.call.signal?.aborted && 'aborted';
        if (result.outcome === 'granted' && !gaveUp) {
          unknown = false;
          this.#holds.start(hold, result.sentAt, entry);
          return;
        }
        if (result.outcome === 'granted' || result.outcome === 'late') {
          unknown = false;
          this.#releases.abandon(hold);
          renewIdentity(hold);
        } else if (result.outcome === 'failed') {
          unknown ||= result.error.unknown;
          this.#reporter.storeUnavailable(hold, result.error);
        } else {
          this.#reporter.storeAnswered();
        }
        const busy = result.outcome === 'busy' ? result.busy : undefined;
        const paused = gaveUp || (await this.#pause(hold.key, entry, busy));
        if (paused === 'timedOut' && result.outcome === 'failed') {
          throw result.error;
        }
        if (paused === 'timedOut' && result.outcome === 'late') {
          throw tooLate(hold);
        }
        if (paused !== 'admitted') {
          throw entry.refused(hold.key, paused, busy);
        }
      }
    } finally {
      if (unknown) {
        this.#releases.abandon(hold);
      }
    }
  }

  /** Waits before the next poll, never past the end of the lease last seen; `timedOut` where the caller's time is up. */
  async #pause(key: string, entry: Entry, busy: Busy | undefined): Promise<WaitOutcome> {
    const now = this.#clock.monotonic();
    if (now >= entry.giveUpAt) {
      return 'timedOut';
    }
    const pollMs = POLL.least + Math.random() * (POLL.most - POLL.least);
    const outcome = await this.#waiters.wait(key, entry, now + Math.min(pollMs, busy ? busy.remainingMs + 1 : pollMs));
    return outcome === 'timedOut' ? 'admitted' : outcome;
  }
}

function tooLate({ key, ttlMs }: Hold): LockStoreError {
  return new LockStoreError(
    `Lock "${key}": the grant came after its own lease of ${ttlMs} ms was over. Raise ttl, or find out what blocks.`,
    key,
    {
      unknown: false,
    },
  );
}
