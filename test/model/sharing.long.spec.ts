/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import * as fc from 'fast-check';
import { SEED } from '../support/random.js';
import { buildLibrary } from './properties/library.js';
import { play } from './properties/played-world.js';
import { makeSlots } from './properties/world.js';
import { DEFECTS } from './sharing/defects.js';
import { sharing } from './sharing/scenario.js';
import { SharingWorld } from './sharing/world.js';

const { MODEL_RUNS, MODEL_PATH } = process.env;
/** Each defect meets the same scenarios in each run, and shows within so many. */
const RUNS_OF_DEFECTS = 300;

describe('core with readers and permits', () => {
  afterAll(() => stop());

  test('keeps its promises whatever the network, the clocks and the callers do', async () => {
    const slots = makeSlots(await buildLibrary());
    const property = fc.asyncProperty(sharing, (scenario) => play((trace) => new SharingWorld(slots, scenario, trace)));
    await fc.assert(property, { seed: SEED, numRuns: Number(MODEL_RUNS ?? 250), ...(MODEL_PATH && { path: MODEL_PATH }) });
  }, 240_000);

  test.each(DEFECTS)(
    'does not where $defect',
    async ({ edits, finding }) => {
      const slots = makeSlots(await buildLibrary(edits));
      const property = fc.asyncProperty(sharing, (scenario) => new SharingWorld(slots, scenario).run());
      const { errorInstance } = await fc.check(property, { seed: 1, numRuns: RUNS_OF_DEFECTS, endOnFailure: true });
      expect(String(errorInstance)).toMatch(finding);
    },
    240_000,
  );
});
