/** A command that got no reply in time; whether it was carried out is unknown. */
export class CommandTimeout extends Error {
  constructor(limitMs: number) {
    super(`no reply within ${limitMs} ms`);
  }
}

interface Pending {
  readonly sentAt: number;
  readonly limitMs: number;
  readonly reject: (error: CommandTimeout) => void;
}

/** How often open commands are looked at, in milliseconds: the most by which a timeout is late. */
const SWEEP_MS = 20;

/** Bounds the time of commands, with one timer for all of them. */
export class CommandTimeouts {
  readonly #pending = new Set<Pending>();
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #lastReplyAt = 0;

  /** `onSilence` is called when a command timed out and nothing else was answered since it was sent. */
  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  bound<T>(command: Promise<T>, limitMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const pending = { sentAt: performance.now(), limitMs, reject };
      this.#pending.add(pending);
      this.#timer ??= this.#arm();
      command.then(
        (reply) => {
          this.#answered(pending);
          resolve(reply);
        },
        (error: unknown) => {
          this.#answered(pending);
          reject(error);
        },
      );
    });
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): NodeJS.Timeout {
    return setTimeout(this.#sweep, SWEEP_MS).unref();
  }

  #answered(pending: Pending): void {
    this.#pending.delete(pending);
    this.#lastReplyAt = performance.now();
  }

  readonly #sweep = (): void => {
    this.#timer = undefined;
    const now = performance.now();
    let silent = false;
    for (const pending of this.#pending) {
      if (now - pending.sentAt >= pending.limitMs) {
        silent ||= this.#lastReplyAt < pending.sentAt;
        this.#pending.delete(pending);
        pending.reject(new CommandTimeout(pending.limitMs));
      }
    }
    if (silent) {
      this.#onSilence();
    }
    if (this.#pending.size > 0) {
      this.#timer = this.#arm();
    }
  };
}
