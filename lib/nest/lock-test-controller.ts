import type { LockStore } from '../core/seam/lock-store.js';
import type { LockTelemetry } from '../core/words/lock-telemetry.js';

/** What `LockModule.forTesting()` takes its stores from: a `LockTesting` of `nestjs-distributed-lock/testing`. */
export interface LockTestController {
  /** The stores of those names. */
  storesFor(names: readonly string[]): Readonly<Record<string, LockStore>>;
  /** What follows their locks. */
  readonly telemetry: LockTelemetry;
}

/** The options of `LockModule.forTesting()`. */
export interface LockTestOptions {
  /** The stores besides `default` that the code under test names. Default: none. */
  storeNames?: readonly string[] | undefined;
  /** What makes faults and tells which locks were taken: `new LockTesting()`. Default: stores in memory without it. */
  controller?: LockTestController | undefined;
}
