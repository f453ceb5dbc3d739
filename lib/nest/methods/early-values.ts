import { AsyncResource } from 'node:async_hooks';
import { setImmediate } from 'node:timers';
import { concat, Observable, Subject, type Subscription } from 'rxjs';
import { isHot, isSubject, type HotObservable } from './hot-observable.js';

/**
 * Keeps the values that the hot Observables among the arguments of a call emit before its method subscribes to them.
 * All subscribers of the same turn of the event loop get these values at its end, and then the values that follow.
 */
export class EarlyValues {
  /** The arguments for the method. */
  readonly args: unknown[];
  readonly #buffers: EarlyBuffer[] = [];

  constructor(given: readonly unknown[]) {
    this.args = given.map((arg) => (typeof arg === 'object' && arg !== null && isHot(arg) ? this.#keep(arg) : arg));
  }

  /**
   * Drops values without a subscriber, in the next turn: until then, the code that got the result of the call may
   * subscribe.
   */
  end(): void {
    this.#buffers.forEach((buffer) => buffer.endSoon());
  }

  /** Operators run when the method subscribes, and so inside the lock. */
  #keep(given: HotObservable): HotObservable {
    const { source, operator } = given;
    const kept = isSubject(given) ? this.#keepSubject(given) : this.#keep(source as HotObservable).lift(operator);
    given.drainBuffer?.();
    return kept as HotObservable;
  }

  #keepSubject(subject: HotObservable): HotObservable {
    const buffer = new EarlyBuffer(subject);
    this.#buffers.push(buffer);
    return buffer.replaying;
  }
}

/**
 * Keeps the values of a Subject until the turn after the first subscription: by then, the code that gets the result of
 * the method has it.
 */
class EarlyBuffer {
  /** The Subject for the method: another Subject only for its subscribers. */
  readonly replaying: HotObservable;
  readonly #keeping: Subscription;
  readonly #values: unknown[] = [];
  readonly #early = new Subject<unknown>();
  #hasEnded = false;

  constructor(subject: HotObservable) {
    this.#keeping = subject.subscribe({ next: (value) => void this.#values.push(value), error: () => undefined });
    const replay = this.#replay(subject);
    this.replaying = new Proxy(subject, {
      get: (_, name) => {
        if (name === 'subscribe') {
          return replay.subscribe.bind(replay);
        }
        if (name === 'next') {
          // The method emits by it, perhaps for days, and reads nothing.
          this.#end();
        }
        const value: unknown = Reflect.get(subject, name);
        // Code that reads goes on with the proxy; code of a subclass may have private fields.
        const reads = name in Observable.prototype || name === 'asObservable';
        return typeof value === 'function' && !reads ? (value.bind(subject) as unknown) : value;
      },
    });
  }

  endSoon(): void {
    setImmediate(() => this.#end());
  }

  #end(): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    // A reader may have the Subject emit more.
    for (const value of this.#values) {
      this.#early.next(value);
    }
    this.#values.length = 0;
    this.#keeping.unsubscribe();
    this.#early.complete();
  }

  /**
   * Values arrive in the context of the code that subscribes, which is inside the lock, and not of the code that emits
   * them.
   */
  #replay(subject: HotObservable): Observable<unknown> {
    return new Observable((subscriber) => {
      const inContext = AsyncResource.bind((step: () => void) => step());
      this.endSoon();
      return concat(this.#early, subject).subscribe({
        next: (value) => inContext(() => subscriber.next(value)),
        error: (error) => inContext(() => subscriber.error(error)),
        complete: () => inContext(() => subscriber.complete()),
      });
    });
  }
}
