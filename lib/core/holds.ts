import { setTimeout as sleep } from 'node:timers/promises';
import { asLockError, type BackgroundReleases } from './background-releases.js';
import type { Clock } from './clock.js';
import type { Entry } from './entry.js';
import type { LockLostError } from './errors.js';
import type { Hold, HoldKeeper } from './hold.js';
import { InFlight } from './in-flight.js';
import type { Line } from './line.js';
import type { LocalQueue } from './local-queue.js';
import type { LockStore } from './lock-store.js';
import { lossOf, type LossCause } from './loss.js';
import { LONGEST_COMMAND_MS, type Moment } from './lease.js';
import { Renewer, renewalOf } from './renewer.js';
import type { Reporter } from './reporter.js';

/** The holds of this process in one store, from the grant to the end. */
export class Holds implements HoldKeeper {
  readonly #store: LockStore;
  readonly clock: Clock;
  readonly #queue: LocalQueue;
  readonly #reporter: Reporter;
  readonly #renewer: Renewer;
  readonly #releases: BackgroundReleases;
  readonly #running = new Set<Hold>();
  readonly #lingering = new Map<Hold, NodeJS.Timeout>();
  /** Releases that a caller waits for; shutdown does too. */
  readonly #releasing = new InFlight();

  constructor(store: LockStore, clock: Clock, queue: LocalQueue, releases: BackgroundReleases, reporter: Reporter) {
    this.#store = store;
    this.clock = clock;
    this.#queue = queue;
    this.#releases = releases;
    this.#reporter = reporter;
    this.#renewer = new Renewer(
      store,
      clock,
      (hold) => void this.lose(hold, 'expired'),
      (hold, error) => reporter.renewalFailed(hold, asLockError(error, hold.key)),
      (hold) => reporter.renewed(hold),
    );
    store.operator?.onForced((key, fence) => this.#force(key, fence));
  }

  /** A hold was granted to a call, on an attempt that was sent at `sent`. */
  start(hold: Hold, sent: Moment, entry: Entry, line: Line | undefined): void {
    const { renew, maxHoldMs } = entry.call;
    const { expires } = this.#store;
    hold.acquiredAt = this.#now();
    hold.extend(sent, expires ? hold.ttlMs : Infinity);
    hold.enter(entry.frame);
    entry.obtained.push(hold);
    this.#running.add(hold);
    if (expires || maxHoldMs < Infinity) {
      this.#renewer.add(hold, renew && expires);
    }
    if (line) {
      line.hold = hold;
    }
    this.#reporter.acquired(hold, entry.waitedMs);
  }

  /** The call has all its locks: from here on `maxHold` and `minHold` count. */
  limit({ call, obtained }: Entry): void {
    const now = this.#now();
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
  lose(hold: Hold, cause: LossCause): LockLostError {
    if (hold.lost) {
      return hold.lost;
    }
    const loss = lossOf(hold, cause === 'expired' ? whyExpired(hold) : cause, this.#now());
    this.#forget(hold);
    hold.lost = loss;
    const heldMs = this.#now() - hold.acquiredAt;
    // The code first: whoever listens to events may be slow.
    for (const frame of [...hold.frames]) {
      frame.tell(loss);
    }
    this.#reporter.lost(hold, heldMs, loss.reason);
    hold.refuseEntering(loss);
    this.#releases.abandon(hold);
    this.#passTurn(hold);
    return loss;
  }

  async settleDoubt(hold: Hold): Promise<void> {
    while (hold.doubt() && (await this.#renewer.confirm(hold)) === undefined) {
      await sleep(Math.min(hold.leaseMs / 10, LONGEST_COMMAND_MS), undefined, { ref: false });
    }
  }

  /** Gives the lock back, or keeps it until `minHold` is over. */
  async finish(hold: Hold): Promise<void> {
    const lingerMs = hold.minHoldAt - this.#now();
    if (lingerMs <= 0) {
      return this.#release(hold);
    }
    this.#lingering.set(hold, setTimeout(() => void this.#release(hold), lingerMs).unref());
    hold.lingering = true;
    // One renewal makes the lease end with `minHold`, so that the lock stays taken that long, and no longer, if this process ends.
    hold.renewAt = this.#now();
    this.#renewer.hasten(hold);
  }

  endedLate(hold: Hold, thrown: unknown): void {
    this.#reporter.endedLate(hold, this.#now() - hold.acquiredAt, thrown);
  }

  /** Ends everything: running code is told, its locks are given back, and a `minHold` is left to run out. */
  async shutdown(): Promise<void> {
    const kept = [...this.#lingering.keys()].map((hold) => this.#keep(hold));
    const ended = [...this.#running].map((hold) => this.#interrupt(hold));
    await Promise.all([...kept, ...ended, this.#releasing.drained()]);
    this.#renewer.stop();
  }

  /** Leaves a lock taken for the rest of its `minHold`, with nobody to renew it. */
  async #keep(hold: Hold): Promise<void> {
    this.#forget(hold);
    await this.#store
      .renew([renewalOf(hold, this.#now())])
      .catch((error: unknown) => this.#reporter.renewalFailed(hold, asLockError(error, hold.key)));
  }

  async #interrupt(hold: Hold): Promise<void> {
    this.#forget(hold);
    hold.lost = lossOf(hold, 'shutdown', this.#now());
    const heldMs = this.#now() - hold.acquiredAt;
    for (const frame of [...hold.frames]) {
      frame.tell(hold.lost);
    }
    this.#reporter.lost(hold, heldMs, 'shutdown');
    hold.refuseEntering(hold.lost);
    try {
      await this.#store.release(hold);
    } catch (error) {
      this.#reporter.releaseFailed(hold, asLockError(error, hold.key));
    }
  }

  async #release(hold: Hold): Promise<void> {
    if (hold.lost) {
      return;
    }
    this.#forget(hold);
    this.#releasing.begin();
    const handedOn = hold.joined ? undefined : this.#queue.handOn(hold);
    try {
      // The lease of one that lingers ends with `minHold`, perhaps a moment before its release.
      if ((await (handedOn ?? this.#store.release(hold))) || hold.lingering) {
        this.#reporter.released(hold, this.#now() - hold.acquiredAt);
      } else {
        // Somebody deleted the lock, and the code ended before a renewal could tell.
        this.#lateLoss(hold);
      }
    } catch (error) {
      this.#reporter.releaseFailed(hold, asLockError(error, hold.key));
      this.#releases.abandon(hold);
    } finally {
      if (!handedOn) {
        this.#passTurn(hold);
      }
      this.#releasing.end();
    }
  }

  #lateLoss(hold: Hold): void {
    hold.lost = lossOf(hold, 'gone', this.#now());
    this.#reporter.lost(hold, this.#now() - hold.acquiredAt, 'expired');
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

  #now(): number {
    return this.clock.monotonic();
  }
}

function whyExpired({ gone, overdue }: Hold): LossCause {
  return gone ? 'gone' : overdue ? 'maxHold' : 'expired';
}
