/** The two clocks core reads; tests pass their own. */
export interface Clock {
  /** Milliseconds that only grow; stands still while the machine is suspended. Decides about leases. */
  monotonic(): number;
  /**
   * Milliseconds since 1970; may jump, and runs on while the machine is suspended. Past the end of a lease it casts
   * doubt on it.
   */
  wall(): number;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
};
