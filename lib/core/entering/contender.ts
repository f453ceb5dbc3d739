import type { Acquisition } from './acquisition.js';
import type { EnteringParts } from './entering-parts.js';
import { attempt, failed, type AttemptResult } from '../leases/attempt.js';
import { LockStoreError, type LockError, type NotAcquiredReason } from '../words/errors.js';
import type { Lease } from '../leases/lease.js';
import { momentOf } from '../seam/time.js';
import type { Line } from '../leases/line.js';
import type { Busy } from '../seam/lock-store.js';

/** Between two polls of a store that keeps no order or does not answer, in milliseconds. */
const POLL = { least: 50, most: 250 } as const;

/** Contends for a lock in the store: one attempt after the other until one is granted or the caller gives up. */
export class Contender {
  readonly #parts: EnteringParts;

  constructor(parts: EnteringParts) {
    this.#parts = parts;
  }

  /**
   * | attempt | what follows |
   * |---|---|
   * | granted | the lease starts; if the caller has given up, it is released |
   * | late | it is released, and the next attempt is a new hold |
   * | busy | the same hold tries again: when notified of the turn, or after a pause |
   * | failed | the same hold tries again; if the outcome is unknown, it is released once the caller gives up |
   */
  async obtain(lease: Lease, acquisition: Acquisition, line?: Line): Promise<void> {
    const { lifecycle, releases, leases } = this.#parts;
    // Sticky: an earlier attempt may still be on its way after a busy reply.
    let isUnknown = false;
    /** The last result that the store gave: one that was not sent any more says nothing. */
    let told: AttemptResult | undefined;
    lifecycle.begin();
    try {
      for (;;) {
        const result = await this.#nextResult(lease, acquisition, line, isUnknown);
        const gaveUp = acquisition.gaveUp(lifecycle.isClosing);
        if (result.outcome === 'granted' && !gaveUp) {
          isUnknown = false;
          leases.start(lease, result, acquisition, line);
          return;
        }
        if (result.outcome === 'granted' || result.outcome === 'late') {
          isUnknown = false;
          if (lease.leave()) {
            releases.release(lease);
          }
          lease.newId();
        } else {
          isUnknown ||= result.outcome === 'failed' && result.error.unknown;
        }
        told = result.outcome === 'unsent' ? (told ?? result) : result;
        await this.#pause(told, lease, acquisition, line, gaveUp);
      }
    } finally {
      if (isUnknown) {
        releases.release(lease);
      }
      lifecycle.end();
    }
  }

  /**
   * In this order: the result that came with the line, the last busy answer while it is valid, or the reply to a new
   * attempt.
   */
  #nextResult(lease: Lease, acquisition: Acquisition, line: Line | undefined, isUnknown: boolean): AttemptResult | Promise<AttemptResult> {
    const { clock, availability, lines } = this.#parts;
    const begun = line?.takeResult();
    if (begun) {
      return begun;
    }
    if (availability.isAway) {
      return this.#askAway(lease, acquisition, line, isUnknown);
    }
    return lines.besideReader(lease) ?? line?.standingAnswer(lease, clock.monotonic()) ?? this.#ask(lease, acquisition, line);
  }

  #ask(lease: Lease, { call, answerBy }: Acquisition, line: Line | undefined): Promise<AttemptResult> {
    const { store, clock, lines } = this.#parts;
    lease.goesOnFor(undefined);
    const place = lines.prepare(line, lease, call.waitMs > 0);
    return attempt<AttemptResult>(store, lease, clock, momentOf(clock), answerBy, place, (result) => result, failed);
  }

  /**
   * Waits while another call asks the store for all, until that is answered or it is this call's turn to ask.
   * `isUnknown`: an attempt of its own may have been carried out.
   */
  async #askAway(lease: Lease, acquisition: Acquisition, line: Line | undefined, isUnknown: boolean): Promise<AttemptResult> {
    const { availability, waiters } = this.#parts;
    const { key } = lease;
    const waits = acquisition.call.onUnavailable !== 'throw';
    for (;;) {
      if (availability.mayAsk(waits)) {
        return this.#ask(lease, acquisition, line);
      }
      if (!waits) {
        throw availability.refusal(key);
      }
      if (waiters.isFullFor(acquisition, key)) {
        throw acquisition.refused(key, 'tooManyWaiters');
      }
      const outcome = await waiters.wait(key, acquisition, availability.asksAgainAt, line);
      if (outcome === 'aborted' || outcome === 'shutdown') {
        throw acquisition.refused(key, outcome);
      }
      if (acquisition.leftMs <= 0) {
        throw availability.lastFailure(key, isUnknown);
      }
    }
  }

  /** Waits until the next attempt; throws where the call gives up. */
  async #pause(
    result: AttemptResult,
    lease: Lease,
    acquisition: Acquisition,
    line: Line | undefined,
    gaveUp: NotAcquiredReason | undefined,
  ): Promise<void> {
    const { clock, waiters } = this.#parts;
    const recheckAt = this.#noted(result, lease, acquisition, line, gaveUp);
    if (!gaveUp && waiters.isFullFor(acquisition, lease.key)) {
      throw whyRefused('tooManyWaiters', result, lease, acquisition);
    }
    let reason: NotAcquiredReason | undefined = gaveUp ?? (clock.monotonic() >= acquisition.giveUpAt ? 'busy' : undefined);
    if (!reason && !line?.isNotified) {
      const outcome = await waiters.wait(lease.key, acquisition, recheckAt, line);
      // Time for the next attempt. When the call's time is over, the last one is made, unless the last answer still
      // stands.
      reason = outcome === 'admitted' || outcome === 'busy' ? undefined : outcome;
    }
    if (reason) {
      throw whyRefused(reason, result, lease, acquisition);
    }
  }

  /** Reports and remembers how an attempt ended; answers when the next one is due. */
  #noted(
    result: AttemptResult,
    lease: Lease,
    acquisition: Acquisition,
    line: Line | undefined,
    gaveUp: NotAcquiredReason | undefined,
  ): number {
    const { clock, events, availability } = this.#parts;
    const { call } = acquisition;
    if (result.outcome === 'busy') {
      acquisition.sees(result.busy);
    }
    if (line?.isLastAnswer(result)) {
      return line.recheckAt;
    }
    if (result.outcome === 'failed') {
      events.attemptFailed(lease, result.error);
    } else if (result.outcome === 'busy') {
      events.busy(lease, result.busy, call.waitMs > 0);
    }
    const recheckAt = nextAttempt(clock.monotonic(), result.outcome === 'busy' ? result.busy : undefined);
    if (result.outcome !== 'unsent') {
      line?.answered(result, recheckAt);
    }
    if ('error' in result && call.onUnavailable === 'throw' && !gaveUp && availability.isAway) {
      throw result.error;
    }
    return recheckAt;
  }
}

/** When to ask again: never past the end of the lease last seen. */
function nextAttempt(now: number, busy: Busy | undefined): number {
  const pauseMs = busy?.recheckMs ?? POLL.least + Math.random() * (POLL.most - POLL.least);
  return now + Math.min(pauseMs, busy ? busy.remainingMs + 1 : pauseMs);
}

/** The error of a call that gives up after that result. */
export function whyRefused(reason: NotAcquiredReason, result: AttemptResult, lease: Lease, acquisition: Acquisition): LockError {
  const failure = reason === 'busy' || reason === 'tooManyWaiters' ? failureOf(result, lease, acquisition) : undefined;
  return failure ?? acquisition.refused(lease.key, reason, result.outcome === 'busy' ? result.busy : undefined);
}

/**
 * The store's error, where the call's time is over because of the store; undefined where the call waited for others
 * until then.
 */
function failureOf(result: AttemptResult, { key, ttlMs }: Lease, { waitedFor }: Acquisition): LockStoreError | undefined {
  if (result.outcome === 'unsent' && waitedFor === key) {
    return undefined;
  }
  if (result.outcome === 'late') {
    return new LockStoreError(
      `Lock "${key}": the grant came after its own lease of ${ttlMs} ms was over. Raise ttl, or find out what blocks.`,
      key,
      { unknown: false },
    );
  }
  return 'error' in result ? result.error : undefined;
}
