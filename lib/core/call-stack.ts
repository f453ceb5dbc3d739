import type { CallNode } from './call-tree.js';
import type { LockLostError } from './errors.js';
import type { Waiter, WaitingLine } from './waiter.js';

/**
 * The locked calls inside a lease, outermost first. A call enters when the call on top is its ancestor, so that
 * children that were started in parallel run one after the other.
 */
export class CallStack {
  readonly #calls: CallNode[] = [];
  #entering: Map<Waiter, CallNode> | undefined;

  get top(): CallNode | undefined {
    return this.#calls.at(-1);
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Whether the call may enter now. */
  admits(call: CallNode): boolean {
    const { top } = this;
    return top === undefined || call.isInside(top);
  }

  push(call: CallNode): void {
    this.#calls.push(call);
  }

  /** Takes a call off, wherever it stands: a child may outlive its parent. False where it was not in. */
  remove(call: CallNode): boolean {
    const at = this.#calls.lastIndexOf(call);
    if (at >= 0) {
      this.#calls.splice(at, 1);
    }
    return at >= 0;
  }

  /** Whether a call was made from inside one of them. */
  encloses(call: CallNode): boolean {
    return this.#calls.some((outer) => call.isInside(outer));
  }

  /** Where a call waits until the one on top has left. */
  lineFor(call: CallNode): WaitingLine {
    const entering = (this.#entering ??= new Map());
    return { isInside: true, add: (waiter) => entering.set(waiter, call), delete: (waiter) => entering.delete(waiter) };
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

  /** Notifies every call inside. */
  notify(loss: LockLostError): void {
    for (const call of [...this.#calls]) {
      call.notify(loss);
    }
  }

  /** Ends the waits of the calls that wanted to enter. */
  refuse(error: Error): void {
    for (const waiter of [...(this.#entering?.keys() ?? [])]) {
      waiter.refuse(error);
    }
  }
}
