import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { isUnconnected, RECONNECT_MS } from './sends-again';

/** How often an operation is sent that gets no reply. */
const MOST_TRIES = 10;

/** An operation that took longer has used up its second. */
const MOST_MS = 950;

/** No reply in a second, no connection in what a second left for one, and a row that was locked for as long. */
const SLOW =
  /no reply within (9\d\d|1000) ms|none could be made within (9\d\d|1000) ms|of the pool have been in use for 1000 ms|lock timeout/;

/** The methods of a store that can be repeated, with the same answer. */
interface Repeatable {
  acquire(hold: HoldRecord): Promise<unknown>;
  exchange(hold: HoldRecord, next: HoldRecord, place: object, mayOvertake: boolean): Promise<unknown>;
  forceRelease(key: string, fence: number): Promise<boolean>;
  inspect(key: string): Promise<unknown>;
  join(hold: HoldRecord): Promise<unknown>;
  release(hold: HoldRecord): Promise<unknown>;
  renew(holds: readonly HoldRecord[]): Promise<unknown>;
}

const REPEATABLE: ReadonlySet<string | symbol> = new Set<keyof Repeatable>([
  'acquire',
  'exchange',
  'forceRelease',
  'inspect',
  'join',
  'release',
  'renew',
]);

/**
 * The store, for a test that is not about time: a command without a reply within the second that an operation has is
 * sent again, as core does. Processes of a server may stand still one after the other. A command that was given less
 * time is sent once. A forced release that was sent again is answered with whether the lock is free.
 */
export function patient<Store extends Repeatable>(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      const found: unknown = Reflect.get(target, name, target);
      if (typeof found !== 'function') {
        return found;
      }
      const call = (found as (...args: unknown[]) => Promise<unknown>).bind(target);
      const again = name === 'forceRelease' ? (...args: unknown[]) => isFree(target, args) : call;
      return REPEATABLE.has(name) ? (...args: unknown[]) => answered((tries) => (tries === 1 ? call : again)(...args)) : call;
    },
  });
}

async function isFree(store: Repeatable, [key, fence]: unknown[]): Promise<boolean> {
  return (await store.forceRelease(key as string, fence as number)) || (await store.inspect(key as string)) === null;
}

/**
 * The answer to a call that can be repeated, such as a call of a `LockService`, sent again where nobody answered in the
 * second that it has.
 */
export async function answered<T>(call: (tries: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const sentAt = performance.now();
    try {
      return await call(tries);
    } catch (error) {
      // The rest of the second for a part of it may be less.
      const isOutOfTime = error instanceof LockStoreError && performance.now() - sentAt > MOST_MS;
      if (!(isOutOfTime || gotNoReply(error)) || tries === MOST_TRIES) {
        throw error;
      }
      await sleep(isUnconnected(error) ? RECONNECT_MS : 0);
    }
  }
}

/**
 * Whether a store failed since nobody answered in the second that an operation has: a process of the server may have
 * stood still.
 */
export function gotNoReply(error: unknown): boolean {
  return error instanceof LockStoreError && (SLOW.test(error.detail) || isUnconnected(error));
}
