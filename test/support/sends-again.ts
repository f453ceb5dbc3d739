import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import type { HoldRecord, Turns } from '../../lib/core/seam/lock-store';
import type { StorePlace, WholeStore } from './stores';

/** How often an operation is sent that gets no reply. */
const MOST_TRIES = 10;

/**
 * Processes of the servers may have stood still one after the other: no reply, no connection, no copy, or a row that is
 * locked all the while.
 */
const SLOW =
  /no reply within \d+ ms|none could be made within \d+ ms|have been in use for \d+ ms|lock timeout|replicas confirmed the|too late/;

/** A connection that was given up is being made anew. */
const UNCONNECTED = /there is no connection/;
export const RECONNECT_MS = 200;

/** The methods that can be repeated, with the same answer, but for `answersLater`. */
const REPEATABLE: ReadonlySet<string | symbol> = new Set<keyof WholeStore | 'exchange' | 'forceRelease' | 'inspect' | 'join' | 'leave'>([
  'acquire',
  'exchange',
  'forceRelease',
  'inspect',
  'join',
  'leave',
  'release',
  'renew',
]);

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * The store, for calls that ask it once, or whose test says what is true at their end: like `patient`, for core and for
 * any time limit. Core does not limit its operations.
 */
export function sendsAgain<Store extends Pick<WholeStore, 'operator'>>(store: Store): Store {
  const later = answersLater(store);
  const again: Store = new Proxy(store, {
    get(target, name) {
      const found: unknown = name === 'keepsLimits' || Reflect.get(target, name, target);
      if (found === target) {
        // A capability that the store itself has.
        return again;
      }
      if (typeof found !== 'function') {
        return found;
      }
      const method = (found as Method).bind(target);
      return REPEATABLE.has(name) ? (...args: unknown[]) => repeating(method, later[name] ?? method, args) : method;
    },
  });
  return again;
}

/** Such a store where it lives in servers, open until the place stops. */
export async function connectTo(place: StorePlace): Promise<WholeStore> {
  const store = await place.connect();
  return place.servers ? sendsAgain(store) : store;
}

async function repeating(first: Method, later: Method, args: unknown[]): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    try {
      return await (tries === 1 ? first : later)(...args);
    } catch (error) {
      if (!wasSlow(error) || tries === MOST_TRIES) {
        throw error;
      }
      await sleep(isUnconnected(error) ? RECONNECT_MS : 0);
    }
  }
}

/**
 * Whether a store failed since its servers took too long for the time that an operation had, however little that was.
 */
export function wasSlow(error: unknown): boolean {
  return error instanceof LockStoreError && (SLOW.test(error.detail) || isUnconnected(error));
}

/** Whether a store failed since its connection was just being made anew. */
export function isUnconnected(error: unknown): boolean {
  return error instanceof LockStoreError && UNCONNECTED.test(error.detail);
}

/**
 * The methods whose answer differs when they are sent again after no reply. A forced release answers whether the lock
 * is free. A release may come after the end of its lease, which is no loss then: its code had ended in time.
 */
function answersLater(store: Pick<WholeStore, 'operator'>): Readonly<Record<string | symbol, Method | undefined>> {
  const { operator, release, turns } = store as WholeStore;
  return {
    forceRelease: async (key, fence) =>
      (await operator.forceRelease(key as string, fence as number)) || (await operator.inspect(key as string)) === null,
    release: async (hold) => {
      await release.call(store, hold as HoldRecord);
      return true;
    },
    exchange: async (...args) => ({ ...(await turns?.exchange(...(args as Parameters<Turns['exchange']>))), released: true }),
  };
}
