import { AsyncLocalStorage } from 'node:async_hooks';
import { callContext } from '../calls/call-tree.js';
import { checkFunction } from '../words/check-options.js';
import type { TransactionEnd } from './transactions.js';

/** A transaction: it has ended once every run inside it has settled. */
class Followed {
  readonly ended: Promise<void>;
  #end!: () => void;
  #running = 0;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  begins(): void {
    this.#running++;
  }

  settled(): void {
    if (--this.#running === 0) {
      this.#end();
    }
  }
}

/** One `run()`: a transaction, or a part of the transaction around it. */
interface Run {
  readonly transaction: Followed;
  outer: Run | undefined;
  hasSettled: boolean;
}

/**
 * Follows transactions for the option `transaction` of `LockModule`: the code inside `run()` is one transaction, from
 * the call until its promise settles. A transaction inside another one belongs to it and ends with it, so that locks
 * outlive the commit of a savepoint; if the inner one is not awaited there, both last until it has settled too. Code
 * that goes on after a transaction is outside of it, and begins the next one.
 */
export class TransactionScope {
  readonly #runs = new AsyncLocalStorage<Run | undefined>();

  /** The end of the transaction around the running code: the option itself. */
  readonly current: TransactionEnd = () => unsettled(this.#runs.getStore())?.transaction.ended;

  constructor() {
    // `const { run } = scope` works as `scope.run` does.
    this.run = this.run.bind(this) as typeof this.run;
    this.around = this.around.bind(this) as typeof this.around;
  }

  /** Runs `fn`, which opens a transaction and settles when that has ended. Its result and error pass unchanged. */
  async run<T>(fn: () => T | PromiseLike<T>): Promise<T> {
    checkFunction('TransactionScope.run', fn, 'Pass a function that opens the transaction: scope.run(() => database.transaction(…)).');
    const outer = unsettled(this.#runs.getStore());
    if (outer) {
      // Otherwise a chain of runs, each begun inside the one before, would grow.
      outer.outer = unsettled(outer.outer);
    }
    const run: Run = { transaction: outer?.transaction ?? this.#follow(), outer, hasSettled: false };
    run.transaction.begins();
    try {
      // Awaited inside: a lazy thenable begins only there.
      return await this.#runs.run(run, async () => await fn());
    } finally {
      run.hasSettled = true;
      run.transaction.settled();
    }
  }

  /**
   * Node keeps with a promise the contexts in which it was made: each transaction would keep the one that left its
   * context behind.
   */
  #follow(): Followed {
    return callContext.run(undefined, () => this.#runs.run(undefined, () => new Followed()));
  }

  /**
   * Wraps a function of a client, so that every transaction that it opens is followed:
   * `client.transaction = scope.around(client.transaction)`. Not for a function that resolves while its transaction is
   * open.
   */
  around<Open extends (...args: never[]) => PromiseLike<unknown>>(open: Open): Open {
    checkFunction('TransactionScope.around', open, 'Pass the function that opens transactions, such as client.transaction.');
    const run = (fn: () => PromiseLike<unknown>): Promise<unknown> => this.run(fn);
    const followed = function (this: unknown, ...args: never[]): Promise<unknown> {
      return run(() => open.apply(this, args));
    };
    return followed as unknown as Open;
  }
}

/** The nearest run around the code that has not settled: work goes on after the run that started it. */
function unsettled(run: Run | undefined): Run | undefined {
  let at = run;
  while (at?.hasSettled) {
    at = at.outer;
  }
  return at;
}
