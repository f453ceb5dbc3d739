import { MUTANTS } from './mutants.js';
import { isLong, seedsOf } from '../support/random.js';
import { Simulation, type Rules } from './simulation.js';

const SEEDS = seedsOf(isLong ? 20_000 : 4_000);
const SLICE = 2_000;
/** Mutants meet the same runs each time, so that one that is found is always found, within this many. */
const MUTANT_RUNS = 2_000;

/** What went wrong in the run of that seed; undefined where nothing did. */
function failureOf(seed: number, rules?: Partial<Rules>, trace?: string[]): string | undefined {
  try {
    new Simulation(seed, rules, trace).run();
    return undefined;
  } catch (error) {
    return String(error);
  }
}

describe('the waiting protocol', () => {
  test.each(Array.from({ length: Math.ceil(SEEDS.length / SLICE) }, (_, slice) => SEEDS.slice(slice * SLICE, (slice + 1) * SLICE)))(
    'keeps its promises in the random runs from seed %i',
    (...seeds) => {
      const seed = seeds.find((tried) => failureOf(tried) !== undefined);
      if (seed !== undefined) {
        // Once more, for what led to it.
        const trace: string[] = [];
        const failure = failureOf(seed, undefined, trace);
        throw new Error(`MODEL_SEED=${seed}: ${failure}\n${trace.slice(-100).join('\n')}`);
      }
    },
  );

  test.each(MUTANTS)('the simulation finds out when $defect', ({ infect, finding, rules }) => {
    const heal = infect?.();
    let failure: string | undefined;
    try {
      for (let seed = 1; failure === undefined && seed <= MUTANT_RUNS; seed++) {
        failure = failureOf(seed, rules);
      }
    } finally {
      heal?.();
    }
    expect(failure).toMatch(finding);
  });
});
