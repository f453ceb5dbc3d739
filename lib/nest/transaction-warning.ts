import { currentLock } from './current-lock.js';
import type { LockService } from './lock.service.js';
import { openTransaction } from './open-transaction.js';

/** How many calls of a method are looked at. */
const MOST_LOOKS = 100;

/**
 * Warns, once for a method, that it takes its lock inside a transaction, as far as the arguments of its first calls show
 * it.
 */
export class TransactionWarning {
  readonly #site: string;
  #left = MOST_LOOKS;

  constructor(site: string) {
    this.#site = site;
  }

  /** Whether calls are still looked at. */
  get isDue(): boolean {
    return this.#left > 0;
  }

  look(service: LockService, keys: readonly string[], args: readonly unknown[]): void {
    this.#left--;
    const shows = service.knowsTransactions ? undefined : openTransaction(args);
    // A call that re-enters leaves the lock to the call around it, perhaps above the transaction.
    if (shows === undefined || keys.every((key) => currentLock(key))) {
      return;
    }
    this.#left = 0;
    service.warn(
      `${this.#site} takes its lock inside a transaction: it was given ${shows}. The lock is released when the method ends, before the ` +
        'commit, so that the next owner reads what was there before. Call the method outside of the transaction and open that inside the lock, ' +
        'or set the option transaction of LockModule (docs/transactions.md). This is said once for each method.',
    );
  }
}
