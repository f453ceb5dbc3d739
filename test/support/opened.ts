import type { LockStore } from '../../lib/core/seam/lock-store';

const stores: LockStore[] = [];

// Before a test's own servers stop.
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});

/** Closes the store at the end of the test. */
export function closing<Store extends LockStore>(store: Store): Store {
  stores.push(store);
  return store;
}

/** The store, which is open until the end of the test. */
export async function opened<Store extends LockStore>(store: Store, warn: (message: string) => void = () => undefined): Promise<Store> {
  await closing(store).open?.({ prefix: 'lock', warn });
  return store;
}
