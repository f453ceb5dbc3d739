import type { LockError } from './errors.js';
import type { AcquireReply, HoldRecord, LockStore, OpenOptions, Operator, Place, Tickets, Turns } from './lock-store.js';
import type { StoreOperation, Telemetry } from './telemetry.js';

/** A store whose operations are measured. */
export class TimedStore implements LockStore {
  readonly turns: Turns | undefined;
  readonly tickets: Tickets | undefined;
  readonly #store: LockStore;
  readonly #name: string;
  readonly #telemetry: Telemetry;

  /** `name` is the one under which the store is registered. */
  constructor(store: LockStore, name: string, telemetry: Telemetry) {
    const { turns, tickets } = store;
    this.#store = store;
    this.#name = name;
    this.#telemetry = telemetry;
    this.turns = turns && {
      onTurn: (listener) => turns.onTurn(listener),
      exchange: (...exchanged) => this.#timed('exchange', turns.exchange(...exchanged)),
      leave: (key, place) => this.#timed('leave', turns.leave(key, place)),
    };
    this.tickets = tickets && { join: (hold) => this.#timed('join', tickets.join(hold)) };
  }

  get expires(): boolean {
    return this.#store.expires;
  }

  get reservesFences(): boolean {
    return this.#store.reservesFences === true;
  }

  get longestLeaseMs(): number | undefined {
    return this.#store.longestLeaseMs;
  }

  get operator(): Operator | undefined {
    return this.#store.operator;
  }

  async open(options: OpenOptions): Promise<void> {
    await this.#store.open?.(options);
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.#timed('acquire', this.#store.acquire(hold, place));
  }

  renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    return this.#timed('renew', this.#store.renew(holds));
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#timed('release', this.#store.release(hold));
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #timed<T>(operation: StoreOperation, answer: Promise<T>): Promise<T> {
    const sentAt = performance.now();
    let error: LockError | undefined;
    try {
      return await answer;
    } catch (failure) {
      error = failure as LockError;
      throw failure;
    } finally {
      this.#telemetry.operation({ store: this.#name, operation, durationMs: performance.now() - sentAt, error });
    }
  }
}
