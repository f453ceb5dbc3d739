import { randomUUID } from 'node:crypto';
import { LockConfigurationError, LockNotAcquiredError, LockStoreError, type LostReason } from '../core/words/errors.js';
import { LONGEST_COMMAND_MS, pause } from '../core/seam/time.js';
import type {
  AcquireReply,
  ForcedListener,
  FoundLock,
  HoldRecord,
  Place,
  Shares,
  StoredLock,
  TurnListener,
} from '../core/seam/lock-store.js';
import type { StoreHealth } from '../core/words/lock-health.js';
import { MemoryLockStore } from '../memory/memory-lock-store.js';

/** How a store that is away treats a command: it fails at once, or answers nothing until the command's time is over. */
export type AwayAs = 'failing' | 'silent';

const ELSEWHERE = 'elsewhere (pid 1) LockTesting.holdElsewhere';

/** A lease for as long as the test wants it, in milliseconds: a year. */
const ENDLESS_MS = 365 * 24 * 3_600_000;

/** The memory store with the faults of a remote one, which a test makes. */
export class TestStore extends MemoryLockStore {
  #away: AwayAs | undefined;
  #grantDelayMs = 0;
  /** The reason that the code of a lock gets when the lock is released by force. */
  #reason: LostReason = 'forced';
  #turnListeners: TurnListener[] = [];
  /** Ends the commands that get no answer. */
  readonly #unanswered = new Set<() => void>();

  goAway(as: AwayAs): void {
    this.#away = as;
  }

  /** Answers again, and has core ask again for every place, as after a lost connection. */
  comeBack(): void {
    this.#away = undefined;
    for (const end of this.#unanswered) {
      end();
    }
    for (const listener of this.#turnListeners) {
      listener.recheck();
    }
  }

  delayGrants(ms: number): void {
    this.#grantDelayMs = ms;
  }

  /** Acquires for another process. Rejects with a `LockNotAcquiredError` where the lock is taken. */
  async holdElsewhere(key: string, shares: Shares | undefined, ttlMs = ENDLESS_MS): Promise<HoldRecord> {
    const hold: HoldRecord = {
      key,
      owner: randomUUID(),
      id: randomUUID(),
      fence: 0,
      fences: 1,
      shares,
      ttlMs,
      limitMs: LONGEST_COMMAND_MS,
      lingering: false,
      unanswered: false,
      by: ELSEWHERE,
    };
    const reply = await super.acquire(hold);
    if (reply.fence === undefined) {
      throw new LockNotAcquiredError(
        `LockTesting.holdElsewhere("${key}"): ${reply.holder.by || 'a call that has its turn'} has the lock. ` +
          'Call it before the code under test takes the lock, or lose() that lock first.',
        key,
        { reason: 'busy', waitedMs: 0, holder: reply.holder },
      );
    }
    return hold;
  }

  /** Releases a lock that another process holds; works also while this process cannot reach the store. */
  async releaseElsewhere(hold: HoldRecord): Promise<void> {
    await super.release(hold);
  }

  /** Ends the lock of its holder. Throws `LockConfigurationError` where nobody holds it. */
  async lose(key: string, reason: LostReason): Promise<void> {
    const stored = await super.inspect(key);
    if (!stored) {
      throw new LockConfigurationError(
        `LockTesting.lose("${key}"): nobody holds this lock. Call it while the code under test is inside, with the key as inspect() knows it.`,
        key,
      );
    }
    this.#reason = reason;
    const released = super.forceRelease(key, stored.fence);
    this.#reason = 'forced';
    await released;
  }

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    await this.#reach(hold.key, hold.limitMs);
    return this.#late(super.acquire(hold, place), hold);
  }

  override async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
    await this.#reach(hold.key, hold.limitMs);
    const { released, reply } = await super.exchange(hold, next, place, mayOvertake);
    return { released, reply: this.#late(reply, next) };
  }

  override async join(hold: HoldRecord): Promise<boolean> {
    await this.#reach(hold.key, hold.limitMs);
    const joined = await super.join(hold);
    if (joined) {
      await this.#delay(hold);
    }
    return joined;
  }

  override async leave(key: string, name: string): Promise<void> {
    await this.#reach(key);
    return super.leave(key, name);
  }

  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    const [first] = holds as readonly [HoldRecord];
    await this.#reach(first.key, Math.min(...holds.map(({ limitMs }) => limitMs)));
    return super.renew(holds);
  }

  override async release(hold: HoldRecord): Promise<boolean> {
    await this.#reach(hold.key, hold.limitMs);
    return super.release(hold);
  }

  override async inspect(key: string): Promise<StoredLock | null> {
    await this.#reach(key);
    const stored = await super.inspect(key);
    return stored && shownElsewhere(stored);
  }

  override async forceRelease(key: string, fence: number): Promise<boolean> {
    await this.#reach(key);
    return super.forceRelease(key, fence);
  }

  override async send(text: string, process?: string): Promise<void> {
    await this.#reach('');
    return super.send(text, process);
  }

  override async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    await this.#reach('');
    for await (const found of super.search(prefix)) {
      yield found.map(shownElsewhere);
    }
  }

  async health(): Promise<StoreHealth> {
    await this.#reach('');
    return {};
  }

  override onForced(listener: ForcedListener, until?: AbortSignal): void {
    super.onForced((key, fence) => listener(key, fence, this.#reason), until);
  }

  override onTurn(listener: TurnListener, until?: AbortSignal): void {
    this.#turnListeners.push(listener);
    super.onTurn(listener, until);
  }

  override async close(): Promise<void> {
    this.#turnListeners = [];
    await super.close();
  }

  /**
   * Rejects while this store is away, as a store does that cannot be reached. Undefined, without a wait, where it is
   * not away.
   */
  #reach(key: string, limitMs = LONGEST_COMMAND_MS): Promise<void> | undefined {
    return this.#away && this.#fail(key, this.#away, limitMs);
  }

  async #fail(key: string, as: AwayAs, limitMs: number): Promise<never> {
    const isSilent = as === 'silent';
    if (isSilent) {
      await this.#silence(limitMs);
    }
    throw failure(key, isSilent ? limitMs : undefined, 'storeAway(). storeBack()');
  }

  /** Until the command's time is over, or the connection is cut because the store is back. */
  async #silence(limitMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#unanswered.add(resolve);
      void pause(limitMs).then(() => {
        this.#unanswered.delete(resolve);
        resolve();
      });
    });
  }

  async #late(given: AcquireReply | Promise<AcquireReply>, hold: HoldRecord): Promise<AcquireReply> {
    const reply = await given;
    if (reply.fence !== undefined) {
      await this.#delay(hold);
    }
    return reply;
  }

  /**
   * Delays a grant. A delay that is longer than the command may take is not waited for: the grant stands, and its
   * caller releases it.
   */
  async #delay({ key, limitMs }: HoldRecord): Promise<void> {
    const delayMs = this.#grantDelayMs;
    if (delayMs > 0) {
      await pause(Math.min(delayMs, limitMs));
    }
    if (delayMs > limitMs) {
      throw failure(key, limitMs, 'delayGrants(). delayGrants(0)');
    }
  }
}

/** The error of a store that did not answer within a time, or cannot be reached. */
function failure(key: string, withinMs: number | undefined, calls: string): LockStoreError {
  const what = withinMs === undefined ? 'cannot be reached' : `did not answer within ${Math.round(withinMs)} ms`;
  return new LockStoreError(`Lock "${key}": the store ${what}, since the test called ${calls} ends that.`, key, {
    unknown: withinMs !== undefined,
  });
}

/** A lock that another process holds is in no process of this store. */
function shownElsewhere<Stored extends StoredLock>(stored: Stored): Stored {
  return stored.by === ELSEWHERE ? { ...stored, processes: [] } : stored;
}
