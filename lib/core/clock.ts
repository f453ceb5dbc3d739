/** The two clocks core reads; tests pass their own. */
export interface Clock {
  /** Milliseconds that only grow; stands still while the machine is suspended. Decides about leases. */
  monotonic(): number;
  /** Milliseconds since 1970; may jump. Only ever asks for an early renewal. */
  wall(): number;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
};
