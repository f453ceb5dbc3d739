import { Random } from '../support/random.js';
import { FAULTS, type Fault, type FaultName } from './faults.js';

/** One fault of a run: when, which, what it strikes, and for how long, in milliseconds since the start of the run. */
export interface Step {
  readonly at: number;
  readonly fault: FaultName;
  /** A worker, a key, or `servers`. */
  readonly target: string;
  readonly ms: number;
  /** For what else the fault needs: between 0 and 1. */
  readonly chance: number;
}

export interface PlanOptions {
  readonly seed: number;
  readonly ms: number;
  readonly leaseMs: number;
  readonly faults: readonly FaultName[];
  readonly workers: readonly string[];
  readonly keys: readonly string[];
}

/** Between two faults, on average, in milliseconds: more than five a second. */
const GAP_MS = 90;
/**
 * The time of a target between two faults that last, in leases: it has to recover, or the later faults strike nobody
 * who is well.
 */
const RESPITE = 0.3;

/** The faults of a run, which its seed alone decides. */
export function planFaults({ seed, ms, leaseMs, faults, workers, keys }: PlanOptions): Step[] {
  const random = new Random(seed);
  const steps: Step[] = [];
  const busyUntil = new Map<string, number>();
  for (let at = leaseMs; at < ms && faults.length > 0; at += random.between(0, 2 * GAP_MS)) {
    const fault = choose(random, faults);
    const { place, lasts }: Fault = FAULTS[fault];
    const target = place === 'servers' ? place : random.pick(place === 'key' ? keys : workers);
    const lastsMs = random.between(...lasts) * leaseMs;
    const chance = random.next();
    const struck = `${place} ${target}`;
    if (at >= (busyUntil.get(struck) ?? 0) && at + lastsMs < ms) {
      steps.push({ at: Math.round(at), fault, target, ms: Math.round(lastsMs), chance });
      busyUntil.set(struck, at + lastsMs + (lastsMs > 0 ? RESPITE * leaseMs : 0));
    }
  }
  return steps;
}

function choose(random: Random, faults: readonly FaultName[]): FaultName {
  let choice = random.between(
    0,
    faults.reduce((sum, name) => sum + FAULTS[name].weight, 0),
  );
  for (const name of faults) {
    if ((choice -= FAULTS[name].weight) < 0) {
      return name;
    }
  }
  return faults.at(-1) as FaultName;
}
