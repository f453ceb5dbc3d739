import { AsyncResource } from 'node:async_hooks';
import { LONGEST_COMMAND_MS } from '../../core/seam/time.js';
import type { Asker } from '../../kit/batches.js';
import { NoReply } from '../../kit/no-reply.js';

/** How often open commands are checked, in milliseconds: a timeout is late by at most that. */
const SWEEP_MS = 20;
/**
 * A connection counts as half open when nothing was answered for this many times its slowest reply: after 1 to 2 s.
 * Never sooner than the longest time limit of a command, since a command with a short limit must not take along others
 * that have time left. Never later, since a reply that came after the process or the server was stopped does not tell
 * how slow the connection is.
 */
const PATIENCE = 4;
/** The least and the most that counts as its slowest reply, in milliseconds. */
const SLOWEST_MS = { least: LONGEST_COMMAND_MS / PATIENCE, most: 500 } as const;

/** A command that is on its way: it is answered, fails, or is rejected with `NoReply` at the end of its limit. */
export class OpenCommand implements Asker {
  /** The place of the command in the list of open commands, which `CommandTimeouts` alone changes. */
  isOpen = true;
  before: OpenCommand | undefined;
  after: OpenCommand | undefined;
  readonly sentAt = performance.now();
  /** When its caller gives up. */
  readonly endsAt: number;
  readonly #timeouts: CommandTimeouts;
  readonly #limitMs: number;
  readonly #resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;

  constructor(timeouts: CommandTimeouts, limitMs: number, resolve: (reply: unknown) => void, reject: (error: unknown) => void) {
    this.#timeouts = timeouts;
    this.#limitMs = limitMs;
    this.endsAt = this.sentAt + limitMs;
    this.#resolve = resolve;
    this.reject = reject;
    timeouts.add(this);
  }

  /** A reply that comes after the limit is not read: reading may ask replicas, and nobody waits for their answer. */
  answered(reply: unknown): void {
    const { isOpen } = this;
    this.#timeouts.answered(this);
    if (isOpen) {
      this.#resolve(reply);
    }
  }

  failed(error: unknown): void {
    // Only an error reply is an answer; a connection that broke gave none.
    if (error instanceof Error && error.name === 'ReplyError') {
      this.#timeouts.answered(this);
    } else {
      this.#timeouts.broke(this);
    }
    this.reject(error);
  }

  /** The error of one whose caller has given up, or does so now. */
  get outOfTime(): NoReply {
    return new NoReply(this.#limitMs);
  }
}

/** Bounds the time of commands, with one timer for all of them, and reports when nothing is answered at all. */
export class CommandTimeouts {
  /**
   * The open commands are a list, from the first to the last. A `Set` that grows and shrinks leaves a chain of former
   * tables behind: once the first of them is old, the garbage collector keeps all commands that were in any of them.
   */
  #first: OpenCommand | undefined;
  #last: OpenCommand | undefined;
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #sweepsAt = 0;
  #lastReplyAt = 0;
  /** The time of the slowest recent reply; a slow link is not a dead one. */
  #slowestMs: number = SLOWEST_MS.least;
  /** When the first command was sent that timed out, where nothing was answered since. */
  #silentSince: number | undefined;

  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  get busy(): boolean {
    return this.#first !== undefined;
  }

  /** Rejects with `NoReply` where there is no answer within `limitMs`. */
  bound<T>(command: Promise<T>, limitMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const open = new OpenCommand(this, limitMs, resolve as (reply: unknown) => void, reject);
      command.then(
        (reply) => open.answered(reply),
        (error: unknown) => open.failed(error),
      );
    });
  }

  add(command: OpenCommand): void {
    command.before = this.#last;
    if (this.#last) {
      this.#last.after = command;
    } else {
      this.#first = command;
    }
    this.#last = command;
    this.#arm(command.sentAt);
  }

  /** A late reply counts too: the connection is slow, and not dead. */
  answered(command: OpenCommand): void {
    this.#remove(command);
    this.#lastReplyAt = performance.now();
    const replyMs = Math.min(this.#lastReplyAt - command.sentAt, SLOWEST_MS.most);
    this.#slowestMs = Math.max(replyMs, this.#slowestMs * 0.9, SLOWEST_MS.least);
    this.#silentSince = undefined;
  }

  broke(command: OpenCommand): void {
    this.#remove(command);
    // The silence belonged to a connection which has ended.
    this.#silentSince = undefined;
  }

  /** Resolves all that is open, in its order. */
  answerAll(): void {
    while (this.#first) {
      this.#first.answered(undefined);
    }
  }

  /** Rejects the open commands: the connection is closed, and no reply comes any more. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#silentSince = undefined;
    while (this.#first) {
      this.#first.reject(new Error('the store was closed'));
      this.#remove(this.#first);
    }
  }

  #remove(command: OpenCommand): void {
    if (command.isOpen) {
      const { before, after } = command;
      if (before) {
        before.after = after;
      } else {
        this.#first = after;
      }
      if (after) {
        after.before = before;
      } else {
        this.#last = before;
      }
      // A command that is done must not keep the commands that came after it.
      command.isOpen = false;
      command.before = command.after = undefined;
    }
  }

  #arm(now: number): void {
    if (this.#timer === undefined) {
      this.#sweepsAt = now + SWEEP_MS;
      this.#timer = setTimeout(this.#sweep, SWEEP_MS).unref();
    }
  }

  readonly #sweep = AsyncResource.bind((): void => {
    this.#timer = undefined;
    if (performance.now() - this.#sweepsAt > SWEEP_MS) {
      // The event loop was blocked: replies may have arrived unread, and are read before an immediate runs.
      setImmediate(this.#judge);
    } else {
      this.#judge();
    }
  });

  readonly #judge = (): void => {
    const now = performance.now();
    let next: OpenCommand | undefined;
    for (let pending = this.#first; pending; pending = next) {
      next = pending.after;
      if (now >= pending.endsAt) {
        this.#remove(pending);
        pending.reject(pending.outOfTime);
        if (this.#lastReplyAt < pending.sentAt) {
          this.#silentSince ??= pending.sentAt;
        }
      }
    }
    if (this.#silentSince !== undefined && now - this.#silentSince >= PATIENCE * this.#slowestMs) {
      this.#silentSince = undefined;
      this.#onSilence();
    }
    if (this.busy) {
      this.#arm(now);
    }
  };
}
