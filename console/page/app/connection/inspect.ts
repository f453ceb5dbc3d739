import { useEffect, useState } from 'preact/hooks';
import type { StoredLockInfo } from '../../snapshot.js';
import { addressOf } from './addresses.js';

/** How often the store is asked of a lock that is looked at, in milliseconds. */
const EVERY_MS = 2_000;

/** A lock as its store has it now, and when that was; null where nobody holds it. */
export interface Inspected {
  readonly at: number;
  readonly lock: StoredLockInfo | null;
}

/**
 * The store's facts of a lock, asked for again and again while the lock is looked at; undefined until the first answer.
 */
export function useInspected(store: string, key: string, isVisible: boolean): Inspected | undefined {
  const [inspected, setInspected] = useState<Inspected & { readonly of: string }>();
  const of = JSON.stringify([store, key]);
  useEffect(() => {
    if (!isVisible) {
      return undefined;
    }
    const end = new AbortController();
    const ask = async (): Promise<void> => {
      const lock = await inspect(store, key, end.signal);
      if (lock !== undefined && !end.signal.aborted) {
        setInspected({ of, at: Date.now(), lock });
      }
    };
    void ask();
    const timer = setInterval(() => void ask(), EVERY_MS);
    return () => {
      clearInterval(timer);
      end.abort();
    };
  }, [of, isVisible]);
  return inspected?.of === of ? inspected : undefined;
}

/** Undefined where the store or the application does not answer. */
async function inspect(store: string, key: string, signal: AbortSignal): Promise<StoredLockInfo | null | undefined> {
  const address = addressOf('lock');
  address.searchParams.set('store', store);
  address.searchParams.set('key', key);
  try {
    const response = await fetch(address, { signal });
    return response.ok ? ((await response.json()) as { readonly lock: StoredLockInfo | null }).lock : undefined;
  } catch {
    return undefined;
  }
}
