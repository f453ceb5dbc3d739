/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import * as fc from 'fast-check';
import { SEED } from '../support/random.js';
import { buildLibrary } from './properties/library.js';
import { callsOf } from './properties/calls.js';
import { crowds, relays } from './properties/crowds.js';
import { PLAYED } from './pairs.js';
import { Meetings } from './properties/features.js';
import { play } from './properties/played-world.js';
import { together } from './properties/together.js';
import { makeSlots, World } from './properties/world.js';

/** A slow machine plays as many as a quick one: a seed means the same scenarios everywhere. */
const LONGEST_MS = 900_000;
/**
 * Another seed plays other scenarios; `MODEL_RUNS` says how many of each kind. A failure names its seed and its path:
 * with both, the shrunk scenario is played again at once.
 */
const { MODEL_RUNS, MODEL_PATH } = process.env;

describe('the core', () => {
  afterAll(() => stop());

  test.each([
    ['whatever the network, the clocks and the callers do', callsOf(false), 750, []],
    ['also where listeners work for long, connections are reset and machines sleep', callsOf(true), 750, []],
    ['while crowds queue for one key', crowds, 400, []],
    ['while leases serve one call after the other', relays, 300, []],
    ['whichever features are used together', together, 1_000, PLAYED],
  ])(
    'keeps its promises %s',
    async (_, scenarios, count, played) => {
      const slots = makeSlots(await buildLibrary());
      const meetings = new Meetings();
      const numRuns = Number(MODEL_RUNS ?? count);
      await fc.assert(
        fc.asyncProperty(scenarios, (scenario) => play((trace) => new World(slots, scenario, trace, trace ? undefined : meetings))),
        { seed: SEED, numRuns, ...(MODEL_PATH && { path: MODEL_PATH }) },
      );
      process.stdout.write(`${numRuns} scenarios of MODEL_SEED=${SEED}.\n`);
      if (numRuns >= count && MODEL_PATH === undefined) {
        expect(played.filter(([one, other]) => !meetings.have(one, other))).toEqual([]);
      }
    },
    LONGEST_MS,
  );
});
