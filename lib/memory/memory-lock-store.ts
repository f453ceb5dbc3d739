import { checkOptions } from '../core/words/check-options.js';
import { systemClock } from '../core/seam/time.js';
import type {
  AcquireReply,
  ForcedListener,
  FoundLock,
  HoldRecord,
  LockStore,
  Messages,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../core/seam/lock-store.js';
import { processName, shownProcess } from '../kit/process-name.js';
import { RECHECK_MS } from '../kit/protocol.js';
import { otherKindOfKey, tooManyHolds } from '../kit/refusals.js';
import type { QueuedPlace } from '../kit/key-state.js';
import { Listeners } from '../kit/listeners.js';
import { LockTable, type TableReply } from '../kit/lock-table.js';

/** Options of the memory store. */
export interface MemoryLockStoreOptions {
  /**
   * Whether leases end by time, as they do in Redis. `false` for tests: no lease ends by time, so there are no timers.
   * Default: `true`.
   */
  expires?: boolean | undefined;
}

/**
 * Locks in the memory of this process, with the semantics and the order of the Redis store: for applications of one
 * process, and for tests. Two memory stores share no locks.
 */
export class MemoryLockStore implements LockStore, Turns, Tickets, Operator, Messages {
  readonly expires: boolean;
  readonly reservesFences = true;
  readonly shared = true;
  readonly permits = true;
  readonly keepsLimits = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly messages: Messages = this;
  readonly process = processName();
  readonly #shown = shownProcess(this.process);
  readonly #table: LockTable;
  readonly #listeners = new Listeners();

  constructor(options: MemoryLockStoreOptions = {}) {
    checkOptions('MemoryLockStore', options, { expires: true });
    this.expires = options.expires ?? true;
    this.#table = new LockTable(
      systemClock,
      {
        turn: ({ name }, key) => {
          // Not in the middle of the operation that hands over. Not by queueMicrotask, which fake timers hold up.
          void Promise.resolve().then(() => this.#listeners.turn(key, name));
          return this.#listeners.turnListeners;
        },
        forced: (_process, key, fence) => this.#listeners.forced(key, fence),
      },
      this.expires,
    );
  }

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const reply = this.#table.acquire(hold, this.process, place && this.#queued(place));
    if (reply.otherKind) {
      throw otherKindOfKey(hold.key, reply.otherKind);
    }
    return withRecheck(reply);
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
    const { released, reply } = this.#table.exchange(hold, next, this.process, this.#queued(place), mayOvertake);
    // The release is carried out, whatever the acquire is answered.
    return { released, reply: reply.otherKind ? Promise.reject(otherKindOfKey(next.key, reply.otherKind)) : withRecheck(reply) };
  }

  async leave(key: string, name: string): Promise<void> {
    this.#table.leave(key, name);
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const reply = this.#table.join(hold, this.process);
    if (reply === 'full') {
      throw tooManyHolds(hold.key);
    }
    return reply === 'joined';
  }

  async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    return holds.map((hold) => this.#table.renew(hold));
  }

  async release(hold: HoldRecord): Promise<boolean> {
    return this.#table.release(hold);
  }

  async inspect(key: string): Promise<StoredLock | null> {
    return this.#table.inspect(key);
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return this.#table.forceRelease(key, fence);
  }

  onForced(listener: ForcedListener, until?: AbortSignal): void {
    this.#listeners.onForced(listener, until);
  }

  onTurn(listener: TurnListener, until?: AbortSignal): void {
    this.#listeners.onTurn(listener, until);
  }

  async send(text: string, process = this.process): Promise<void> {
    if (process === this.process) {
      // Not in the middle of the code that sends the message, as between processes.
      void Promise.resolve().then(() => this.#listeners.message(text));
    }
  }

  onMessage(listener: (text: string) => void, until?: AbortSignal): void {
    this.#listeners.onMessage(listener, until);
  }

  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    yield this.#table.search(prefix);
  }

  async close(): Promise<void> {
    this.#table.clear();
  }

  #queued({ name }: Place): QueuedPlace {
    return { name, process: this.#shown, polls: false };
  }
}

/** A place in the queue is notified of its turn: no message is lost in one process. */
function withRecheck(reply: TableReply): AcquireReply {
  return reply.fence === undefined && reply.rank >= 0 ? { ...reply, recheckMs: RECHECK_MS.late } : reply;
}
