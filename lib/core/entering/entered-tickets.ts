import { CallNode, runInside } from '../calls/call-tree.js';
import { onceOnly } from '../calls/run-once.js';
import { readTickets, type TicketEntry } from '../leases/ticket.js';

/** The most characters of tickets that are read by default. It is half of 8,192, which Node takes for all headers. */
export const MOST_TICKET_CHARACTERS = 4_096;

/**
 * A call that came with tickets: locked calls made inside it enter the locks of the tickets. It holds nothing itself,
 * and has left when nothing runs inside it any more.
 */
export class EnteredTickets extends CallNode {
  readonly entries: readonly TicketEntry[];
  #running = 0;

  /** Throws `LockConfigurationError` for a text that is malformed or longer than `maxLength`. */
  constructor(text: unknown, maxLength: number) {
    super([], false, undefined);
    this.entries = readTickets(text, maxLength);
  }

  entryFor(store: string, key: string): TicketEntry | undefined {
    return this.entries.find((entry) => entry.key === key && entry.store === store);
  }

  override get hasLeft(): boolean {
    return this.#running === 0;
  }

  override get lock(): undefined {
    return undefined;
  }

  /** The locks are others' and each call that has joined one is notified itself. */
  override notify(): void {}

  /** Runs `fn` inside, and the work that its promise waits for. */
  run<T>(fn: () => T): T {
    return runInside(this, () => onceOnly(fn()) as T);
  }

  /** Something begins to run inside that does not end with a function. */
  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
  }
}
