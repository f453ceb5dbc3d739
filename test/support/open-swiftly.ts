import type { LockStore } from '../../lib/core/seam/lock-store';
import { isOfSlowness } from './no-warning';

/**
 * A store whose start was answered in time, and its warnings: once more where a machine that stalls took longer, since
 * such a start knows less of its server.
 */
export async function openSwiftly<Store extends LockStore>(
  make: () => Store,
  warnings: string[] = [],
): Promise<{ readonly store: Store; readonly warnings: readonly string[] }> {
  for (;;) {
    const before = warnings.length;
    const store = make();
    await store.open?.({ prefix: 'lock', warn: (message) => warnings.push(message) });
    if (!warnings.slice(before).some(isOfSlowness)) {
      return { store, warnings };
    }
    warnings.length = before;
    await store.close();
  }
}
