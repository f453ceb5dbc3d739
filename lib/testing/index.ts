export {
  LockTesting,
  type HoldElsewhereOptions,
  type LockElsewhere,
  type LockTestingOptions,
  type LossToTest,
  type OfStore,
  type StoreAwayOptions,
} from './lock-testing.js';
export type { TakenLock } from './taken-locks.js';
export type { AwayAs } from './test-store.js';
