import { callContext, CallNode } from '../calls/call-tree.js';
import { LEAST_TTL_MS } from '../words/call-options.js';
import { type Duration, parseDuration } from '../words/duration.js';
import { LockLostError, type LostReason } from '../words/errors.js';
import type { Lease } from '../leases/lease.js';
import type { Leases } from '../leases/leases.js';
import type { BodyRun } from './body-run.js';
import { LockHandle } from './lock-handle.js';
import { PermitHandle } from './permit-handle.js';
import type { Lock } from '../words/lock.js';
import type { Resume } from '../words/lock-telemetry.js';
import { quoted } from '../words/shown.js';
import type { TicketEntry } from '../leases/ticket.js';
import type { Transaction } from '../transactions/transaction.js';

const NONE: readonly Lease[] = [];

const atOnce: Resume = (run) => run();

/**
 * The frames whose handles `acquire()` gave: where one is collected while its lock is held, no code can release it. A
 * frame that leaves is taken out: the registry would keep it until a full collection, and the next one after that.
 */
const GIVEN = new FinalizationRegistry<Frame>((frame) => frame.collected());

/** One locked call: a node in the tree of calls, and the leases that it is in. Users get a handle, never the frame. */
export class Frame extends CallNode {
  declare readonly transaction: Transaction | undefined;
  readonly #leases: Leases;
  /** The leases on the keys that were taken so far, in the order of the keys. */
  #taken: readonly Lease[] = NONE;
  #waitedMs = 0;
  /** The handle that the body gets. */
  #bodyHandle: LockHandle | PermitHandle | undefined;
  /** The handle that `acquire()` gave, held weakly: one that is collected before its release is reported. */
  #givenHandle: WeakRef<LockHandle | PermitHandle> | undefined;
  #unreleased: ((lease: Lease) => void) | undefined;
  readonly #isPermit: boolean;
  #isReleased = false;
  #running = 0;
  #leaving: Promise<void> | undefined;
  #controller: AbortController | undefined;
  #notified: LockLostError | undefined;
  #bodyRun: Pick<BodyRun<unknown>, 'notified'> | undefined;
  #resume: Resume = atOnce;

  /** `isPermit`: for a call that takes a permit; its code is inside of no lock. */
  constructor(leases: Leases, keys: readonly string[], isHandle: boolean, transaction?: Transaction, isPermit = false) {
    super(keys, isHandle, transaction);
    this.#isPermit = isPermit;
    this.#leases = leases;
  }

  /** Whether it is a locked call of that store of that application. */
  belongsTo(leases: Leases): boolean {
    return this.#leases === leases;
  }

  override get hasLeft(): boolean {
    return this.#isReleased && this.#running === 0;
  }

  override get lock(): Lock | undefined {
    const { handle } = this;
    return handle instanceof LockHandle ? handle : undefined;
  }

  /** The lock or permit that the user's code knows this call by. */
  get handle(): LockHandle | PermitHandle {
    return this.#givenHandle?.deref() ?? (this.#bodyHandle ??= this.#isPermit ? new PermitHandle(this) : new LockHandle(this));
  }

  /** Makes the handle for a caller of `acquire()`; `unreleased` is told where it is collected before its release. */
  giveHandle(unreleased: (lease: Lease) => void): LockHandle | PermitHandle {
    const handle = this.#isPermit ? new PermitHandle(this) : new LockHandle(this);
    this.#givenHandle = new WeakRef(handle);
    this.#unreleased = unreleased;
    GIVEN.register(handle, this, this);
    return handle;
  }

  /** Its handle was garbage collected. */
  collected(): void {
    if (!this.#isReleased && this.isHeld()) {
      this.#taken.forEach((lease) => this.#unreleased?.(lease));
    }
  }

  get taken(): readonly Lease[] {
    return this.#taken;
  }

  leaseOn(key: string): Lease | undefined {
    return this.#taken.find((lease) => lease.key === key);
  }

  take(lease: Lease): void {
    this.#taken = [...this.#taken, lease];
  }

  /** No code has seen the lock yet, and its locks are taken anew: an earlier loss is forgotten. */
  async startOver(): Promise<void> {
    const taken = this.#taken;
    this.#taken = NONE;
    await Promise.all(taken.map(async (lease) => this.#leases.leave(lease, this)));
    this.#notified = undefined;
    this.#controller = undefined;
  }

  /** The call has all its locks, which the transaction around it keeps from here on. */
  entered(waitedMs: number): void {
    this.#waitedMs = Math.round(waitedMs);
    if (this.#isKept) {
      this.transaction?.keep(this.#taken);
    }
  }

  /** Whether its handle was released, or its body has ended. */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  get waitedMs(): number {
    return this.#waitedMs;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      this.transaction?.follow(this);
      this.#notified ??= this.#isReleased ? this.loss : undefined;
      if (this.#notified) {
        this.#controller.abort(this.#notified);
      }
    }
    return this.#controller.signal;
  }

  isHeld(): boolean {
    return (!this.#isReleased || this.#isKept) && this.#taken.every((lease) => lease.isLive);
  }

  /** The loss of a lease, where one is known; after `leave()` that includes a lock that the release found gone. */
  get loss(): LockLostError | undefined {
    return this.#taken.find((lease) => lease.loss)?.loss;
  }

  /** Throws where the call is not in its locks any more. */
  assertInside(): void {
    const ended = this.#endedBy();
    if (ended) {
      throw ended;
    }
  }

  /**
   * The entries of a ticket for all its locks: from now on other processes may be in them. The entry of a lock that was
   * lost or released lets nobody in.
   */
  makeTicketEntries(): TicketEntry[] {
    const hasEnded = this.#endedBy() !== undefined;
    return this.#taken.map((lease) => ({ store: this.#leases.store, ...(hasEnded ? lease.ticketOfNone : lease.makeTicketEntry()) }));
  }

  /** Sets each of its leases to at least `ttl` from now. Rejects where one was lost, or the store does not answer. */
  async extend(ttl: Duration): Promise<void> {
    const ttlMs = parseDuration(ttl, 'ttl', LEAST_TTL_MS, 'lock.extend');
    const ended = this.#notified ?? this.expire() ?? (this.#isKept ? undefined : this.#releasedBefore());
    if (ended) {
      throw ended;
    }
    await Promise.all(this.#taken.map(async (lease) => this.#leases.extend(lease, ttlMs)));
    this.assertHeld();
  }

  /** Throws where the lock cannot be trusted. Ends leases whose time is over. */
  assertHeld(): void {
    const why = this.expire() ?? (this.#isKept ? undefined : this.#releasedBefore()) ?? this.#doubt;
    if (why) {
      throw why;
    }
  }

  /**
   * Ends the leases whose time is over, also where a blocked event loop kept the timer from it; answers the first loss.
   */
  expire(): LockLostError | undefined {
    for (const lease of this.#taken) {
      const loss = this.#leases.expire(lease);
      if (loss) {
        return loss;
      }
    }
    return undefined;
  }

  /** Code begins to run inside. Throws where the lock cannot be trusted. */
  begin(): void {
    const why = this.#endedBy() ?? this.#doubt;
    if (why) {
      throw why;
    }
    this.#running++;
  }

  end(): void {
    this.#running--;
  }

  /**
   * Sets the run of the body, which limits its caller's wait after a loss; undefined once the body has ended. Node
   * keeps with the promise of a run the context in which the run was made: a frame that kept its run would keep the
   * frame around it in memory.
   */
  runsBody(bodyRun: Pick<BodyRun<unknown>, 'notified'> | undefined): void {
    this.#bodyRun = bodyRun;
    if (this.#notified) {
      bodyRun?.notified(this.#notified);
    }
  }

  /** How code that runs later is run. */
  get resume(): Resume {
    return this.#resume;
  }

  /** Telemetry follows the body, and code that runs later. */
  resumesBy(resume: Resume): void {
    this.#resume = resume;
  }

  override notify(loss: LockLostError): void {
    if (!this.#notified) {
      this.#notified = loss;
      // Listeners belong to this call: a timer that notifies of the loss may run in another call's context.
      callContext.run(this, () => this.#controller?.abort(loss));
      this.#bodyRun?.notified(loss);
    }
  }

  /** Ends its leases although its code runs on. */
  lose(reason: LostReason): void {
    for (const lease of this.#taken) {
      this.#leases.lose(lease, reason);
    }
  }

  /**
   * Leaves every lock that the frame is in, the last taken first. A second call of `leave` waits for the first;
   * undefined where nothing is to be waited for.
   */
  leave(): Promise<void> | undefined {
    if (!this.#isReleased) {
      this.#isReleased = true;
      if (this.#givenHandle) {
        GIVEN.unregister(this);
      }
      this.unlinkParents();
      // Outside of any call: Node keeps with a promise the context in which it was made, so that each frame would keep
      // the one before.
      this.#leaving = callContext.getStore() ? callContext.run(undefined, Frame.#leaveAll, this) : Frame.#leaveAll(this);
    }
    return this.#leaving;
  }

  static #leaveAll(this: void, frame: Frame): Promise<void> | undefined {
    const taken = frame.#taken;
    if (taken.some((lease) => lease.doubt)) {
      return frame.#leaveDoubted();
    }
    return taken.length === 1 ? frame.#leases.leave(taken[0] as Lease, frame) : frame.#leaveEach();
  }

  /** The code may have run past its lease while the machine slept: the store has to say. */
  async #leaveDoubted(): Promise<void> {
    for (const lease of this.#taken) {
      await this.#leases.settleDoubt(lease);
    }
    await this.#leaveEach();
  }

  async #leaveEach(): Promise<void> {
    await Promise.all(this.#taken.toReversed().map(async (lease) => this.#leases.leave(lease, this)));
  }

  get #doubt(): LockLostError | undefined {
    for (const lease of this.#taken) {
      const { doubt } = lease;
      if (doubt) {
        return doubt;
      }
    }
    return undefined;
  }

  /** Whether the transaction around the call has not ended: it keeps the locks, also once the call has left. */
  get #isKept(): boolean {
    return this.transaction?.hasEnded === false;
  }

  /**
   * The loss or the release by which the call is not in its locks any more; undefined while it is in them. A call that
   * was released is not in its locks, even if a transaction keeps them.
   */
  #endedBy(): LockLostError | undefined {
    return this.expire() ?? this.#releasedBefore();
  }

  #releasedBefore(): LockLostError | undefined {
    return this.#isReleased
      ? new LockLostError(
          `Lock ${quoted(this.keys)} was released before. Acquire it again, or release it after the last use.`,
          this.keys[0] ?? '',
          'released',
        )
      : undefined;
  }
}
