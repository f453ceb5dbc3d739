import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Busy, HoldRecord, LockStore, Messages, Operator, Place, Shares, Tickets, Turns } from '../core/seam/lock-store.js';
import type { StoreContractOptions } from './store-contract.options.js';

/** A store with everything that it may offer. Rules use the offers that they need. */
export type OfferedStore = LockStore & {
  readonly turns: Turns;
  readonly tickets: Tickets;
  readonly operator: Required<Operator>;
  readonly messages: Messages;
  readonly health: NonNullable<LockStore['health']>;
};

/** One run of a rule's check: two stores on the same locks, as in two processes, and a key that nobody else uses. */
export class Trial {
  readonly options: StoreContractOptions;
  readonly key = `key ${randomUUID()}`;
  /** The stores of this run, each with the turns that it was notified of since it was opened last. */
  readonly #turns = new Map<LockStore, string[]>();
  #store: LockStore | undefined;
  #other: LockStore | undefined;

  constructor(options: StoreContractOptions) {
    this.options = options;
  }

  /** The store of this process. */
  get store(): OfferedStore {
    return this.#store as OfferedStore;
  }

  /** The store of another process on the same locks. */
  get other(): OfferedStore {
    return this.#other as OfferedStore;
  }

  async open(): Promise<void> {
    this.#store = await this.connect();
    this.#other = await this.connect();
  }

  /**
   * Makes a further store, with a prefix of its own if one is given. `prepare` is called before the store is opened.
   */
  async connect(prefix?: string, prepare?: (store: OfferedStore) => void): Promise<OfferedStore> {
    const store = (await this.options.connect()) as OfferedStore;
    prepare?.(store);
    // `connect` may give one and the same store each time, which is opened once.
    if (!this.#turns.has(store)) {
      this.#listen(store);
      await this.#open(store, prefix);
    }
    return store;
  }

  async #open(store: LockStore, prefix = 'contract'): Promise<void> {
    await store.open?.({ prefix, warn: (message) => this.options.warn?.(message) });
  }

  /** Closes a store, and opens it again; makes another store in its place where stores have no `open`. */
  async reopen(store: OfferedStore): Promise<OfferedStore> {
    await store.close();
    if (!store.open) {
      this.#turns.delete(store);
      return this.connect();
    }
    this.#listen(store);
    await this.#open(store);
    return store;
  }

  /** Closes every store. */
  async close(): Promise<void> {
    await Promise.all([...this.#turns.keys()].map((store) => store.close()));
  }

  /** A time of the tests, in milliseconds, as the suite's options stretch it. */
  ms(ms: number): number {
    return ms * (this.options.timeScale ?? 1);
  }

  /** A lease of the tests, in milliseconds: no longer than the store grants. Core never asks for more. */
  ttl(ms: number): number {
    return Math.min(this.ms(ms), this.store.longestLeaseMs ?? Infinity);
  }

  /** Waits for a time of the tests. */
  async pass(ms: number): Promise<void> {
    await sleep(this.ms(ms));
  }

  /** A new hold of a new owner. */
  hold(changes: Partial<HoldRecord> = {}): HoldRecord {
    return Object.freeze({
      key: this.key,
      owner: newOwner(),
      id: randomUUID(),
      fence: 0,
      fences: 1,
      ttlMs: this.ttl(5_000),
      limitMs: 3_000,
      lingering: false,
      unanswered: false,
      by: 'tester',
      ...changes,
    });
  }

  /**
   * Acquires a lock that has to be free, in this process unless another store is given. The record has the fence of the
   * grant.
   */
  async acquired(changes: Partial<HoldRecord> = {}, store: LockStore = this.store, place?: Place): Promise<HoldRecord> {
    return this.granted(this.hold(changes), store, place);
  }

  /** Acquires for a hold that has to be granted. */
  async granted(hold: HoldRecord, store: LockStore = this.store, place?: Place): Promise<HoldRecord> {
    const { fence } = await store.acquire(changed(hold, { fence: 0 }), place);
    assert.ok(fence !== undefined, 'the acquire was answered with busy: a grant was expected');
    return changed(hold, { fence });
  }

  /** Acquires for a hold that must not be granted. */
  async refused(hold: HoldRecord = this.hold(), store: LockStore = this.store, place?: Place): Promise<Busy> {
    const reply = await store.acquire(changed(hold, { fence: 0 }), place);
    assert.ok(reply.fence === undefined, 'the acquire was granted: busy was expected');
    return reply;
  }

  /** The rest of the lease by a busy answer, to a write where nothing else is given. The lock has to be held. */
  async remainingMs(asking: Partial<HoldRecord> = {}): Promise<number> {
    return (await this.refused(this.hold(asking))).remainingMs;
  }

  /** Expects that anybody can acquire the lock, and leaves it free. */
  async expectFree(store: LockStore = this.store): Promise<void> {
    const probe = await this.acquired({}, store);
    assert.equal(await store.release(probe), true);
  }

  /** Expects that the hold is in its lock. */
  async expectHeld(hold: HoldRecord, store: LockStore = this.store): Promise<void> {
    assert.deepEqual(await store.renew(listOf(changed(hold, { ttlMs: 1 }))), [true], 'the hold is not in its lock any more');
  }

  /**
   * The names of the places of this key whose turn a store was notified of, as they come; since it was opened last.
   * Each name is in the list once, as a message may come twice: a cluster client that moves its subscription has two
   * for a moment.
   */
  turnsOf(store: OfferedStore): readonly string[] {
    return this.#turns.get(store) ?? [];
  }

  /** Listens to turns from the start, as core does: a store may pass over a process that does not listen. */
  #listen(store: LockStore): void {
    const names: string[] = [];
    this.#turns.set(store, names);
    store.turns?.onTurn({ turn: (key, name) => key === this.key && !names.includes(name) && names.push(name), recheck: () => undefined });
  }
}

/** The owner of a new acquisition. */
export function newOwner(): string {
  return randomBytes(16).toString('base64url');
}

/** A new place for the queue of a key. Its name says how its process wants the key: with whom it would share it. */
export function newPlace(shares?: Shares): Place {
  const end = shares === undefined ? '' : shares === 'read' ? 'R' : `P${shares}`;
  return Object.freeze({ name: `${randomBytes(7).toString('hex')}${end}` });
}

/** A copy of the record with other values; frozen like every record. */
export function changed(hold: HoldRecord, changes: Partial<HoldRecord>): HoldRecord {
  return Object.freeze({ ...hold, ...changes });
}

/** Another hold of the same owner in the same lock. */
export function guestOf(hold: HoldRecord, changes: Partial<HoldRecord> = {}): HoldRecord {
  return changed(hold, { id: randomUUID(), ...changes });
}

/** The list of holds for renew. */
export function listOf(...holds: readonly HoldRecord[]): readonly HoldRecord[] {
  return Object.freeze(holds);
}

/** The machine was too slow for the check. */
export class TooSlow extends Error {}

/** The error of `eventually`: the last failure of a check that had enough time. */
export class WaitedInVain extends Error {
  /** When the check began, as `performance.now()` says it. */
  readonly since: number;

  constructor(failure: unknown, since: number) {
    super('a check did not succeed in time', { cause: failure });
    this.since = since;
  }
}

/** The error of `notified`. The message of a notice may be lost: it is a hint. */
export class NotNotified extends WaitedInVain {}

/** Waits until `check`, which looks for a notice, no longer throws. */
export async function notified(check: () => void): Promise<void> {
  try {
    await eventually(check);
  } catch (error) {
    throw error instanceof WaitedInVain ? new NotNotified(error.cause, error.since) : error;
  }
}

/** Waits until `check` no longer throws, for two seconds at most: messages take a while. */
export async function eventually(check: () => void | Promise<void>, mostMs = 2_000): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() - startedAt > mostMs) {
        throw new WaitedInVain(error, startedAt);
      }
    }
    await sleep(10);
  }
}
