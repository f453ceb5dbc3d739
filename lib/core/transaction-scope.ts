import { AsyncLocalStorage } from 'node:async_hooks';
import type { TransactionEnd } from './transactions.js';

/**
 * Follows transactions for the option `transaction` of `LockModule`: what runs inside `run()` is one transaction, from the
 * call to the settling of its promise. A transaction inside another one belongs to it and ends with it, so that locks
 * outlive the commit of a savepoint.
 */
export class TransactionScope {
  readonly #ends = new AsyncLocalStorage<Promise<void>>();

  /** The end of the transaction around the running code: the option itself. */
  readonly current: TransactionEnd = () => this.#ends.getStore();

  /** Runs `fn`, which opens a transaction and settles when that has ended. Its result and error pass unchanged. */
  async run<T>(fn: () => T | PromiseLike<T>): Promise<T> {
    if (this.current()) {
      return fn();
    }
    let end!: () => void;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    try {
      // Awaited inside: a lazy thenable begins only there.
      return await this.#ends.run(ended, async () => await fn());
    } finally {
      end();
    }
  }

  /**
   * The function itself, for a client whose every transaction is to be followed:
   * `client.transaction = scope.around(client.transaction)`. Not for a function that resolves while its transaction is open.
   */
  around<Open extends (...args: never[]) => PromiseLike<unknown>>(open: Open): Open {
    const run = (fn: () => PromiseLike<unknown>): Promise<unknown> => this.run(fn);
    const followed = function (this: unknown, ...args: never[]): Promise<unknown> {
      return run(() => open.apply(this, args));
    };
    return followed as unknown as Open;
  }
}
