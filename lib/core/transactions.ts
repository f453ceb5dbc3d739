import { callContext } from './call-tree.js';
import { LockConfigurationError } from './errors.js';
import { shown } from './shown.js';
import { Transaction } from './transaction.js';

/** The end of the transaction around the running code, if there is one. The same promise for all code of a transaction. */
export type TransactionEnd = () => Promise<unknown> | undefined;

const ADVICE = 'Return the promise of the end of the transaction around the running code, or undefined where there is none.';

/** The transactions around the locked calls of one store, by the promises of their ends. */
export class Transactions {
  readonly #endOf: TransactionEnd;
  readonly #onEnd: (transaction: Transaction) => Promise<void>;
  readonly #known = new WeakMap<object, Transaction>();

  constructor(endOf: TransactionEnd, onEnd: (transaction: Transaction) => Promise<void>) {
    this.#endOf = endOf;
    this.#onEnd = onEnd;
  }

  /** The transaction around the running code; throws `LockConfigurationError` where the user's function does not say. */
  current(): Transaction | undefined {
    const end = this.#end();
    if (end === undefined) {
      return undefined;
    }
    const transaction = this.#known.get(end) ?? this.#begin(end);
    // Work that a transaction started may go on after it.
    return transaction.hasEnded ? undefined : transaction;
  }

  #end(): PromiseLike<unknown> | undefined {
    let end: unknown;
    try {
      end = this.#endOf();
    } catch (error) {
      throw new LockConfigurationError(`LockModule: the function of the option transaction threw an error. ${ADVICE}`, '', {
        cause: error,
      });
    }
    if (end !== undefined && !isThenable(end)) {
      throw new LockConfigurationError(`LockModule: the function of the option transaction returned ${shown(end)}. ${ADVICE}`);
    }
    return end;
  }

  #begin(end: PromiseLike<unknown>): Transaction {
    const transaction = new Transaction();
    this.#known.set(end, transaction);
    const ended = (): void => void this.#onEnd(transaction);
    // Outside of any call: the locks pass on to other calls there.
    callContext.run(undefined, () => end.then(ended, ended));
    return transaction;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Partial<PromiseLike<unknown>>).then === 'function';
}
