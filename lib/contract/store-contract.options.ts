import type { LockStore } from '../core/seam/lock-store.js';

/**
 * The functions of a test runner that the suite uses, as jest, vitest and `node:test` have them. The suite brings its
 * assertions with it, since `node:test` has none, and opens and closes its stores itself, so that it needs no hooks.
 */
export interface TestRunner {
  /** Groups tests. */
  readonly describe: (name: string, body: () => void) => unknown;
  /** Defines a test, which fails when its body rejects; `skip` defines one that is reported as skipped. */
  readonly test: ((name: string, body: () => Promise<void>) => unknown) & {
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
}

/**
 * An offer of a store beside acquire, renew, release and close: the names of the optional members of `LockStore`; and
 * `search` and `forced`, which are `search` and `onForced` of `Operator`.
 */
export type StoreOffer =
  'open' | 'turns' | 'tickets' | 'operator' | 'messages' | 'search' | 'forced' | 'health' | 'reservesFences' | 'shared' | 'permits';

/** The facts and means of a store that the suite needs. */
export interface StoreContractOptions {
  /**
   * Makes a store on the same locks as the others that it made, as another process would. The suite opens and closes
   * it. A store that keeps its locks in this process may give one and the same object each time.
   */
  readonly connect: () => LockStore | Promise<LockStore>;
  /**
   * The offers of the store: tests of anything else are skipped. A test compares the list with the store. Default:
   * nothing.
   */
  readonly offers?: readonly StoreOffer[] | undefined;
  /** Whether leases end by time, as the store's `expires` says. Default: `true`. */
  readonly expires?: boolean | undefined;
  /**
   * Stops the database for so many milliseconds, without closing a connection, and resolves when it goes on. It has to
   * stand still 20 ms after the call, and a test fails where no command is held up. Without it the tests of time limits
   * are skipped.
   */
  readonly stall?: ((ms: number) => Promise<void>) | undefined;
  /**
   * Ends the database abruptly and starts it again, and resolves when it has. Without it the tests of a restart are
   * skipped.
   */
  readonly restart?: (() => Promise<void>) | undefined;
  /** Gets the warnings of the store while it is opened. Default: warnings are ignored. */
  readonly warn?: ((message: string) => void) | undefined;
  /**
   * The factor for the leases and waits of the tests, for a database that takes more than a few milliseconds for a
   * command. At 1 a test takes up to 3 seconds. Default: 1.
   */
  readonly timeScale?: number | undefined;
}
