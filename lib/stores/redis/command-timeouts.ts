import { AsyncResource } from 'node:async_hooks';
import { LONGEST_COMMAND_MS } from '../../core/seam/lease-time.js';
import type { Asker } from '../kit/batches.js';

/** The error of a command that got no reply in time; whether it was carried out is unknown. */
export class CommandTimeout extends Error {
  constructor(limitMs: number) {
    super(`no reply within ${Math.round(limitMs)} ms`);
  }
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

/** A command that is on its way: it is answered, fails, or is rejected with `CommandTimeout` at the end of its limit. */
export class OpenCommand implements Asker {
  readonly sentAt = performance.now();
  /** When its caller gives up. */
  readonly endsAt: number;
  readonly #timeouts: CommandTimeouts;
  readonly #limitMs: number;
  readonly #resolve: (reply: unknown) => void;
  readonly #reject: (error: unknown) => void;

  /** The limit counts from `since`: at a repetition, from when the command was sent first. */
  constructor(
    timeouts: CommandTimeouts,
    limitMs: number,
    since: number | undefined,
    resolve: (reply: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.#timeouts = timeouts;
    this.#limitMs = limitMs;
    this.endsAt = (since ?? this.sentAt) + limitMs;
    this.#resolve = resolve;
    this.#reject = reject;
    timeouts.add(this);
  }

  answered(reply: unknown): void {
    this.#timeouts.answered(this);
    this.#resolve(reply);
  }

  failed(error: unknown): void {
    // Only an error reply is an answer; a connection that broke gave none.
    if (error instanceof Error && error.name === 'ReplyError') {
      this.#timeouts.answered(this);
    } else {
      this.#timeouts.broke(this);
    }
    this.#reject(error);
  }

  /** Passes on how a promise of its reply settles. */
  follow(reply: Promise<unknown>): void {
    reply.then(
      (answer) => this.answered(answer),
      (error: unknown) => this.failed(error),
    );
  }

  timeOut(): void {
    this.#reject(new CommandTimeout(this.#limitMs));
  }

  stop(): void {
    this.#reject(new Error('the store was closed'));
  }
}

/** Bounds the time of commands, with one timer for all of them, and reports when nothing is answered at all. */
export class CommandTimeouts {
  readonly #pending = new Set<OpenCommand>();
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

  /** Rejects with `CommandTimeout` where there is no answer within `limitMs`. */
  bound<T>(command: Promise<T>, limitMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      new OpenCommand(this, limitMs, undefined, resolve as (reply: unknown) => void, reject).follow(command);
    });
  }

  add(command: OpenCommand): void {
    this.#pending.add(command);
    this.#arm(command.sentAt);
  }

  /** A late reply counts too: the connection is slow, and not dead. */
  answered(command: OpenCommand): void {
    this.#pending.delete(command);
    this.#lastReplyAt = performance.now();
    const replyMs = Math.min(this.#lastReplyAt - command.sentAt, SLOWEST_MS.most);
    this.#slowestMs = Math.max(replyMs, this.#slowestMs * 0.9, SLOWEST_MS.least);
    this.#silentSince = undefined;
  }

  /** The connection broke. */
  broke(command: OpenCommand): void {
    this.#pending.delete(command);
    // The silence was that of a connection which has ended.
    this.#silentSince = undefined;
  }

  /** Rejects the open commands: the connection is closed, and no reply comes any more. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#silentSince = undefined;
    for (const command of this.#pending) {
      command.stop();
    }
    this.#pending.clear();
  }

  #arm(now: number): void {
    if (this.#timer === undefined) {
      this.#sweepsAt = now + SWEEP_MS;
      this.#timer = setTimeout(this.#sweep, SWEEP_MS).unref();
    }
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
      if (now >= pending.endsAt) {
        this.#pending.delete(pending);
        pending.timeOut();
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
