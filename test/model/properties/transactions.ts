import { AsyncLocalStorage } from 'node:async_hooks';
import type { TransactionEnd } from '../../../lib/core/transactions/transactions.js';
import type { LockedCall } from './locked-call.js';
import type { Place } from './play-steps.js';
import type { Process } from './process.js';

/** A transaction as a user knows it: it ends when everything that was begun inside it has settled. */
export class OpenTransaction {
  /** The calls that belong to it. */
  readonly calls = new Set<LockedCall>();
  readonly ended: Promise<void>;
  #end!: () => void;
  #running = 0;
  #endedAt = Infinity;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get hasEnded(): boolean {
    return this.#endedAt < Infinity;
  }

  get endedAt(): number {
    return this.#endedAt;
  }

  begins(): void {
    this.#running++;
  }

  settled(now: number): void {
    if (--this.#running === 0) {
      this.#endedAt = now;
      this.#end();
    }
  }
}

/** One part of a transaction: its code belongs to it until it has settled, and to what is around it then. */
export interface Part {
  readonly transaction: OpenTransaction;
  readonly around: Part | undefined;
  settledAt: number;
}

/** Where an application keeps the end of the transaction of its own: it is found there also when it is over. */
const OWN = new AsyncLocalStorage<OpenTransaction>();

/** How an application opens transactions: with a `TransactionScope`, or with means of its own. */
export class Transactions {
  readonly #process: Process;
  readonly #scope: { run<T>(fn: () => Promise<T>): Promise<T>; readonly current: TransactionEnd } | undefined;

  constructor(process: Process) {
    this.#process = process;
    this.#scope = process.world.scenario.namesEnds ? undefined : new process.library.TransactionScope();
  }

  /** The option `transaction`. */
  get option(): TransactionEnd {
    return this.#scope?.current ?? (() => OWN.getStore()?.ended);
  }

  /** The transaction around code that runs in a part of one. */
  around(part: Part | undefined): OpenTransaction | undefined {
    return this.#nearest(part)?.transaction;
  }

  #nearest(part: Part | undefined): Part | undefined {
    if (!this.#scope) {
      return part?.transaction.hasEnded ? undefined : part;
    }
    let at = part;
    while (at && at.settledAt < Infinity) {
      at = at.around;
    }
    return at;
  }

  /** Whether code in a part begins at the very moment at which that ends: it may belong to it or not. */
  isUnsure(part: Part | undefined): boolean {
    for (let at = part; at; at = at.around) {
      if (at.settledAt === this.#process.world.now || at.transaction.endedAt === this.#process.world.now) {
        return true;
      }
    }
    return false;
  }

  async run({ part: around }: Place, body: (part: Part) => Promise<void>): Promise<void> {
    const { world } = this.#process;
    const outer = this.#nearest(around);
    const transaction = outer?.transaction ?? new OpenTransaction();
    const part: Part = { transaction, around, settledAt: Infinity };
    transaction.begins();
    try {
      const run = (): Promise<void> => body(part);
      await (this.#scope ? this.#scope.run(run) : OWN.run(transaction, run));
    } finally {
      part.settledAt = world.now;
      transaction.settled(world.now);
      if (transaction.hasEnded) {
        transaction.calls.forEach((call) => world.keepsNoMore(call));
      }
    }
  }
}
