import type { Clock } from '../../lib/core/seam/time';

/** A clock that tests set. */
export class ManualClock implements Clock {
  now = 1_000_000;
  wallAheadMs = 1e12;
  monotonic(): number {
    return this.now;
  }
  wall(): number {
    return this.now + this.wallAheadMs;
  }
}
