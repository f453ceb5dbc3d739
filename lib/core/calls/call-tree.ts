import { AsyncLocalStorage } from 'node:async_hooks';
import { checkFunction } from '../words/check-options.js';
import type { LockLostError } from '../words/errors.js';
import type { Lock } from '../words/lock.js';

/** The innermost call that the running code belongs to, whichever application it is of. */
export const callContext = new AsyncLocalStorage<CallNode | undefined>();

/**
 * A locked call in the tree of calls, or a call that came with tickets. Its parent is the nearest enclosing call that
 * had not left when this call was made.
 */
export abstract class CallNode {
  /** The keys, sorted, each once. */
  readonly keys: readonly string[];
  /** Whether it was made by `acquire()`, which cannot mark the caller's later code. */
  readonly isHandle: boolean;
  /** The transaction that it was made inside of, where locks know of one that had not ended. */
  readonly transaction: Keeper | undefined;
  #parent: CallNode | undefined;

  constructor(keys: readonly string[], isHandle: boolean, transaction: Keeper | undefined) {
    this.keys = keys;
    this.isHandle = isHandle;
    this.transaction = transaction;
    this.#parent = currentCall();
    this.#parent?.unlinkParents();
  }

  /** Whether its body has ended, and its locks were released. */
  abstract get hasLeft(): boolean;

  /** The lock that the user's code knows this call by; undefined where the call holds nothing itself. */
  abstract get lock(): Lock | undefined;

  /** Notifies the code, once, that a lease is lost or about to be. */
  abstract notify(loss: LockLostError): void;

  /** The nearest enclosing call that has not left. */
  get parent(): CallNode | undefined {
    return notLeft(this.#parent);
  }

  /** Forgets enclosing calls that have left, so that chains of calls do not grow. */
  unlinkParents(): void {
    this.#parent = notLeft(this.#parent);
  }

  isInside(other: CallNode): boolean {
    for (let at = this.parent; at; at = at.parent) {
      if (at === other) {
        return true;
      }
    }
    return false;
  }

  /** Whether it was made inside that transaction, or a call around it was. */
  isWithin(transaction: Keeper): boolean {
    return this.transaction?.identity === transaction.identity || (this.parent?.isWithin(transaction) ?? false);
  }
}

/** The nearest enclosing locked call of the running code that has not left. */
export function currentCall(): CallNode | undefined {
  return notLeft(callContext.getStore());
}

function notLeft(call: CallNode | undefined): CallNode | undefined {
  let at = call;
  while (at?.hasLeft) {
    at = at.parent;
  }
  return at;
}

/** Runs `fn` inside a call, which has not left until the promise has settled that `fn` may return. */
export function runInside<T>(call: CallNode & { begin(): void; end(): void }, fn: () => T): T {
  call.begin();
  let result: T;
  try {
    result = callContext.run(call, fn);
  } catch (error) {
    call.end();
    throw error;
  }
  if (result instanceof Promise) {
    const end = (): void => call.end();
    result.then(end, end);
  } else {
    call.end();
  }
  return result;
}

/**
 * Runs `fn` without the current locks, for work handed to somebody else: locked calls inside it acquire anew and do not
 * belong to the caller's locks. It stays in its transaction: locks that the transaction holds are re-entered, and new
 * ones last until it ends. Throws `LockConfigurationError` if `fn` is no function.
 */
export function outsideLocks<T>(fn: () => T): T {
  checkFunction('outsideLocks', fn, 'Pass a function that begins the work: outsideLocks(() => this.send(mail)).');
  return callContext.run(undefined, fn);
}

/** Keeps leases after their calls have ended: a transaction, as the calls and leases of one store see it. */
export interface Keeper {
  /** Identifies the transaction in all stores: the promise of its end. */
  readonly identity: object;
  readonly kept: ReadonlySet<{ readonly key: string }>;
  /** A lease is lost, or about to be. */
  notify(loss: LockLostError): void;
}
