import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from './clock.js';
import type { Entry } from './entry.js';
import { isLockError, LockLostError, LockStoreError, type LockError, type LostReason } from './errors.js';
import type { Hold, HoldKeeper } from './hold.js';
import type { LocalQueue } from './local-queue.js';
import type { HoldRecord, LockStore } from './lock-store.js';
import { ttlUntil } from './lease.js';
import { Renewer } from './renewer.js';
import type { Reporter } from './reporter.js';

/** The longest pause before a failed release is sent again, in milliseconds. */
const LONGEST_PAUSE_MS = 1_000;

/** The holds of this process in one store, from the grant to the end. */
export class Holds implements HoldKeeper {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #queue: LocalQueue;
  readonly #reporter: Reporter;
  readonly #renewer: Renewer;
  readonly #running = new Set<Hold>();
  readonly #lingering = new Map<Hold, NodeJS.Timeout>();
  readonly #background = new Set<Promise<void>>();
  #closing = false;

  constructor(store: LockStore, clock: Clock, queue: LocalQueue, reporter: Reporter) {
    this.#store = store;
    this.#clock = clock;
    this.#queue = queue;
    this.#reporter = reporter;
    this.#renewer = new Renewer(
      store,
      clock,
      (hold, reason) => this.lose(hold, reason),
      (hold, error) => reporter.storeUnavailable(hold, asLockError(error, hold.key)),
    );
    store.onForced((key, fence) => this.#force(key, fence));
  }

  now(): number {
    return this.#clock.monotonic();
  }

  /** A hold was granted to a call, on an attempt sent at `sentAt`. */
  start(hold: Hold, sentAt: number, entry: Entry): void {
    const { renew, maxHoldMs } = entry.call;
    const { expires } = this.#store;
    hold.acquiredAt = this.now();
    hold.extend(sentAt, expires ? hold.ttlMs : Infinity);
    hold.enter(entry.frame);
    entry.obtained.push(hold);
    this.#running.add(hold);
    if (expires || maxHoldMs < Infinity) {
      this.#renewer.add(hold, renew && expires);
    }
    if (!hold.joined) {
      this.#queue.granted(hold);
    }
    this.#reporter.acquired(hold, entry.waitedMs);
  }

  /** The call has all its locks: from here on `maxHold` and `minHold` count. */
  limit({ call, obtained }: Entry): void {
    const now = this.now();
    for (const hold of obtained) {
      hold.minHoldAt = now + call.minHoldMs;
      hold.maxHoldAt = now + call.maxHoldMs;
      if (call.maxHoldMs < Infinity) {
        this.#renewer.hasten(hold);
      }
    }
  }

  /**
   * Ends a hold whose lease is not to be trusted any more: the code is told before anybody else gets the local turn,
   * and a release is sent in case the record lives.
   */
  lose(hold: Hold, reason: LostReason): LockLostError {
    if (hold.lost) {
      return hold.lost;
    }
    const loss = lossOf(hold, hold.overdue && reason === 'expired' ? 'maxHold' : reason, this.now());
    this.#forget(hold);
    hold.lost = loss;
    this.#reporter.lost(hold, this.now() - hold.acquiredAt, loss.reason);
    for (const frame of [...hold.frames]) {
      frame.tell(loss);
    }
    hold.refuseEntering(loss);
    this.abandon(hold);
    this.#passTurn(hold);
    return loss;
  }

  /** Gives the lock back, or keeps it until `minHold` is over. */
  async finish(hold: Hold): Promise<void> {
    const lingerMs = hold.minHoldAt - this.now();
    if (lingerMs <= 0) {
      return this.#release(hold);
    }
    this.#lingering.set(hold, setTimeout(() => void this.#release(hold), lingerMs).unref());
    hold.lingering = true;
    hold.renewAt = Infinity;
    if (hold.minHoldAt > hold.deadline) {
      // One renewal covers the rest, so that the lock stays taken even if this process ends.
      hold.ttlMs = ttlUntil(lingerMs);
      hold.renewAt = this.now();
      this.#renewer.hasten(hold);
    }
  }

  /** Releases in the background what must not stay: a late grant, an attempt of unknown outcome, a lost lease. */
  abandon(hold: HoldRecord): void {
    const { key, owner, id, fence, ttlMs, by } = hold;
    const release = this.#releaseUntil({ key, owner, id, fence, ttlMs, by }, this.now() + ttlMs).finally(() => {
      this.#background.delete(release);
    });
    this.#background.add(release);
  }

  /** Ends everything: running code is told, its locks are given back, and a `minHold` is left to run out. */
  async shutdown(): Promise<void> {
    for (const hold of this.#lingering.keys()) {
      this.#forget(hold);
    }
    const releases = [...this.#running].map(async (hold) => {
      this.#forget(hold);
      hold.lost = lossOf(hold, 'shutdown', this.now());
      this.#reporter.lost(hold, this.now() - hold.acquiredAt, 'shutdown');
      for (const frame of [...hold.frames]) {
        frame.tell(hold.lost);
      }
      hold.refuseEntering(hold.lost);
      try {
        await this.#store.release(hold);
      } catch (error) {
        this.#reporter.releaseFailed(hold, asLockError(error, hold.key));
      }
    });
    await Promise.all(releases);
    this.#renewer.stop();
  }

  /** Waits for the releases in the background, which are not repeated any more, for as long as one command may take. */
  async settle(): Promise<void> {
    this.#closing = true;
    await Promise.race([Promise.all(this.#background), sleep(LONGEST_PAUSE_MS, undefined, { ref: false })]);
  }

  async #release(hold: Hold): Promise<void> {
    if (hold.lost) {
      return;
    }
    this.#forget(hold);
    try {
      if (await this.#store.release(hold)) {
        this.#reporter.released(hold, this.now() - hold.acquiredAt);
      } else {
        // Somebody deleted the lock, and the code ended before a renewal could tell.
        this.#lateLoss(hold);
      }
    } catch (error) {
      this.#reporter.releaseFailed(hold, asLockError(error, hold.key));
      this.abandon(hold);
    } finally {
      this.#passTurn(hold);
    }
  }

  #lateLoss(hold: Hold): void {
    hold.lost = lossOf(hold, 'expired', this.now());
    this.#reporter.lost(hold, this.now() - hold.acquiredAt, 'expired');
  }

  /** Tries until the store answers or the lease it could have granted is over. */
  async #releaseUntil(hold: HoldRecord, until: number): Promise<void> {
    for (;;) {
      try {
        await this.#store.release(hold);
        return;
      } catch (error) {
        const pauseMs = Math.min(hold.ttlMs / 10, LONGEST_PAUSE_MS);
        if (this.#closing || !(error instanceof LockStoreError) || this.now() + pauseMs >= until) {
          return;
        }
        await sleep(pauseMs, undefined, { ref: false });
      }
    }
  }

  #force(key: string, fence: number): void {
    for (const hold of this.#running) {
      if (hold.key === key && hold.fence === fence) {
        this.lose(hold, 'forced');
      }
    }
  }

  #forget(hold: Hold): void {
    hold.ended = true;
    this.#running.delete(hold);
    this.#renewer.delete(hold);
    clearTimeout(this.#lingering.get(hold));
    this.#lingering.delete(hold);
  }

  #passTurn(hold: Hold): void {
    if (!hold.joined) {
      this.#queue.pass(hold.key);
    }
  }
}

/** What a store rejects with is a lock error; anything else is a defect of the store, and reported as its failure. */
function asLockError(error: unknown, key: string): LockError {
  return isLockError(error)
    ? error
    : new LockStoreError(`Lock "${key}": the store failed. Make sure that it rejects with a LockStoreError.`, key, {
        cause: error,
        unknown: true,
      });
}

function lossOf(hold: Hold, reason: LostReason, now: number): LockLostError {
  const heldMs = Math.round(now - hold.acquiredAt);
  return new LockLostError(`Lock "${hold.key}" was lost after ${heldMs} ms: ${WHY[reason]}`, hold.key, reason);
}

const WHY: Readonly<Record<LostReason, string>> = {
  expired:
    'its lease ended before the code did. Check lock.signal in long sections, raise ttl above the longest pause, and let the resource refuse the old fence.',
  forced: 'an operator released it by force. Find out why before the call is repeated.',
  released: 'it was released while code inside it still ran. Release it after the last use.',
  maxHold: 'the code ran on after its maxHold. Stop when lock.signal aborts, or raise maxHold.',
  shutdown: 'the application shut down. Let sections end before the server has drained, or repeat the call after the restart.',
};
