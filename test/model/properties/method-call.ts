import { Observable } from 'rxjs';
import type { Lock } from '../../../lib/core/words/lock.js';
import type { LockedMethod, MethodParts as Parts } from '../../../lib/nest/methods/locked-method.js';
import type { Process } from './process.js';
import { minHoldOf, type Call } from './scenario.js';

/** How long a consumer works on each item of a generator, in milliseconds. */
const ITEM_MS = 1;

/** A locked method of an application: what its decorator makes of it, by the name of its caller. */
export interface MethodParts {
  readonly process: Process;
  readonly call: Call;
  readonly by: string;
  readonly signal: AbortSignal | undefined;
}

/** Consumes an async generator; `items` are what its body does, each until the next one is asked for. */
export async function generate(parts: MethodParts, items: (lock: Lock) => AsyncGenerator): Promise<void> {
  const { process, call } = parts;
  const generator = process.library.lockedGenerator(...methodCall(parts, 'generator', () => items(lockOf(process, call))));
  for (let next = await generator.next(); !next.done; next = await generator.next()) {
    await process.sleep(ITEM_MS);
  }
}

/**
 * Subscribes to an Observable whose body is `run`; `ended` when its source is unsubscribed from. Resolves with whether
 * it was unsubscribed from before its end: this happens where the signal aborts.
 */
export function observe(parts: MethodParts, run: (lock: Lock) => Promise<void>, ended: () => void): Promise<boolean> {
  const { process, call, signal } = parts;
  const source = (): Observable<never> =>
    new Observable((subscriber) => {
      run(lockOf(process, call)).then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
      return ended;
    });
  const observable = process.library.lockedObservable(...methodCall({ ...parts, signal: undefined }, 'observable', source));
  return new Promise((resolve, reject) => {
    const subscription = observable.subscribe({ error: reject, complete: () => resolve(false) });
    signal?.addEventListener('abort', () => {
      subscription.unsubscribe();
      resolve(true);
    });
  });
}

function lockOf(process: Process, { keys }: Call): Lock {
  return process.library.currentLock(keys[0]) as Lock;
}

function methodCall(
  { process, call, by, signal }: MethodParts,
  returns: Parts['returns'],
  body: () => unknown,
): [LockedMethod, object, unknown[]] {
  const { library, service } = process;
  const { keys, ttl, wait, renew, reentry, maxHold } = call;
  const minHold = minHoldOf(call);
  const method = new library.LockedMethod({
    site: by,
    store: 'default',
    returns,
    undeclared: false,
    body,
    source: body,
    keysOf: () => keys,
    options: new library.MethodOptions({ key: 'model', ttl, wait, renew, reentry, maxHold, minHold, signal }, by),
    warning: new library.TransactionWarning(by),
  });
  return [method, service.attach({}), []];
}
