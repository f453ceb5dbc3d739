import { currentLock } from '../current-lock.js';
import type { LockService } from '../lock.service.js';
import { givenTransaction, transactionInContext } from '../application/open-transaction.js';

/** How many calls of a method are looked at. */
const MOST_LOOKS = 100;

/**
 * Warns, once for a method, that it takes its lock inside a transaction which the option `transaction` does not follow,
 * as far as arguments and providers show the transaction in the first calls of the method.
 */
export class TransactionWarning {
  readonly #site: string;
  #left = MOST_LOOKS;

  constructor(site: string) {
    this.#site = site;
  }

  /** Looks at a call. Answers whether further calls are to be looked at. */
  look(service: LockService, keys: readonly string[], args: readonly unknown[]): boolean {
    this.#left--;
    const given = givenTransaction(args);
    const shows = given ?? transactionInContext(service.transactionProviders);
    // A call that re-enters leaves the lock to the call around it, perhaps above the transaction.
    if (shows === undefined || service.isInTransaction || keys.every((key) => currentLock(key))) {
      return this.#left > 0;
    }
    const cure = service.knowsTransactions
      ? 'let the option transaction of LockModule follow this one'
      : 'set the option transaction of LockModule';
    service.warn(
      `${this.#site} takes its lock inside a transaction: ${given ? 'it was given' : 'so says'} ${shows}. The lock is released when the ` +
        'method ends, before the commit, so that the next owner reads what was there before. Call the method outside of the transaction and ' +
        `open that inside the lock (@DistributedLock() stands above a decorator that opens one), or ${cure} (docs/transactions.md). ` +
        'This is said once for each method.',
    );
    return false;
  }
}
