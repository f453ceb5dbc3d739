import { AsyncResource } from 'node:async_hooks';

/** How often repetitions are counted in the log, in milliseconds. */
const EVERY_MS = 60_000;
/** How many kinds are told apart at a time. */
const MOST_KINDS = 100;
const OTHERS = 'others';

/** The messages that have come since the last line of their kind. */
interface Repeated {
  count: number;
  last: string;
}

/** Lets the first message of a kind into the log, and counts those that follow it, in one line a minute. */
export class Repetitions {
  readonly #kinds = new Map<string, Repeated>();
  readonly #say: (line: string) => void;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** Whether a message is to be logged: none of its kind has come for a minute. */
  isFirst(kind: string, message: string): boolean {
    const known = this.#kinds.has(kind) || this.#kinds.size < MOST_KINDS ? kind : OTHERS;
    const repeated = this.#kinds.get(known);
    if (repeated) {
      repeated.count++;
      repeated.last = message;
      return false;
    }
    this.#kinds.set(known, { count: 0, last: message });
    this.#wait(known);
    return true;
  }

  #wait(kind: string): void {
    setTimeout(this.#tell, EVERY_MS, kind).unref();
  }

  /** Bound to no call: all lines would have the context of the first call. */
  readonly #tell = AsyncResource.bind((kind: string): void => {
    const { count, last } = this.#kinds.get(kind) as Repeated;
    if (count === 0) {
      this.#kinds.delete(kind);
      return;
    }
    this.#kinds.set(kind, { count: 0, last });
    this.#wait(kind);
    this.#say(`${count} more in the last minute${kind === OTHERS ? ', of several kinds' : ''}. The last one: ${last}`);
  });
}
