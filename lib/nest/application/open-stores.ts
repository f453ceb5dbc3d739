import { LockConfigurationError } from '../../core/words/errors.js';
import type { LockStore, OpenOptions } from '../../core/seam/lock-store.js';

interface OpenStore {
  readonly prefix: string;
  readonly opening: Promise<void> | undefined;
  users: number;
  /** The end of the last use: whoever opens the store next waits for it. */
  closing?: Promise<void>;
}

const OPEN_STORES = Symbol.for('nestjs-distributed-lock:open-stores');
const shared = globalThis as { [OPEN_STORES]?: WeakMap<LockStore, OpenStore> };

/**
 * Stores are objects of the application, and two applications of a process may have the same one: the last that closes
 * it, closes it. The applications may use two copies of this package, so the count is kept for all copies.
 */
const OPEN = (shared[OPEN_STORES] ??= new WeakMap<LockStore, OpenStore>());

/**
 * Opens a store for one more user. Throws `LockConfigurationError` where another user opened it with another prefix.
 */
export async function openStore(store: LockStore, name: string, options: OpenOptions): Promise<void> {
  const { prefix } = options;
  const before = OPEN.get(store);
  const open = before && !before.closing ? before : { prefix, opening: opened(store, options, before?.closing), users: 0 };
  if (open.prefix !== prefix) {
    throw new LockConfigurationError(
      `LockModule: the store '${name}' is open already with the prefix '${open.prefix}', and was given the prefix '${prefix}'. ` +
        'Make a store for each prefix.',
    );
  }
  open.users++;
  OPEN.set(store, open);
  try {
    await open.opening;
  } catch (error) {
    open.users--;
    leave(store, open);
    throw error;
  }
}

/** Ends the use of a store, once it is known whether it was opened, and closes it unless others use it. */
export async function closeStore(store: LockStore, opening: Promise<void> | undefined): Promise<void> {
  const isUser = await opening?.then(
    () => true,
    () => false,
  );
  const open = OPEN.get(store) ?? { prefix: '', opening, users: 0 };
  if (isUser) {
    open.users--;
  }
  if (open.users > 0) {
    return;
  }
  OPEN.set(store, open);
  try {
    await (open.closing ??= store.close());
  } finally {
    leave(store, open);
  }
}

/** Another application of the process may be closing it. */
function opened(store: LockStore, options: OpenOptions, closing: Promise<void> | undefined): Promise<void> | undefined {
  return closing ? closing.catch(() => undefined).then(() => store.open?.(options)) : store.open?.(options);
}

function leave(store: LockStore, open: OpenStore): void {
  if (open.users === 0 && OPEN.get(store) === open) {
    OPEN.delete(store);
  }
}
