import { attempt, renewIdentity, type AttemptResult } from './attempt.js';
import type { Availability } from './availability.js';
import type { BackgroundReleases } from './background-releases.js';
import type { Clock } from './clock.js';
import type { Entry } from './entry.js';
import { LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import type { Holds } from './holds.js';
import { InFlight } from './in-flight.js';
import type { Line } from './line.js';
import type { LocalQueue } from './local-queue.js';
import type { Busy, LockStore } from './lock-store.js';
import type { Reporter } from './reporter.js';
import type { WaitOutcome } from './waiter.js';
import type { Waiters } from './waiters.js';

/** Between two polls of a store that keeps no order or does not answer, in milliseconds. */
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
  readonly #availability: Availability;
  readonly #attempts = new InFlight();

  constructor(
    store: LockStore,
    clock: Clock,
    queue: LocalQueue,
    holds: Holds,
    releases: BackgroundReleases,
    waiters: Waiters,
    reporter: Reporter,
    availability: Availability,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#queue = queue;
    this.#holds = holds;
    this.#releases = releases;
    this.#waiters = waiters;
    this.#reporter = reporter;
    this.#availability = availability;
  }

  /**
   * | attempt | what follows |
   * |---|---|
   * | granted | the hold starts; if the caller has given up, it is given back |
   * | late | it is given back, and the next attempt is a new hold |
   * | busy | the same hold is tried again: when told of the turn, or after a pause |
   * | failed, nobody knows how | the same hold is tried again; given back once the caller gives up |
   */
  async obtain(hold: Hold, entry: Entry, line?: Line, hasWaited = false): Promise<void> {
    // Sticky: a busy reply does not tell that an earlier attempt is not still on its way.
    let unknown = false;
    let paused: WaitOutcome | undefined = hasWaited ? 'admitted' : undefined;
    this.#attempts.begin();
    try {
      for (;;) {
        const passed = line?.takePassed();
        if (!passed) {
          this.#refuseWhileAway(hold.key, entry);
        }
        const standing = passed ? undefined : this.#standing(line);
        const result = standing ?? (await (passed ?? this.#attempt(hold, entry, line)));
        if (line) {
          line.failure = result.outcome === 'failed' ? result.error : undefined;
        }
        const gaveUp = this.#waiters.closed ? 'closed' : entry.call.signal?.aborted && 'aborted';
        if (result.outcome === 'granted' || result.outcome === 'late') {
          unknown = false;
          line?.granted(passed !== undefined);
          if (result.outcome === 'granted' && !gaveUp) {
            this.#holds.start(hold, result.sent, entry, line);
            return;
          }
          this.#releases.abandon(hold);
          renewIdentity(hold);
        } else if (result.outcome === 'failed') {
          unknown ||= result.error.unknown;
          if (!result.isUnsent) {
            this.#reporter.attemptFailed(hold, result.error);
          }
          if (entry.call.onUnavailable === 'throw' && !gaveUp && this.#availability.isAway) {
            throw result.error;
          }
        } else if (!standing) {
          this.#reporter.busy(hold, result.busy, entry.call.waitMs > 0);
        }
        const busy = result.outcome === 'busy' ? result.busy : undefined;
        // Whoever waits already keeps its right to.
        if (!paused && !gaveUp && entry.call.waitMs > 0 && this.#waiters.isFull) {
          throw entry.refused(hold.key, 'tooManyWaiters', busy);
        }
        const lookAt = standing && line ? line.recheckAt : nextLook(this.#clock.monotonic(), busy);
        line?.answered(busy, lookAt);
        paused = gaveUp || (await this.#pause(hold.key, entry, lookAt, line));
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
      this.#attempts.end();
    }
  }

  /** Resolves when no attempt is on its way any more; for shutdown, when nobody begins another. */
  drained(): Promise<void> {
    return this.#attempts.drained();
  }

  /** Where the call asks for it, ends it while the store is away; now and then, one may ask the store all the same. */
  #refuseWhileAway(key: string, { call }: Entry): void {
    if (call.onUnavailable === 'throw' && this.#availability.isAway && !this.#availability.takeProbe()) {
      throw this.#availability.refusal(key);
    }
  }

  /** What the caller before was told, while it still holds: it gave up, and the process keeps its place. */
  #standing(line: Line | undefined): AttemptResult | undefined {
    return line?.place && line.busy && !line.told && this.#clock.monotonic() < line.recheckAt
      ? { outcome: 'busy', busy: line.busy }
      : undefined;
  }

  #attempt(hold: Hold, entry: Entry, line: Line | undefined): Promise<AttemptResult> {
    if (line) {
      line.told = false;
    }
    // A call that does not wait does not queue, and takes nobody's turn.
    const place = line && entry.call.waitMs > 0 ? this.#queue.placeIn(line) : undefined;
    return attempt(this.#store, hold, this.#clock, entry.answerBy, place);
  }

  /** Waits until told of the turn, or until the next look; `timedOut` where the caller's time is up. */
  async #pause(key: string, entry: Entry, lookAt: number, line: Line | undefined): Promise<WaitOutcome> {
    if (this.#clock.monotonic() >= entry.giveUpAt) {
      return 'timedOut';
    }
    if (line?.told) {
      return 'admitted';
    }
    const outcome = await this.#waiters.wait(key, entry, lookAt, line);
    return outcome === 'timedOut' ? 'admitted' : outcome;
  }
}

/** When to look next: never past the end of the lease last seen. */
function nextLook(now: number, busy: Busy | undefined): number {
  const pauseMs = busy?.recheckMs ?? POLL.least + Math.random() * (POLL.most - POLL.least);
  return now + Math.min(pauseMs, busy ? busy.remainingMs + 1 : pauseMs);
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
