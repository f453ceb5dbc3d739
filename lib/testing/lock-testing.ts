import { checkOptions, wrongOption } from '../core/words/check-options.js';
import { parseCall, type LockMode } from '../core/words/call-options.js';
import { parseDuration, type Duration } from '../core/words/duration.js';
import { LockConfigurationError, type LostReason } from '../core/words/errors.js';
import { checkLiteralKey } from '../core/words/lock-key.js';
import type { LockStore } from '../core/seam/lock-store.js';
import { shown } from '../core/words/shown.js';
import type { LockTelemetry } from '../core/words/lock-telemetry.js';
import type { LockTestController } from '../nest/lock-module.options.js';
import { TakenLocks, type TakenLock } from './taken-locks.js';
import { TestStore, type AwayAs } from './test-store.js';

/** Options of `LockTesting`. */
export interface LockTestingOptions {
  /**
   * Whether leases end by time, and are renewed by timers meanwhile, as in a remote store. Default: `false`, without
   * timers while nothing is contended.
   */
  expires?: boolean | undefined;
}

/** Which store is meant. */
export interface OfStore {
  /**
   * The name under which the store is registered. Default: `'default'` for one lock, and all stores for a fault of the
   * store.
   */
  store?: string | undefined;
}

/** Options of `storeAway`. */
export interface StoreAwayOptions {
  /** The name under which the store is registered. Default: all stores. */
  store?: string | undefined;
  /**
   * `'failing'`: commands are not done, and fail at once, as where connections are refused. `'silent'`: they are not
   * done, and fail after the time that they have, a second at most, as where the network drops them. Default:
   * `'failing'`.
   */
  as?: AwayAs | undefined;
}

/** Options of `holdElsewhere`. */
export interface HoldElsewhereOptions extends OfStore {
  /**
   * After this long the lock ends by itself, as the lock of a process that crashed does. Default: not before it is
   * released.
   */
  ttl?: Duration | undefined;
  /** `'read'`: it reads, beside other readers. Default: `'write'`. */
  mode?: LockMode | undefined;
  /**
   * It has a permit of a semaphore, which as far as it knows has so many. The smallest count rules: with `permits: 1`
   * all are taken.
   */
  permits?: number | undefined;
}

/** A lock that another process has, as far as the code under test can see. */
export interface LockElsewhere extends AsyncDisposable {
  /** Releases the lock: the next waiter has it then. A second call does nothing. */
  release(): Promise<void>;
}

/** The reason of a loss that a test can make. A loss as `'released'` is made by the code itself alone. */
export type LossToTest = Exclude<LostReason, 'released'>;

const LOSSES: readonly unknown[] = ['expired', 'forced', 'maxHold', 'shutdown'] satisfies LossToTest[];

/**
 * The locks of a test in the hands of the test: faults to make, and the locks that were taken. Give it to
 * `LockModule.forTesting({ controller })`, one for each application; `app.get(LockTesting)` then finds it.
 *
 * Its timers are the global ones, so fake timers replace them.
 */
export class LockTesting implements LockTestController {
  readonly #expires: boolean;
  readonly #taken = new TakenLocks();
  readonly #stores = new Map<string, TestStore>();

  /** Throws `LockConfigurationError` for options that are unknown. */
  constructor(options: LockTestingOptions = {}) {
    checkOptions('LockTesting', options, { expires: true });
    this.#expires = options.expires ?? false;
  }

  /** Makes the stores for `LockModule.forTesting()`. Throws `LockConfigurationError` where it is called twice. */
  storesFor(names: readonly string[]): Readonly<Record<string, LockStore>> {
    if (this.#stores.size > 0) {
      throw new LockConfigurationError(
        'LockTesting: this controller is in use by another LockModule.forTesting(). Make a new one for each application.',
      );
    }
    for (const name of names) {
      this.#stores.set(name, new TestStore({ expires: this.#expires }));
    }
    return Object.fromEntries(this.#stores);
  }

  /** Writes down the locks that are taken. */
  get telemetry(): LockTelemetry {
    return this.#taken;
  }

  /**
   * Another process has the lock, or a permit, from here on. Rejects with a `LockNotAcquiredError` where the lock is
   * taken, and with a `LockConfigurationError` for a store that is unknown.
   */
  async holdElsewhere(key: string, options: HoldElsewhereOptions = {}): Promise<LockElsewhere> {
    const site = 'LockTesting.holdElsewhere';
    checkOptions(site, options, { store: true, ttl: true, mode: true, permits: true });
    if (options.mode !== undefined && options.permits !== undefined) {
      throw new LockConfigurationError(`${site}("${key}"): a permit has no mode. Leave mode or permits out.`, key);
    }
    const { ttl, ...how } = options;
    const { shares } = parseCall(how, { ttlMs: 0, waitMs: 0, maxHoldMs: Infinity }, site);
    const store = this.#storeOf(options.store, site);
    const ttlMs = ttl === undefined ? undefined : parseDuration(ttl, 'ttl', 1, site);
    const hold = await store.holdElsewhere(checkLiteralKey(key, site), shares, ttlMs);
    const release = (): Promise<void> => {
      clearTimeout(timer);
      return store.releaseElsewhere(hold);
    };
    const timer = ttlMs === undefined ? undefined : setTimeout(() => void release(), ttlMs).unref();
    return { release, [Symbol.asyncDispose]: release };
  }

  /**
   * The present holder of the lock loses it, for that reason: the signal of its code aborts before this returns, and
   * the lock is free. Default: `'expired'`. Rejects with a `LockConfigurationError` where nobody holds it.
   */
  async lose(key: string, reason: LossToTest = 'expired', options: OfStore = {}): Promise<void> {
    const site = 'LockTesting.lose';
    checkOptions(site, options, { store: true });
    if (!LOSSES.includes(reason)) {
      throw new LockConfigurationError(`${site}("${key}"): reason is ${shown(reason)}. Use ${LOSSES.join(', ')}.`, key);
    }
    await this.#storeOf(options.store, site).lose(checkLiteralKey(key, site), reason);
  }

  /**
   * The store cannot be reached until `storeBack()`. Locks that are held stay held; with `expires` they are lost after
   * their ttl.
   */
  storeAway(options: StoreAwayOptions = {}): void {
    const site = 'LockTesting.storeAway';
    checkOptions(site, options, { store: true, as: true });
    const { as = 'failing' } = options;
    if (as !== 'failing' && as !== 'silent') {
      throw wrongOption(`${site}: as`, as, "Use 'failing' or 'silent'.");
    }
    this.#each(options.store, site, (store) => store.goAway(as));
  }

  /** The store answers again. */
  storeBack(options: OfStore = {}): void {
    const site = 'LockTesting.storeBack';
    checkOptions(site, options, { store: true });
    this.#each(options.store, site, (store) => store.comeBack());
  }

  /**
   * The store grants at once, and its answer takes `ms` to arrive, until `delayGrants(0)` is called. A command may take
   * a quarter of the ttl, 1 s at most. Where `ms` is longer, the call fails with a `LockStoreError` when its `wait` is
   * over, and the grant is released. A call that takes over the lease of the call before asks no store.
   */
  delayGrants(ms: Duration, options: OfStore = {}): void {
    const site = 'LockTesting.delayGrants';
    checkOptions(site, options, { store: true });
    const delayMs = parseDuration(ms, 'ms', 0, site);
    this.#each(options.store, site, (store) => store.delayGrants(delayMs));
  }

  /**
   * The locks that the code under test has taken so far, in that order, with the order in which they were released. A
   * copy.
   */
  locksTaken(): readonly TakenLock[] {
    return this.#taken.list;
  }

  /** Forgets the locks that were taken so far, such as those of the preparation of a test. */
  forgetTaken(): void {
    this.#taken.clear();
  }

  /** Does something to the store of that name, and to all where none is named. */
  #each(name: string | undefined, site: string, change: (store: TestStore) => void): void {
    const stores = name === undefined && this.#stores.size > 0 ? [...this.#stores.values()] : [this.#storeOf(name, site)];
    stores.forEach(change);
  }

  #storeOf(name = 'default', site: string): TestStore {
    const store = this.#stores.get(name);
    if (!store) {
      throw new LockConfigurationError(
        this.#stores.size === 0
          ? `${site}: this controller is in no application. Import LockModule.forTesting({ controller }) with it.`
          : `${site}: there is no store '${name}'. The stores are: ${[...this.#stores.keys()].join(', ')}. Add it to storeNames of forTesting().`,
      );
    }
    return store;
  }
}
