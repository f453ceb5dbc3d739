import { stop } from 'esbuild';
import * as fc from 'fast-check';
import { isLong } from '../support/random.js';
import { DEFECTS } from './properties/defects.js';
import { buildLibrary } from './properties/library.js';
import { scenariosOf, type Scenario } from './properties/scenario.js';
import { makeSlots, World, type Slot } from './properties/world.js';

const PROCESSES = 3;
const RUNS = isLong ? 10_000 : 2_500;
/** A slow machine runs fewer of them. */
const LONGEST_MS = 75_000;
/** Defects meet the same scenarios each time, so that one that is found is always found, within this many. */
const DEFECT_RUNS = 2_000;
/** A failure names its seed and its path: with both, what it was shrunk to runs again at once. */
const { MODEL_SEED, MODEL_RUNS, MODEL_PATH } = process.env;

/** Runs a scenario; a second time, for what led to it, where it goes wrong. */
async function play(slots: readonly Slot[], scenario: Scenario): Promise<void> {
  try {
    await new World(slots, scenario).run();
  } catch (error) {
    const trace: string[] = [];
    await new World(slots, scenario, trace).run().catch(() => undefined);
    throw new Error(`${String(error)}\n${trace.slice(-100).join('\n')}`, { cause: error });
  }
}

describe('the core', () => {
  afterAll(() => stop());

  test.each([
    ['whatever the network, the clocks and the callers do', false],
    ['also where listeners work for long, connections are reset and machines sleep', true],
  ])(
    'keeps its promises %s',
    async (_, isHard) => {
      const slots = makeSlots(await buildLibrary(), PROCESSES);
      const seed = Number(MODEL_SEED ?? Math.floor(Math.random() * 1_000_000_000));
      let runs = 0;
      const property = fc.asyncProperty(scenariosOf(isHard), (scenario) => {
        runs++;
        return play(slots, scenario);
      });
      await fc.assert(property, {
        seed,
        numRuns: Number(MODEL_RUNS ?? RUNS),
        interruptAfterTimeLimit: LONGEST_MS,
        ...(MODEL_PATH && { path: MODEL_PATH }),
      });
      process.stdout.write(`${runs} scenarios of MODEL_SEED=${seed}.\n`);
    },
    2 * LONGEST_MS,
  );

  test.each(DEFECTS)(
    'the scenarios find out when $defect',
    async ({ finding, edits, seed = 1 }) => {
      const slots = makeSlots(await buildLibrary(edits), PROCESSES);
      const property = fc.asyncProperty(scenariosOf(false), (scenario) => new World(slots, scenario).run());
      const { errorInstance } = await fc.check(property, { seed, numRuns: DEFECT_RUNS, endOnFailure: true });
      expect(String(errorInstance)).toMatch(finding);
    },
    LONGEST_MS,
  );
});
