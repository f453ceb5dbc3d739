import type { CycleCall } from '../core/words/cycle-call.js';
import type { ProbeStep } from './probe-message.js';

/** The call that gives way: the one that got its lock last has done the least work. All who find a cycle choose the same one. */
export function yielding(cycle: readonly ProbeStep[]): ProbeStep {
  return cycle.reduce((last, step) => (step.fence > last.fence || (step.fence === last.fence && step.wait > last.wait) ? step : last));
}

/** A call of a cycle, as errors and operators show it. */
export function cycleCallOf({ process, site, holds, heldMs, waitsFor, waitedMs }: ProbeStep): CycleCall {
  return { process, site, holds, heldMs, waitsFor, waitedMs };
}
