import { Observable, ReplaySubject, takeUntil } from 'rxjs';
import type { RunnableMethod } from './locked-method.js';
import { isObservable, wrongReturn } from './return-kind.js';

/**
 * A method that returns an Observable: each subscription is a call of its own, acquired on subscribe and released when
 * it completes, fails or is unsubscribed. An answer in its place is emitted, or subscribed to if it is an Observable.
 */
export function lockedObservable(method: RunnableMethod, self: unknown, args: unknown[]): Observable<unknown> {
  const { parts } = method;
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    // Replays, since it may fire before the source is subscribed to.
    const stop = new ReplaySubject<void>(1);
    let entered = false;
    const answered = method.run(self, args, unsubscribed, (lock, given = args) => {
      entered = true;
      const source = parts.body.apply(self, given);
      if (!isObservable(source)) {
        throw wrongReturn(source, parts);
      }
      return new Promise<void>((resolve, reject) => {
        const { signal } = lock;
        const end = (): void => {
          reject(signal.reason);
          stop.next();
        };
        if (signal.aborted) {
          end();
        } else {
          signal.addEventListener('abort', end);
        }
        // A source that emits while it is being subscribed to must see an unsubscription too.
        (source as Observable<unknown>).pipe(takeUntil(stop)).subscribe({
          next: (value) => subscriber.next(value),
          error: reject,
          complete: resolve,
        });
      });
    });
    answered.then(
      (answer) => {
        if (!entered && isObservable(answer)) {
          (answer as Observable<unknown>).pipe(takeUntil(stop)).subscribe(subscriber);
          return;
        }
        if (!entered && answer !== undefined) {
          subscriber.next(answer);
        }
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(error),
    );
    return () => {
      unsubscribed.abort();
      stop.next();
    };
  });
}
