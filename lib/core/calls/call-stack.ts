import type { CallNode, Keeper } from './call-tree.js';
import type { LockLostError } from '../words/errors.js';
import type { Waiter, WaitingLine } from './waiter.js';

const NOBODY: readonly CallNode[] = [];

/**
 * The locked calls inside a lease, outermost first, and the transactions that keep the lease. A call enters when the
 * call on top is its ancestor, so that children that were started in parallel run one after the other, unless it runs
 * them in parallel; and when it belongs to each of the transactions, since no other code sees what they have written.
 */
export class CallStack {
  /** Whether its calls run beside each other: those of a lease that shares its key. */
  #isParallel = false;
  /** Made anew where it changes: nearly all have one call. */
  #calls: readonly CallNode[] = NOBODY;
  #entering: Map<Waiter, CallNode> | undefined;
  #keepers: Set<Keeper> | undefined;
  /** The loss that the calls were notified of; each call that enters later is notified of it too. */
  #notified: LockLostError | undefined;

  /** Has its calls run beside each other from now on. */
  runInParallel(): void {
    this.#isParallel = true;
  }

  get top(): CallNode | undefined {
    return this.#calls.at(-1);
  }

  /** Whether no call is inside, and no transaction keeps the lease. */
  get isEmpty(): boolean {
    return this.#calls.length === 0 && !this.#isKept;
  }

  /** Whether all its calls have ended, and a transaction keeps the lease. */
  get isOnlyKept(): boolean {
    return this.#calls.length === 0 && this.#isKept;
  }

  admits(call: CallNode): boolean {
    const { top } = this;
    return (this.#isParallel || top === undefined || call.isInside(top)) && !this.#isKeptFrom(call);
  }

  push(call: CallNode): void {
    this.#calls = [...this.#calls, call];
    if (this.#notified) {
      call.notify(this.#notified);
    }
  }

  /**
   * Takes a call off, wherever it stands, since a child may outlive its parent; or takes a transaction off. False where
   * it was not in.
   */
  remove(leaving: CallNode | Keeper): boolean {
    const at = this.#calls.lastIndexOf(leaving as CallNode);
    if (at < 0) {
      return this.#keepers?.delete(leaving as Keeper) ?? false;
    }
    this.#calls = this.#calls.length === 1 ? NOBODY : this.#calls.toSpliced(at, 1);
    return true;
  }

  keepFor(transaction: Keeper): void {
    (this.#keepers ??= new Set()).add(transaction);
  }

  /**
   * Whether `waiting` blocks the lease: it runs inside the innermost call, or inside a transaction that keeps the
   * lease, and `wanting` does not. `wanting` is undefined where the call that wants the lease is in another process.
   */
  isHeldUp(wanting: CallNode | undefined, waiting: CallNode): boolean {
    // In a parallel lease each of the calls holds it.
    for (const top of this.#isParallel ? this.#calls : this.#calls.slice(-1)) {
      if (!wanting?.isInside(top) && (waiting === top || waiting.isInside(top))) {
        return true;
      }
    }
    return this.#keeping((transaction) => !wanting?.isWithin(transaction) && waiting.isWithin(transaction));
  }

  /** Where a call waits until the one on top has left. */
  lineFor(call: CallNode): WaitingLine {
    const entering = (this.#entering ??= new Map());
    return { isInside: true, add: (waiter) => entering.set(waiter, call), delete: (waiter) => entering.delete(waiter) };
  }

  get waiting(): number {
    return this.#entering?.size ?? 0;
  }

  /** Whether a call waits there. */
  hasWaiting(call: CallNode): boolean {
    return this.#entering !== undefined && [...this.#entering.values()].includes(call);
  }

  /** Lets the first waiting call in that may enter; false where there is none. */
  admitNext(): boolean {
    for (const [waiter, call] of this.#entering ?? []) {
      if (this.admits(call)) {
        this.push(call);
        waiter.admit();
        return true;
      }
    }
    return false;
  }

  /**
   * Notifies every call inside, and each call that enters from now on: a lease whose `maxHold` is over still lets calls
   * in.
   */
  notify(loss: LockLostError): void {
    this.#notified = loss;
    for (const call of this.#calls) {
      call.notify(loss);
    }
    this.#keepers?.forEach((transaction) => transaction.notify(loss));
  }

  /** Ends the waits of the calls that wanted to enter. */
  refuse(error: Error): void {
    for (const waiter of [...(this.#entering?.keys() ?? [])]) {
      waiter.refuse(error);
    }
  }

  get #isKept(): boolean {
    return this.#keepers !== undefined && this.#keepers.size > 0;
  }

  /** Whether a transaction that the call does not belong to keeps the lease. */
  #isKeptFrom(call: CallNode): boolean {
    return this.#keeping((transaction) => !call.isWithin(transaction));
  }

  #keeping(isSo: (transaction: Keeper) => boolean): boolean {
    return this.#keepers !== undefined && [...this.#keepers].some(isSo);
  }
}
