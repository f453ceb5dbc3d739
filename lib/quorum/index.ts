export { QuorumLockStore } from './quorum-lock-store.js';
export type { QuorumLockStoreOptions } from './quorum-lock-store.options.js';
