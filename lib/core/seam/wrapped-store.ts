import type { StoreHealth } from '../words/lock-health.js';
import type { StoreOperation } from '../words/lock-telemetry.js';
import { leastLimitOf } from './time.js';
import type { AcquireReply, HoldRecord, LockStore, Messages, Operator, Place, Tickets, Turns } from './lock-store.js';

/**
 * Wraps one call to a store: gets the store's promise, and returns the promise that core gets in its place. The call
 * may take `limitMs`, or a second where `limitMs` is undefined. `operation` is undefined for commands of operators, for
 * messages, for health checks, and for the reply of an exchange that comes later than its release.
 */
export type AroundCall = <T>(answer: Promise<T>, operation: StoreOperation | undefined, key: string, limitMs?: number) => Promise<T>;

/**
 * A store whose commands, all but `search`, go through a function. The owner of the inner store opens and closes it.
 */
export class WrappedStore implements LockStore {
  readonly turns: Turns | undefined;
  readonly tickets: Tickets | undefined;
  readonly operator: Operator | undefined;
  readonly messages: Messages | undefined;
  readonly health?: () => Promise<StoreHealth>;
  readonly #store: LockStore;
  readonly #around: AroundCall;

  constructor(store: LockStore, around: AroundCall) {
    const { turns, tickets, operator, messages } = store;
    this.#store = store;
    this.#around = around;
    this.turns = turns && {
      onTurn: (...listener) => turns.onTurn(...listener),
      exchange: (...exchanged) => this.#exchange(turns, ...exchanged),
      leave: (key, place) => around(turns.leave(key, place), 'leave', key),
    };
    this.tickets = tickets && { join: (hold) => around(tickets.join(hold), 'join', hold.key, hold.limitMs) };
    this.operator = operator && {
      inspect: (key) => around(operator.inspect(key), undefined, key),
      forceRelease: (key, fence) => around(operator.forceRelease(key, fence), undefined, key),
      ...(operator.search && { search: (prefix) => (operator.search as NonNullable<Operator['search']>)(prefix) }),
      onForced: (...listener) => operator.onForced?.(...listener),
    };
    this.messages = messages && {
      get process() {
        return messages.process;
      },
      send: (text, process) => around(messages.send(text, process), undefined, ''),
      onMessage: (...listener) => messages.onMessage(...listener),
    };
    if (store.health) {
      this.health = () => around((store as Required<LockStore>).health(), undefined, '');
    }
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

  get shared(): boolean {
    return this.#store.shared === true;
  }

  get permits(): boolean {
    return this.#store.permits === true;
  }

  get longestLeaseMs(): number | undefined {
    return this.#store.longestLeaseMs;
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.#around(this.#store.acquire(hold, place), 'acquire', hold.key, hold.limitMs);
  }

  renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    return this.#around(this.#store.renew(holds), 'renew', holds[0]?.key ?? '', leastLimitOf(holds));
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#around(this.#store.release(hold), 'release', hold.key, hold.limitMs);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** The reply to the next caller may come later than the release, and has the limit of its acquire. */
  async #exchange(turns: Turns, hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): ReturnType<Turns['exchange']> {
    const exchanged = turns.exchange(hold, next, place, mayOvertake);
    // Where the exchange was given up, nobody waits for the reply that is still to come, which may be a failure.
    exchanged.then(ignoreFailure, () => undefined);
    const { released, reply } = await this.#around(exchanged, 'exchange', hold.key, hold.limitMs);
    return { released, reply: reply instanceof Promise ? this.#around(reply, undefined, next.key, next.limitMs) : reply };
  }
}

function ignoreFailure({ reply }: { readonly reply: AcquireReply | Promise<AcquireReply> }): void {
  if (reply instanceof Promise) {
    reply.catch(() => undefined);
  }
}
