import { stop } from 'esbuild';
import * as fc from 'fast-check';
import { callsOf } from './properties/calls.js';
import { DEFECTS } from './properties/defects.js';
import { buildLibrary } from './properties/library.js';
import { makeSlots, World } from './properties/world.js';

/** A defect meets the same scenarios each time, so that one that is found is always found, within this many. */
const RUNS = 300;

describe('the scenarios for core', () => {
  afterAll(() => stop());

  test.each(DEFECTS)(
    'find out when $defect',
    async ({ finding, edits, scenarios = callsOf(false), seed = 1 }) => {
      const slots = makeSlots(await buildLibrary(edits));
      const property = fc.asyncProperty(scenarios, (scenario) => new World(slots, scenario).run());
      const { errorInstance } = await fc.check(property, { seed, numRuns: RUNS, endOnFailure: true });
      expect(String(errorInstance)).toMatch(finding);
    },
    240_000,
  );
});
