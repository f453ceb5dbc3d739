import type { CycleCall } from '../../core/words/cycle-call.js';
import type { Fields } from './shape.js';

/** One call on the way of a probe. */
export interface ProbeStep extends CycleCall {
  /** Names its wait: `Acquisition.waitId`. */
  readonly wait: string;
  /** The fence of the call that has the lock which this call is inside of: with the key it names this one hold. */
  readonly fence: number;
}

/**
 * A message that goes from a waiting call to the holder of the lock that it waits for, from there to the holders of the
 * locks that this holder waits for, and so on. A probe that comes back has found a cycle. The cycle is a deadlock only
 * if the probe comes back from its second lap too.
 */
export interface Probe {
  readonly kind: 'probe';
  readonly id: string;
  /**
   * 1: the probe looks for a cycle. 2: it goes along the cycle once more, to prove it. 3: it goes along the cycle to
   * the call that gives way.
   */
  readonly lap: number;
  /** The wait that it started from. */
  readonly origin: string;
  /** The lock whose holder is to look: its key, and its fence in the store. */
  readonly key: string;
  readonly fence: number;
  /** The steps of this lap. */
  readonly path: readonly ProbeStep[];
  /** The steps of the lap before; empty in the first. */
  readonly cycle: readonly ProbeStep[];
}

/** The most calls of a cycle that is found. */
export const MOST_STEPS = 16;

const STEPS = {
  list: {
    process: 'text',
    site: 'text',
    wait: 'text',
    waitsFor: 'text',
    waitedMs: 'ms',
    holds: 'text',
    fence: 'count',
    heldMs: 'ms',
  },
  most: MOST_STEPS,
} as const;

export const PROBE: Fields = {
  kind: ['probe'],
  id: 'text',
  lap: 'count',
  origin: 'text',
  key: 'text',
  fence: 'count',
  path: STEPS,
  cycle: STEPS,
};

/**
 * The call that gives way: the call that got its lock last has done the least work. All who find a cycle choose the
 * same call.
 */
export function yielding(cycle: readonly ProbeStep[]): ProbeStep {
  return cycle.reduce((last, step) => (step.fence > last.fence || (step.fence === last.fence && step.wait > last.wait) ? step : last));
}

/** A call of a cycle, as errors and operators show it. */
export function cycleCallOf({ process, site, holds, heldMs, waitsFor, waitedMs }: ProbeStep): CycleCall {
  return { process, site, holds, heldMs, waitsFor, waitedMs };
}
