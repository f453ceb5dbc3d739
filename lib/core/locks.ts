import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { attempt, renewIdentity } from './attempt.js';
import type { Call } from './call.js';
import { systemClock, type Clock } from './clock.js';
import { currentFrame, liveParent } from './context.js';
import { findCycle } from './cycle.js';
import { LockNotAcquiredError, type NotAcquiredReason } from './errors.js';
import { Hold } from './hold.js';
import { Holds } from './holds.js';
import { LocalQueue, type Line } from './local-queue.js';
import { LockFrame } from './lock-frame.js';
import type { Busy, LockStore } from './lock-store.js';
import { notAcquired } from './not-acquired.js';
import { Reporter, type LockTrouble } from './reporter.js';
import { readTicket } from './ticket.js';
import { Waiter, type WaitOutcome } from './waiter.js';

/** What the locks of one store need to know of their application. */
export interface LocksSettings {
  readonly name: string;
  readonly store: LockStore;
  readonly maxWaiters: number;
  readonly onTrouble: (trouble: LockTrouble) => void;
  readonly clock?: Clock;
}

/** A call on its way in. */
interface Entry {
  readonly call: Call;
  readonly frame: LockFrame;
  readonly startedAt: number;
  readonly giveUpAt: number;
  /** Made when the first key is acquired anew. */
  owner: string | undefined;
  /** The key that it last had to wait for. */
  waitedFor: string | undefined;
}

/** Between two polls of a busy lock. */
const POLL_MS = { least: 50, most: 250 } as const;

/**
 * The locks of one store of one application. A call flows one way: re-entry, the local queue, the store, the body,
 * release, next in line.
 */
export class Locks {
  readonly store: LockStore;
  readonly #clock: Clock;
  readonly #maxWaiters: number;
  readonly #reporter: Reporter;
  readonly #queue = new LocalQueue();
  readonly #holds: Holds;
  readonly #waiters = new Set<Waiter>();
  readonly #waitingFrames = new Map<LockFrame, Hold>();
  readonly #process = `${hostname()} (pid ${process.pid})`;
  #closing = false;

  constructor(settings: LocksSettings) {
    this.store = settings.store;
    this.#maxWaiters = settings.maxWaiters;
    this.#clock = settings.clock ?? systemClock;
    this.#reporter = new Reporter(settings.name, settings.onTrouble);
    this.#holds = new Holds(this.store, this.#clock, this.#queue, this.#reporter);
  }

  /** Enters the lock; whoever called leaves it. */
  async enter(keys: readonly string[], call: Call, isHandle: boolean): Promise<LockFrame> {
    const startedAt = this.#clock.monotonic();
    const entry: Entry = {
      call,
      frame: new LockFrame(keys, currentFrame(), isHandle),
      startedAt,
      giveUpAt: startedAt + call.waitMs,
      owner: undefined,
      waitedFor: undefined,
    };
    const { signal } = call;
    if (signal?.aborted) {
      throw this.#notAcquired(entry, keys[0] as string, 'aborted');
    }
    const entering = this.#enterAll(entry);
    return signal ? this.#orAbort(entering, entry, signal) : entering;
  }

  /** Rejects waiters and new calls, and ends what runs. */
  async shutdown(): Promise<void> {
    this.#closing = true;
    for (const waiter of [...this.#waiters]) {
      waiter.close();
    }
    await this.#holds.shutdown();
  }

  /** Calls of this process that wait for the key. */
  waitingFor(key: string): number {
    return this.#queue.lineOf(key)?.waiting.size ?? 0;
  }

  async #enterAll(entry: Entry): Promise<LockFrame> {
    const { frame } = entry;
    let gaveUp: NotAcquiredReason | undefined;
    try {
      for (let at = 0; at < frame.keys.length; at++) {
        frame.holds.push(await this.#enterOne(frame.keys[at] as string, entry));
        const lost = at > 0 ? frame.holds.find((hold) => hold.loss()) : undefined;
        if (lost) {
          await this.#startOver(lost, entry);
          at = -1;
        }
      }
    } catch (error) {
      gaveUp = error instanceof LockNotAcquiredError ? error.reason : undefined;
      await frame.leave();
      throw error;
    } finally {
      if (entry.waitedFor !== undefined) {
        this.#reporter.waited(entry.waitedFor, this.#by(entry), this.#waitedMs(entry), gaveUp);
      }
    }
    return frame;
  }

  /** Losing one lock while the next was waited for: all are held together, or none is. */
  async #startOver(lost: Hold, { frame, owner }: Entry): Promise<void> {
    if (lost.owner !== owner) {
      // It is an enclosing call's lock, and that call has to hear of it.
      throw lost.loss();
    }
    await Promise.all(frame.holds.splice(0).map((hold) => hold.leave(frame)));
  }

  async #enterOne(key: string, entry: Entry): Promise<Hold> {
    const { call, frame } = entry;
    const ticket = call.ticket === undefined ? undefined : readTicket(call.ticket, key);
    const inherited = call.reentry === 'context' ? this.#inherited(frame, key) : undefined;
    if (inherited && (!ticket || ticket.owner === inherited.owner)) {
      await this.#reenter(inherited, key, entry);
      return inherited;
    }
    if (this.#closing) {
      throw this.#notAcquired(entry, key, 'shutdown');
    }
    if (ticket) {
      const hold = new Hold(this.#holds, key, ticket.owner, this.#by(entry), call.ttlMs, ticket.fence);
      await this.#obtain(hold, entry);
      return hold;
    }
    const line = this.#queue.lineOf(key);
    if (line) {
      await this.#queueUp(line, key, entry);
    } else {
      this.#queue.open(key);
    }
    const hold = new Hold(this.#holds, key, (entry.owner ??= randomUUID()), this.#by(entry), call.ttlMs);
    try {
      await this.#obtain(hold, entry);
    } catch (error) {
      this.#queue.pass(key);
      throw error;
    }
    return hold;
  }

  /** The hold on the key of the nearest enclosing call of these locks; throws where that call's lock has ended. */
  #inherited(frame: LockFrame, key: string): Hold | undefined {
    for (let at = liveParent(frame); at; at = liveParent(at)) {
      const hold = at.holdOf(key);
      if (hold?.keeper === this.#holds) {
        const loss = at.loss();
        if (loss) {
          throw loss;
        }
        return hold;
      }
    }
    return undefined;
  }

  async #reenter(hold: Hold, key: string, entry: Entry): Promise<void> {
    const { call, frame } = entry;
    if (!hold.admits(frame)) {
      this.#refuseCycle(hold, key, entry);
      const outcome = await this.#wait(key, entry, entry.giveUpAt, {
        began: (waiter) => {
          hold.addEntering(waiter, frame);
          this.#waitingFrames.set(frame, hold);
        },
        ended: (waiter) => {
          hold.removeEntering(waiter);
          this.#waitingFrames.delete(frame);
        },
      });
      if (outcome !== 'admitted') {
        throw this.#notAcquired(entry, key, this.#whyNot(outcome), hold);
      }
    } else {
      hold.enter(frame);
    }
    // A nested call asks for more with the next renewal, and never for less.
    hold.ttlMs = Math.max(hold.ttlMs, call.ttlMs);
  }

  async #queueUp(line: Line, key: string, entry: Entry): Promise<void> {
    const { frame } = entry;
    const holder = line.hold;
    if (holder && frame.parent) {
      this.#refuseCycle(holder, key, entry);
    }
    const outcome = await this.#wait(key, entry, entry.giveUpAt, {
      began: (waiter) => {
        line.waiting.add(waiter);
        if (holder && frame.parent) {
          this.#waitingFrames.set(frame, holder);
        }
      },
      ended: (waiter) => {
        line.waiting.delete(waiter);
        this.#waitingFrames.delete(frame);
      },
    });
    if (outcome !== 'admitted') {
      throw this.#notAcquired(entry, key, this.#whyNot(outcome), line.hold);
    }
  }

  /** Sends attempts until one is granted or the caller gives up. */
  async #obtain(hold: Hold, entry: Entry): Promise<void> {
    const { call } = entry;
    // Sticky: a busy reply does not tell that an earlier attempt is not still on its way.
    let unknown = false;
    try {
      for (;;) {
        const result = await attempt(this.store, hold, () => this.#clock.monotonic());
        if (result.outcome === 'failed') {
          unknown ||= result.error.unknown;
          this.#reporter.storeUnavailable(hold, result.error);
        }
        const gaveUp = call.signal?.aborted || this.#closing;
        if (result.outcome === 'granted' && !gaveUp) {
          unknown = false;
          this.#granted(hold, entry, result.sentAt);
          return;
        }
        if (result.outcome === 'granted' || result.outcome === 'late') {
          this.#holds.abandon(hold);
          renewIdentity(hold);
          unknown = false;
        }
        const busy = result.outcome === 'busy' ? result.busy : undefined;
        const outcome = gaveUp ? 'aborted' : await this.#pause(hold.key, entry, busy);
        if (outcome === 'timedOut' && result.outcome === 'failed') {
          throw result.error;
        }
        if (outcome !== 'admitted') {
          throw this.#notAcquired(entry, hold.key, this.#whyNot(outcome), busy);
        }
      }
    } finally {
      if (unknown) {
        this.#holds.abandon(hold);
      }
    }
  }

  #granted(hold: Hold, entry: Entry, sentAt: number): void {
    this.#holds.start(hold, sentAt, entry.call);
    hold.enter(entry.frame);
    const line = hold.joined ? undefined : this.#queue.lineOf(hold.key);
    if (line) {
      line.hold = hold;
    }
    this.#reporter.acquired(hold, this.#waitedMs(entry));
  }

  /** Waits before the next poll, never past the end of the lease last seen; `timedOut` where the caller's time is up. */
  async #pause(key: string, entry: Entry, busy: Busy | undefined): Promise<WaitOutcome> {
    const now = this.#clock.monotonic();
    if (now >= entry.giveUpAt) {
      return 'timedOut';
    }
    const pollMs = POLL_MS.least + Math.random() * (POLL_MS.most - POLL_MS.least);
    const nextAt = now + Math.min(pollMs, busy ? busy.remainingMs + 1 : pollMs);
    const outcome = await this.#wait(key, entry, Math.min(nextAt, entry.giveUpAt));
    return outcome === 'timedOut' ? 'admitted' : outcome;
  }

  async #wait(
    key: string,
    entry: Entry,
    until: number,
    line?: { began(waiter: Waiter): void; ended(waiter: Waiter): void },
  ): Promise<WaitOutcome> {
    const limitMs = until - this.#clock.monotonic();
    if (limitMs <= 0) {
      return 'timedOut';
    }
    if (line && this.waitingFor(key) >= this.#maxWaiters) {
      throw this.#notAcquired(entry, key, 'tooManyWaiters');
    }
    entry.waitedFor = key;
    const waiter = new Waiter(limitMs, entry.call.signal, (ended) => {
      this.#waiters.delete(ended);
      line?.ended(ended);
    });
    this.#waiters.add(waiter);
    line?.began(waiter);
    return waiter.outcome;
  }

  #refuseCycle(hold: Hold, key: string, entry: Entry): void {
    const cycle = findCycle(entry.frame, hold, this.#waitingFrames);
    if (cycle) {
      throw this.#notAcquired(entry, key, 'cycle', hold, [key, ...cycle.slice(1), key]);
    }
  }

  /** Rejects as soon as the signal aborts; an attempt in flight goes on, and what it brings is given back. */
  #orAbort(entering: Promise<LockFrame>, entry: Entry, signal: AbortSignal): Promise<LockFrame> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        reject(this.#notAcquired(entry, entry.frame.keys[0] as string, 'aborted'));
      };
      signal.addEventListener('abort', abort, { once: true });
      entering.then(
        (frame) => {
          signal.removeEventListener('abort', abort);
          if (signal.aborted) {
            void frame.leave();
          }
          resolve(frame);
        },
        (error: unknown) => {
          signal.removeEventListener('abort', abort);
          reject(error);
        },
      );
    });
  }

  #whyNot(outcome: WaitOutcome): NotAcquiredReason {
    if (this.#closing || outcome === 'closed') {
      return 'shutdown';
    }
    return outcome === 'aborted' ? 'aborted' : 'busy';
  }

  #notAcquired(
    entry: Entry,
    key: string,
    reason: NotAcquiredReason,
    holder?: Hold | Busy,
    cycle?: readonly string[],
  ): LockNotAcquiredError {
    const { call, frame } = entry;
    const cause: unknown = reason === 'aborted' ? call.signal?.reason : undefined;
    return notAcquired({ key, reason, frame, waitMs: call.waitMs, waitedMs: this.#waitedMs(entry), holder, cycle, cause });
  }

  #by(entry: Entry): string {
    return entry.call.by === '' ? this.#process : `${this.#process} ${entry.call.by}`;
  }

  #waitedMs(entry: Entry): number {
    return this.#clock.monotonic() - entry.startedAt;
  }
}
