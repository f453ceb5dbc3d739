import type { LockStore } from '../../lib/core/seam/lock-store';
import { isOfSlowness } from './no-warning';

/**
 * A store whose start was answered in time, and what that warned of: once more where a machine that stalls took longer, since such a
 * start knows less of its server.
 */
export async function openSwiftly<Store extends LockStore>(
  make: () => Store,
): Promise<{ readonly store: Store; readonly warnings: readonly string[] }> {
  for (;;) {
    const [store, warnings] = [make(), [] as string[]];
    await store.open?.({ prefix: 'lock', warn: (message) => warnings.push(message) });
    if (!warnings.some(isOfSlowness)) {
      return { store, warnings };
    }
    await store.close?.();
  }
}
