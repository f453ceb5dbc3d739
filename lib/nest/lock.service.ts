import type { ModulesContainer } from '@nestjs/core';
import {
  checkOnUnavailable,
  LEAST_TTL_MS,
  LOCK_OPTIONS,
  parseCall,
  type CallGiven,
  type CallOptions,
  type CallDefaults,
  type LockOptions,
  type OnUnavailable,
} from '../core/words/call-options.js';
import type { Candidate, LeadOptions } from '../leader/candidate.js';
import { checkFunction, checkOptions, type OptionNames, wrongOption } from '../core/words/check-options.js';
import { parseDuration, type Duration } from '../core/words/duration.js';
import { LockConfigurationError, LockNotAcquiredError } from '../core/words/errors.js';
import type { Lock, Permit } from '../core/words/lock.js';
import { checkLiteralKey, checkLiteralKeys, checkOneKey } from '../core/words/lock-key.js';
import type { OpenOptions } from '../core/seam/lock-store.js';
import { Locks, type LocksSettings } from '../locks.js';
import {
  PERMIT_OPTIONS,
  TRY_PERMIT_OPTIONS,
  WITH_LOCK_OPTIONS,
  WITH_PERMIT_OPTIONS,
  type PermitOptions,
  type WithLockOptions,
  type WithPermitOptions,
} from './lock-service.options.js';
import { LockOperations } from './lock.operations.js';
import { nameCounterparts } from './application/counterparts.js';
import { giveLockService } from './methods/locked-instance.js';
import { askedOf, checkAnswers, runUnlessRefused, throwsAll, type Answers, type LockBody, type OnBusy } from './refused-call.js';
import { closeStore, openStore } from './application/open-stores.js';
import { transactionProviders } from './application/open-transaction.js';

/** In one file of the package with the service, which makes it. */
export { LockOperations };

/** The options of a call of any kind. */
export type CallOf = Omit<CallGiven, 'onUnavailable'> & Answers<unknown>;

/** The parts of a `LockService`: a store, and the defaults of its application. */
export interface LockServiceSettings extends LocksSettings {
  readonly ttl: Duration;
  readonly wait: Duration;
  readonly onUnavailable?: OnUnavailable | undefined;
  readonly maxHold?: Duration | undefined;
  readonly open: OpenOptions;
  /** The modules of the application. */
  readonly modules?: ModulesContainer | undefined;
}

const DEFAULT_OPTIONS: LockOptions = {};
const { wait: _never, ...TRY_OPTIONS } = LOCK_OPTIONS;
const LEAD_OPTIONS: OptionNames<LeadOptions> = { ttl: true, pause: true, signal: true, by: true, name: true };

/**
 * Locks by hand; the decorator is made of it. Injectable wherever `LockModule` is imported. To look at locks, and to
 * release one by force, inject `LockOperations`.
 */
export class LockService {
  readonly #locks: Locks;
  readonly #settings: LockServiceSettings;
  readonly #defaults: CallDefaults;
  #transactionProviders: readonly unknown[] | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** @internal The services of all stores of the application, by name. */
  readonly siblings: ReadonlyMap<string, LockService>;

  /** @internal What operators do with the same locks. */
  readonly operations: LockOperations;

  /** @internal */
  constructor(settings: LockServiceSettings, siblings: ReadonlyMap<string, LockService>) {
    this.#defaults = {
      ttlMs: parseDuration(settings.ttl, 'ttl', LEAST_TTL_MS, 'LockModule'),
      waitMs: parseDuration(settings.wait, 'wait', 0, 'LockModule'),
      onUnavailable: checkOnUnavailable(settings.onUnavailable ?? 'wait', 'LockModule'),
      maxHoldMs: settings.maxHold === undefined ? Infinity : parseDuration(settings.maxHold, 'maxHold', 1, 'LockModule'),
    };
    this.#locks = new Locks(settings);
    this.#settings = settings;
    this.siblings = siblings;
    this.operations = new LockOperations(this.#locks, this);
  }

  /** @internal Whether this is a service of this library, and no mock of one. */
  static isGenuine(service: object): service is LockService {
    return #locks in service;
  }

  /**
   * Runs `body` alone among all callers of the key, or of any of the keys, in all processes; releases when it has
   * settled.
   *
   * Throws `LockNotAcquiredError` when busy for the whole `wait`, `LockLostError` when the lease ended before the body
   * did, `LockKeyError`, `LockStoreError` and `LockConfigurationError`. The result or error of the body passes
   * unchanged.
   */
  withLock<T>(key: string | readonly string[], body: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(
    key: string | readonly string[],
    options: WithLockOptions<T> & { onBusy: 'skip' },
    body: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T | undefined>;
  withLock<T>(
    key: string | readonly string[],
    options: (WithLockOptions<T> & { onBusy?: Exclude<OnBusy<T>, 'skip'> | undefined }) | undefined,
    body: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T>;
  withLock<T>(
    key: string | readonly string[],
    options: WithLockOptions<T> | undefined,
    body: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T | undefined>;
  withLock<T>(
    key: string | readonly string[],
    ...rest: [(lock: Lock) => T | PromiseLike<T>] | [WithLockOptions<T> | undefined, (lock: Lock) => T | PromiseLike<T>]
  ): Promise<T | undefined> {
    try {
      const [given, body] = rest.length === 1 ? [undefined, rest[0]] : rest;
      const options: WithLockOptions<T> = given ?? DEFAULT_OPTIONS;
      const site = siteOf(options, 'withLock');
      checkOptions(site, options, WITH_LOCK_OPTIONS);
      if (typeof body !== 'function') {
        throw new LockConfigurationError(`${site}: there is no function to run inside the lock. Pass it as the last argument.`);
      }
      const call = this.parse(options, site);
      return this.runCall(checkLiteralKeys(key, site), call, throwsAll(options) ? undefined : options, body);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** @internal The options of a call, checked, with the defaults of the application. */
  parse(options: CallOf, site: string): CallOptions {
    checkAnswers(options, site, 'permits' in options);
    return parseCall(askedOf(options), this.#defaults, site, options.onBusy === 'skip');
  }

  /**
   * @internal Runs `body` inside the lock on keys that are checked and sorted, each once. Throws as `Locks.run()` does,
   * where nothing is answered.
   */
  runCall<T>(keys: readonly string[], call: CallOptions, answers: Answers<T> | undefined, body: LockBody<T>): Promise<T | undefined> {
    if (!answers) {
      return this.#locks.run(keys, call, body);
    }
    return runUnlessRefused(
      answers,
      body,
      (watched) => this.#locks.run(keys, call, watched),
      (error) => body(this.#locks.without(keys[0] as string, call, error)),
    );
  }

  /**
   * Acquires a lock that the caller releases: `await using lock = await locks.acquire('balance:42')`. Code after it is
   * not inside the lock: run it with `lock.run()` if it calls locked methods. Throws as `withLock` does.
   */
  async acquire(key: string | readonly string[], options: LockOptions = DEFAULT_OPTIONS): Promise<Lock> {
    const site = siteOf(options, 'acquire');
    checkOptions(site, options, LOCK_OPTIONS);
    return this.#acquire(key, options, site) as Promise<Lock>;
  }

  /** Like `acquire`, without waiting: null where the lock is taken or others wait for it. */
  async tryAcquire(key: string | readonly string[], options: Omit<LockOptions, 'wait'> = DEFAULT_OPTIONS): Promise<Lock | null> {
    const site = siteOf(options, 'tryAcquire');
    checkOptions(site, options, TRY_OPTIONS);
    return (await this.#acquire(key, { ...options, wait: 0 }, site, true).catch(nullIfBusy)) as Lock | null;
  }

  #acquire(key: string | readonly string[], options: CallGiven, site: string, skips = false): Promise<Lock | Permit> {
    return this.#locks.acquire(checkLiteralKeys(key, site), parseCall(options, this.#defaults, site, skips));
  }

  /**
   * Runs `body` with one of `permits` permits of a semaphore, which all processes share; gives it back when the body
   * has settled. The count travels with each call: where callers name different ones, the smallest of those present
   * counts.
   *
   * Throws `LockNotAcquiredError` when all are taken for the whole `wait`, and otherwise as `withLock` does.
   */
  withPermit<T>(key: string, permits: number, body: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  withPermit<T>(
    key: string,
    permits: number,
    options: WithPermitOptions<T> & { onBusy: 'skip' },
    body: (permit: Permit) => T | PromiseLike<T>,
  ): Promise<T | undefined>;
  withPermit<T>(
    key: string,
    permits: number,
    options: (WithPermitOptions<T> & { onBusy?: Exclude<OnBusy<T>, 'skip'> | undefined }) | undefined,
    body: (permit: Permit) => T | PromiseLike<T>,
  ): Promise<T>;
  withPermit<T>(
    key: string,
    permits: number,
    ...rest: [(permit: Permit) => T | PromiseLike<T>] | [WithPermitOptions<T> | undefined, (permit: Permit) => T | PromiseLike<T>]
  ): Promise<T | undefined> {
    try {
      const [given, body] = rest.length === 1 ? [undefined, rest[0]] : rest;
      const options: WithPermitOptions<T> = given ?? DEFAULT_OPTIONS;
      const site = siteOf(options, 'withPermit');
      checkOptions(site, options, WITH_PERMIT_OPTIONS);
      checkFunction(site, body, 'Pass the function that needs the permit as the last argument.');
      const call = this.parse({ ...options, permits }, site);
      const answers = throwsAll(options) ? undefined : options;
      // The handle of such a call is a permit.
      return this.runCall(oneKey(key, site), call, answers, body as unknown as LockBody<T>);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** Takes a permit that the caller gives back: `await using permit = await locks.acquirePermit('erp:7', 50)`. */
  async acquirePermit(key: string, permits: number, options: PermitOptions = DEFAULT_OPTIONS): Promise<Permit> {
    const site = siteOf(options, 'acquirePermit');
    checkOptions(site, options, PERMIT_OPTIONS);
    return this.#acquire(oneKey(key, site), { ...options, permits }, site) as Promise<Permit>;
  }

  /** Like `acquirePermit`, without waiting: null where all are taken, or others wait for one. */
  async tryAcquirePermit(key: string, permits: number, options: Omit<PermitOptions, 'wait'> = DEFAULT_OPTIONS): Promise<Permit | null> {
    const site = siteOf(options, 'tryAcquirePermit');
    checkOptions(site, options, TRY_PERMIT_OPTIONS);
    return (await this.#acquire(oneKey(key, site), { ...options, wait: 0, permits }, site, true).catch(nullIfBusy)) as Permit | null;
  }

  /**
   * Has one process of all run `body`: the leader. The others stand by. One of them leads as soon as the leader
   * crashed, lost its lease, shut down or was stopped: within the `ttl` and about three seconds, and at once where the
   * leader could release its lock. `body` runs as long as the process leads, and has to end soon after `lock.signal`
   * aborts. When it returns by itself, the process leads no more, and stands by again after a `pause`. It does so too
   * when `body` throws, which is an event and an error of the log.
   *
   * Ends by `stop()` of the returned candidate, by the option `signal`, and at the shutdown of the application. Throws
   * `LockKeyError` and `LockConfigurationError`, and `LockNotAcquiredError` during a shutdown. A store that does not
   * answer is asked again.
   */
  lead(key: string, body: (lock: Lock) => PromiseLike<unknown>, options: LeadOptions = {}): Candidate {
    checkOptions('LockService.lead', options, LEAD_OPTIONS);
    const { ttl, pause = '1s', signal, by, name } = options;
    const site = siteOf(options, 'lead');
    checkLiteralKey(key, site);
    checkFunction(site, body, 'Pass the function that the leader runs after the key.');
    const call = parseCall({ ttl, signal, by, name: name ?? key }, this.#defaults, site);
    return this.#locks.lead(key, call, parseDuration(pause, 'pause', 1, site), body);
  }

  /** @internal Whether the option `transaction` is set. */
  get knowsTransactions(): boolean {
    return this.#settings.transaction !== undefined;
  }

  /** @internal Whether the option `transaction` follows the transaction around the running code. */
  get isInTransaction(): boolean {
    try {
      return this.#settings.transaction?.() !== undefined;
    } catch {
      // The call itself says so.
      return true;
    }
  }

  /** @internal The providers that show whether the running code is inside a transaction. */
  get transactionProviders(): readonly unknown[] {
    return (this.#transactionProviders ??= this.#settings.modules ? transactionProviders(this.#settings.modules) : []);
  }

  /** @internal Says something to the operator. */
  warn(message: string): void {
    this.#settings.open.warn(message);
  }

  /**
   * Makes the decorators of an object work that Nest did not make: in a factory, or in a unit test. Returns the object.
   * Throws `LockConfigurationError` for a value that is no object.
   */
  attach<T extends object>(instance: T): T {
    if (typeof instance !== 'object' || instance === null) {
      throw wrongOption('LockService.attach: what was passed', instance, 'Pass the instance whose decorated methods are to work.');
    }
    giveLockService(instance, this);
    return instance;
  }

  /** @internal Connects the store and checks it. */
  open(): Promise<void> {
    return (this.#opening = openStore(this.#settings.store, this.#settings.name, this.#settings.open));
  }

  /**
   * @internal The service of another store of the same application; throws `LockConfigurationError` for an unknown one.
   */
  sibling(store: string, site: string): LockService {
    const found = this.siblings.get(store);
    if (!found) {
      throw new LockConfigurationError(
        `${site}: there is no store '${store}'. The stores are: ${[...this.siblings.keys()].join(', ')}. Correct the name, or add the store to LockModule.`,
      );
    }
    return found;
  }

  /** @internal Whether its locks stay taken when this process ends without releasing them. */
  get outlivesProcess(): boolean {
    return this.#settings.store.open !== undefined;
  }

  /** @internal Ends candidates that lead or stand by: their code is waited for, for a while. */
  resign(): Promise<void> {
    return this.#locks.resign();
  }

  /** @internal Refuses new calls, rejects waiters, releases held locks and closes the store's own connections. */
  shutdown(): Promise<void> {
    return (this.#closing ??= this.#locks.shutdown().then(() => closeStore(this.#settings.store, this.#opening)));
  }
}

const OF_OPERATIONS = ['inspect', 'forceRelease', 'list', 'processes', 'incidents', 'health', 'indicate'];

nameCounterparts(LockService.prototype, 'LockService', {
  ...Object.fromEntries(OF_OPERATIONS.map((name) => [name, 'that of LockOperations'])),
  using: 'withLock(key, fn)',
  lock: 'acquire(key) or withLock(key, fn)',
  extend: 'extend(ttl) of the lock itself',
  register: 'LockModule.forRoot({ store })',
});

/** Throws an error other than that everything is taken. */
function nullIfBusy(error: unknown): null {
  if (error instanceof LockNotAcquiredError && error.reason === 'busy') {
    return null;
  }
  throw error;
}

/** The key of a semaphore, as a list; throws `LockKeyError` for several. */
function oneKey(key: string | readonly string[], site: string): readonly string[] {
  return checkOneKey(checkLiteralKeys(key, site), site);
}

function siteOf(options: Pick<LockOptions, 'by'>, method: string): string {
  const by: unknown = (options as Pick<LockOptions, 'by'> | null)?.by;
  return typeof by === 'string' && by !== '' ? by : `LockService.${method}`;
}
