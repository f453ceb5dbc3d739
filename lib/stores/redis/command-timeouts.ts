import { AsyncResource } from 'node:async_hooks';
import { LONGEST_COMMAND_MS } from '../../core/lease-time.js';

/** The error of a command that got no reply in time; whether it was carried out is unknown. */
export class CommandTimeout extends Error {
  constructor(limitMs: number) {
    super(`no reply within ${Math.round(limitMs)} ms`);
  }
}

interface Pending {
  readonly sentAt: number;
  readonly limitMs: number;
  /** When the limit began to count: at a repetition, when the command was sent first. */
  readonly since: number;
  readonly reject: (error: Error) => void;
}

/** How often open commands are checked, in milliseconds: a timeout is late by at most that. */
const SWEEP_MS = 20;
/**
 * A connection counts as half open when nothing was answered for this many times its slowest reply, in milliseconds: 1 to 2 s. That is
 * never less than the longest time limit of a command. One with a short limit only tells sooner that nothing was answered, and must not
 * take others along that have time left. Nor is it more for replies that came after the process or the server was stopped: they do not
 * tell how slow the connection is.
 */
const PATIENCE = 4;
const SLOWEST_MS = { least: LONGEST_COMMAND_MS / PATIENCE, most: 500 } as const;

/** Bounds the time of commands, with one timer for all of them, and reports when nothing is answered at all. */
export class CommandTimeouts {
  readonly #pending = new Set<Pending>();
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #sweepsAt = 0;
  #wasLate = false;
  #lastReplyAt = 0;
  /** The time of the slowest recent reply; a slow link is not a dead one. */
  #slowestMs: number = SLOWEST_MS.least;
  /** When the first command was sent that timed out, where nothing was answered since. */
  #silentSince: number | undefined;

  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  /** Whether commands are on their way. */
  get busy(): boolean {
    return this.#pending.size > 0;
  }

  /** Rejects with `CommandTimeout` where there is no answer within `limitMs`, counted from `since`. */
  bound<T>(command: Promise<T>, limitMs: number, since = performance.now()): Promise<T> {
    return new Promise((resolve, reject) => {
      const pending = { sentAt: performance.now(), limitMs, since, reject };
      this.#pending.add(pending);
      this.#arm(pending.sentAt);
      command.then(
        (reply) => {
          this.#answered(pending);
          resolve(reply);
        },
        (error: unknown) => {
          // Only an error reply is an answer; a connection that broke gave none.
          if (error instanceof Error && error.name === 'ReplyError') {
            this.#answered(pending);
          } else {
            this.#pending.delete(pending);
            // The silence was that of a connection which has ended.
            this.#silentSince = undefined;
          }
          reject(error);
        },
      );
    });
  }

  /** Rejects the open commands: the connection is closed, and no reply comes any more. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#silentSince = undefined;
    for (const { reject } of this.#pending) {
      reject(new Error('the store was closed'));
    }
    this.#pending.clear();
  }

  #arm(now: number): void {
    if (this.#timer === undefined) {
      this.#sweepsAt = now + SWEEP_MS;
      this.#timer = setTimeout(this.#sweep, SWEEP_MS).unref();
    }
  }

  /** A late reply counts too: the connection is slow, and not dead. */
  #answered(pending: Pending): void {
    this.#pending.delete(pending);
    this.#lastReplyAt = performance.now();
    const replyMs = Math.min(this.#lastReplyAt - pending.sentAt, SLOWEST_MS.most);
    this.#slowestMs = Math.max(replyMs, this.#slowestMs * 0.9, SLOWEST_MS.least);
    this.#silentSince = undefined;
  }

  readonly #sweep = AsyncResource.bind((): void => {
    this.#timer = undefined;
    // The event loop was blocked: replies may have arrived unread, and are read before the next sweep.
    const late = performance.now() - this.#sweepsAt > SWEEP_MS;
    if (late && !this.#wasLate) {
      this.#wasLate = true;
      this.#arm(performance.now());
    } else {
      this.#wasLate = false;
      this.#judge();
    }
  });

  #judge(): void {
    const now = performance.now();
    for (const pending of this.#pending) {
      if (now - pending.since >= pending.limitMs) {
        this.#pending.delete(pending);
        pending.reject(new CommandTimeout(pending.limitMs));
        if (this.#lastReplyAt < pending.sentAt) {
          this.#silentSince ??= pending.sentAt;
        }
      }
    }
    if (this.#silentSince !== undefined && now - this.#silentSince >= PATIENCE * this.#slowestMs) {
      this.#silentSince = undefined;
      this.#onSilence();
    }
    if (this.#pending.size > 0) {
      this.#arm(now);
    }
  }
}
