import { sendRelease, type AttemptResult } from './attempt.js';
import type { BackgroundReleases } from './background-releases.js';
import { asLockError, type LockLostError, type LostReason } from '../words/errors.js';
import { CallNode } from '../calls/call-tree.js';
import { type Clock, LONGEST_COMMAND_MS, pause } from '../seam/time.js';
import { lockChannel } from '../words/lock-event.js';
import { ForcedReleases } from './forced-releases.js';
import { Link } from './hold.js';
import type { Lease } from './lease.js';
import type { Entrant, LeaseEvents, LeaseKeeper } from './lease-events.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { Line, NextCaller } from './line.js';
import type { Lines } from './lines.js';
import type { LockStore } from '../seam/lock-store.js';
import { lossOf, whyExpired, type LossCause } from './loss.js';
import { Renewer } from './renewer.js';

interface LeasesParts {
  /** The name under which the store is registered. */
  readonly name: string;
  readonly store: LockStore;
  readonly clock: Clock;
  readonly lifecycle: Lifecycle;
  readonly lines: Lines;
  readonly releases: BackgroundReleases;
  readonly events: LeaseEvents;
}

/** The leases of this process in one store, from the grant to the end: the one place that ends a lease. */
export class Leases {
  readonly #parts: LeasesParts;
  /** Where the chain of those that run begins. */
  readonly #running = new Link();
  readonly #renewer: Renewer;
  readonly #lingering = new Map<Lease, NodeJS.Timeout>();
  readonly #forced = new ForcedReleases();

  constructor(parts: LeasesParts) {
    const { store, clock, lifecycle, events } = parts;
    this.#parts = parts;
    this.#renewer = new Renewer(store, clock, events, this);
    store.operator?.onForced?.((key, fence, reason = 'forced') => this.#force(key, fence, reason), lifecycle.closed);
  }

  /** The name under which the store is registered. */
  get store(): string {
    return this.#parts.name;
  }

  /** A lease was granted to a call. */
  start(lease: Lease, granted: AttemptResult & { outcome: 'granted' }, entrant: Entrant, line: Line | undefined): void {
    const { store, events, lines } = this.#parts;
    const isNew = lease.start(granted.fence, granted.sent, store.expires);
    lease.calls.push(entrant.frame);
    entrant.obtain(lease);
    lease.linkTo(this.#running);
    if (store.expires) {
      this.#renewer.watch(lease);
    }
    if (lease.shares !== undefined) {
      lines.shared(line, lease, isNew);
    } else {
      line?.heldBy(lease, true);
    }
    if (this.isWatched) {
      events.acquired(lease, entrant);
    }
    const forced = this.#forced.size > 0 ? this.#forcedReason(lease) : undefined;
    if (forced) {
      this.lose(lease, forced);
    }
  }

  /** Why the lock was taken away, where a message of a short while ago says so. */
  #forcedReason({ key, storedFence }: Lease): LostReason | undefined {
    const forced = this.#forced.get(key);
    return forced?.fence === storedFence ? forced.reason : undefined;
  }

  /** The call has all its locks: from here on `maxHold` and `minHold` count. */
  limitHold({ call, obtained }: Entrant): void {
    if (call.maxHoldMs === Infinity && call.minHoldMs === 0) {
      return;
    }
    for (const lease of obtained) {
      lease.term.limitHold(call.maxHoldMs, call.minHoldMs);
      this.#renewer.hasten(lease);
    }
  }

  /** Ends a lease whose time is over, and answers the loss of one that was lost. */
  expire(lease: Lease): LockLostError | undefined {
    return lease.isOver ? this.lose(lease, 'expired') : lease.loss;
  }

  /**
   * Ends a lease that is not to be trusted any more: its code is notified before another call gets the line, and a
   * release is sent in case the record lives. One that was released may serve another call: it stays as it is.
   */
  lose(lease: Lease, cause: LossCause): LockLostError | undefined {
    if (lease.hasEnded) {
      return lease.loss;
    }
    const { lines, releases } = this.#parts;
    const loss = this.#end(lease, cause === 'expired' ? whyExpired(lease) : cause);
    if (lease.shares === undefined || lease.leave()) {
      releases.release(lease);
    }
    const line = lines.lineOf(lease.key);
    if (line?.lease === lease) {
      lines.endTurn(line);
    }
    return loss;
  }

  /** Asks the store whether it still has a lock whose lease is doubted, until it answers or the lease is lost. */
  async settleDoubt(lease: Lease): Promise<void> {
    while (lease.doubt && (await this.#renewer.confirm(lease))) {
      // The end of a call waits for it.
      await pause(Math.min(lease.term.grantedMs / 10, LONGEST_COMMAND_MS), true);
    }
  }

  extend(lease: Lease, ttlMs: number): Promise<void> {
    return this.#renewer.extend(lease, ttlMs);
  }

  /**
   * A call leaves, or a transaction that kept the lease has ended. The last one to leave releases the lock, or keeps it
   * until `minHold` is over. Undefined where no answer of the store is to be waited for.
   */
  leave(lease: Lease, leaving: CallNode | LeaseKeeper): Promise<void> | undefined {
    const hasLeft = lease.calls.remove(leaving);
    if (hasLeft && lease.loss && lease.calls.isEmpty) {
      this.#parts.events.codeEnded(lease);
    }
    if (!hasLeft || lease.loss || lease.calls.admitNext() || !lease.calls.isEmpty) {
      return undefined;
    }
    const lingerMs = lease.term.minHoldAt > 0 ? lease.term.minHoldAt - this.#parts.clock.monotonic() : 0;
    if (lingerMs <= 0) {
      return this.#release(lease, leaving);
    }
    this.#lingering.set(lease, setTimeout(() => void this.#release(lease, undefined), lingerMs).unref());
    lease.linger();
    this.#renewer.hasten(lease);
    return undefined;
  }

  get running(): readonly Lease[] {
    return this.#running.members as Lease[];
  }

  /**
   * Ends everything: running code is notified, its locks are released, and a `minHold` is left to run out where leases
   * end by time.
   */
  async shutdown(): Promise<void> {
    const { expires } = this.#parts.store;
    const kept = [...this.#lingering.keys()].map((lease) => (expires ? this.#linger(lease) : this.#release(lease, undefined)));
    const ended = this.running.map((lease) => this.#interrupt(lease));
    await Promise.all([...kept, ...ended]);
    this.#renewer.stop();
  }

  /** Whether anybody learns of successes: no event is made for nobody. */
  get isWatched(): boolean {
    return this.#parts.events.watchers.length > 0 || lockChannel.hasSubscribers;
  }

  /**
   * Never rejects. `leaving` is the last call or transaction that left. The lease serves the next call here, or is
   * exchanged for the next call's lease, or is released.
   */
  #release(lease: Lease, leaving: CallNode | LeaseKeeper | undefined): Promise<void> | undefined {
    if (lease.loss) {
      return undefined;
    }
    const { lifecycle, lines, events } = this.#parts;
    const line = lease.isJoined ? undefined : lines.lineOf(lease.key);
    const next = lease.shares === undefined ? line?.next() : line?.idleContender;
    const isServing = line && next && !lifecycle.isClosing && lines.serves(line, lease, next);
    if (isServing || (lease.shares !== undefined && !lease.leave())) {
      // The store keeps the hold for other calls here.
      this.#forget(lease);
      lease.release();
      if (this.isWatched) {
        events.released(lease);
      }
      return undefined;
    }
    return this.#giveBack(lease, leaving, lease.shares === undefined ? line : undefined, next);
  }

  /** Never rejects. The release is exchanged for the acquire of the next caller, where its line has one. */
  #giveBack(
    lease: Lease,
    leaving: CallNode | LeaseKeeper | undefined,
    line: Line | undefined,
    next: NextCaller | undefined,
  ): Promise<void> {
    const { lifecycle, lines, releases, events } = this.#parts;
    const isLingering = lease.state === 'lingering';
    const record = lease.record();
    this.#forget(lease);
    lease.release();
    lifecycle.begin();
    const exchanged = line && next && lines.exchange(line, next, lease, record);
    return (exchanged ?? sendRelease(this.#parts.store, record)).then(
      (wasHeld) => {
        // The lease of one that lingers ends with `minHold`, perhaps a moment before its release.
        if (!wasHeld && !isLingering) {
          this.#foundGone(lease, leaving);
        } else if (this.isWatched) {
          events.released(lease);
        }
        this.#released(exchanged ? undefined : line);
      },
      (error: unknown) => {
        events.releaseFailed(lease, asLockError(error, lease.key));
        releases.release(lease, true);
        this.#released(exchanged ? undefined : line);
      },
    );
  }

  /** The next in line contends, unless the release was exchanged for its acquire. */
  #released(line: Line | undefined): void {
    const { lines, lifecycle } = this.#parts;
    if (line) {
      lines.endTurn(line);
    }
    lifecycle.end();
  }

  /** Somebody deleted the lock or released it by force, and the code ended before this process could find out. */
  #foundGone(lease: Lease, leaving: CallNode | LeaseKeeper | undefined): void {
    const kept = leaving !== undefined && !(leaving instanceof CallNode);
    const loss = this.#end(lease, this.#forcedReason(lease) ?? 'gone', kept);
    leaving?.notify(loss);
  }

  /** Leaves a lock taken for the rest of its `minHold`, without renewals. */
  async #linger(lease: Lease): Promise<void> {
    const { store, clock, events } = this.#parts;
    const record = lease.renewal(clock.monotonic());
    this.#forget(lease);
    lease.release();
    try {
      await store.renew([record]);
    } catch (error) {
      events.renewalFailed(lease, asLockError(error, lease.key));
    }
  }

  async #interrupt(lease: Lease): Promise<void> {
    if (lease.hasEnded) {
      // A listener of the one before has released it.
      return;
    }
    const record = lease.record();
    this.#end(lease, 'shutdown');
    try {
      if (lease.leave()) {
        await sendRelease(this.#parts.store, record);
      }
    } catch (error) {
      this.#parts.events.releaseFailed(lease, asLockError(error, lease.key));
    }
  }

  #end(lease: Lease, cause: LossCause, kept = lease.calls.isOnlyKept): LockLostError {
    const loss = lossOf(lease, cause, kept);
    this.#forget(lease);
    lease.lose(loss);
    // The code first: listeners to events may be slow.
    lease.calls.notify(loss);
    this.#parts.events.lost(lease, loss, kept);
    lease.calls.refuse(loss);
    return loss;
  }

  #force(key: string, fence: number, reason: LostReason): void {
    this.#forced.note(key, fence, reason);
    for (const lease of this.running) {
      if (lease.key === key && lease.storedFence === fence) {
        this.lose(lease, reason);
      }
    }
  }

  #forget(lease: Lease): void {
    lease.unlink();
    if (lease.shares === 'read') {
      this.#parts.lines.forget(lease);
    }
    if (this.#lingering.size > 0) {
      clearTimeout(this.#lingering.get(lease));
      this.#lingering.delete(lease);
    }
  }
}
