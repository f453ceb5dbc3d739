import type { Clock } from '../seam/clock.js';
import type { LockError } from '../words/errors.js';
import type { AcquireReply, HoldRecord, LockStore, Operator, Place, Tickets, Turns } from '../seam/lock-store.js';
import type { StoreOperation } from '../words/lock-telemetry.js';
import type { Telemetry } from './telemetry.js';

/** A store whose operations are measured. It is opened and closed by those who have the store itself. */
export class TimedStore implements LockStore {
  readonly turns: Turns | undefined;
  readonly tickets: Tickets | undefined;
  readonly #store: LockStore;
  readonly #name: string;
  readonly #telemetry: Telemetry;
  readonly #clock: Clock;

  /** `name` is the one under which the store is registered. */
  constructor(store: LockStore, name: string, telemetry: Telemetry, clock: Clock) {
    const { turns, tickets } = store;
    this.#store = store;
    this.#name = name;
    this.#telemetry = telemetry;
    this.#clock = clock;
    this.turns = turns && {
      onTurn: (...listener) => turns.onTurn(...listener),
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

  get keepsLimits(): boolean {
    return this.#store.keepsLimits === true;
  }

  get longestLeaseMs(): number | undefined {
    return this.#store.longestLeaseMs;
  }

  get operator(): Operator | undefined {
    return this.#store.operator;
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
    const sentAt = this.#clock.monotonic();
    let error: LockError | undefined;
    try {
      return await answer;
    } catch (failure) {
      error = failure as LockError;
      throw failure;
    } finally {
      this.#telemetry.operation({ store: this.#name, operation, durationMs: this.#clock.monotonic() - sentAt, error });
    }
  }
}
