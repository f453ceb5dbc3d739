import { callContext } from '../calls/call-tree.js';
import { isThenable } from '../calls/run-once.js';
import { LockConfigurationError } from '../words/errors.js';
import { shown } from '../words/shown.js';
import { Transaction } from './transaction.js';

/**
 * The end of the transaction around the running code, if there is one. All code of a transaction gets the same promise.
 */
export type TransactionEnd = () => Promise<unknown> | undefined;

/** The answer of a `TransactionEnd`, for messages. */
export const END_OF_TRANSACTION = 'the promise of the end of the transaction around the running code, or undefined where there is none';
const ADVICE = `Return ${END_OF_TRANSACTION}.`;
const FUNCTION = 'the function of the option transaction';

/** The transactions around the locked calls of one store, by the promises of their ends. */
export class Transactions {
  readonly #endOf: TransactionEnd;
  readonly #onEnd: (transaction: Transaction) => Promise<void>;
  readonly #known = new WeakMap<object, Transaction>();
  #hasWarned = false;

  constructor(endOf: TransactionEnd, onEnd: (transaction: Transaction) => Promise<void>) {
    this.#endOf = endOf;
    this.#onEnd = onEnd;
  }

  /**
   * The transaction around the call at `site`; throws `LockConfigurationError` where the user's function gives neither
   * a promise nor undefined.
   */
  current(site: string): Transaction | undefined {
    const end = this.#end();
    if (end === undefined) {
      return undefined;
    }
    const transaction = this.#known.get(end) ?? this.#begin(end);
    if (transaction.hasEnded) {
      this.#warn(site);
    }
    // Work that a transaction started may go on after it.
    return transaction.hasEnded ? undefined : transaction;
  }

  /**
   * Warns that the promise belongs to a transaction that has ended. If a new transaction has this promise as well, its
   * locks are released before its commit.
   */
  #warn(site: string): void {
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      process.emitWarning(
        `${site} was called with the promise of a transaction that has ended, so it counts as outside of any: its lock is released when ` +
          `the call ends, which may be before the commit of a newer one. Make sure that ${FUNCTION} returns the promise of the newest ` +
          'transaction, and undefined once that has ended, as a TransactionScope does (docs/transactions.md). This is said once.',
        'LockWarning',
      );
    }
  }

  #end(): PromiseLike<unknown> | undefined {
    let end: unknown;
    try {
      end = this.#endOf();
      if (end === undefined || isThenable(end)) {
        return end;
      }
    } catch (error) {
      throw threw(FUNCTION, error);
    }
    throw new LockConfigurationError(`LockModule: ${FUNCTION} returned ${shown(end)}. ${ADVICE}`);
  }

  #begin(end: PromiseLike<unknown>): Transaction {
    const transaction = new Transaction(end);
    const ended = (): void => void this.#onEnd(transaction);
    // Outside of any call: the locks pass on to other calls there.
    try {
      callContext.run(undefined, () => end.then(ended, ended));
    } catch (error) {
      // Nobody would learn of its end, and its locks would stay.
      throw threw(`the method then of what ${FUNCTION} returned`, error);
    }
    this.#known.set(end, transaction);
    return transaction;
  }
}

function threw(what: string, cause: unknown): LockConfigurationError {
  return new LockConfigurationError(`LockModule: ${what} threw an error. ${ADVICE}`, '', { cause });
}
