/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import * as fc from 'fast-check';
import { isLong, SEED } from '../support/random.js';
import { buildLibrary } from './properties/library.js';
import { callsOf } from './properties/calls.js';
import { crowds, relays } from './properties/crowds.js';
import { PLAYED } from './pairs.js';
import { Meetings } from './properties/features.js';
import type { Scenario } from './properties/scenario.js';
import { together } from './properties/together.js';
import { makeSlots, World, type Slot } from './properties/world.js';

const RUNS = isLong ? 3_000 : 300;
/** A slow machine plays fewer of them. */
const LONGEST_MS = isLong ? 60_000 : 10_000;
/** Another seed plays other scenarios. A failure names its seed and its path: with both, what it was shrunk to is played again at once. */
const { MODEL_RUNS, MODEL_PATH } = process.env;

/** Runs a scenario; a second time, for what led to it, where it goes wrong. */
async function play(slots: readonly Slot[], scenario: Scenario, meetings: Meetings): Promise<void> {
  try {
    await new World(slots, scenario, undefined, meetings).run();
  } catch (error) {
    const trace: string[] = [];
    await new World(slots, scenario, trace).run().catch(() => undefined);
    throw new Error(`${String(error)}\n${trace.slice(-100).join('\n')}`, { cause: error });
  }
}

describe('the core', () => {
  afterAll(() => stop());

  test.each([
    ['whatever the network, the clocks and the callers do', callsOf(false), []],
    ['also where listeners work for long, connections are reset and machines sleep', callsOf(true), []],
    ['while crowds queue for one key', crowds, []],
    ['while leases serve one call after the other', relays, []],
    ['whichever features are used together', together, PLAYED],
  ])(
    'keeps its promises %s',
    async (_, scenarios, played) => {
      const slots = makeSlots(await buildLibrary());
      let runs = 0;
      let playing: Promise<void> | undefined;
      const meetings = new Meetings();
      const property = fc.asyncProperty(scenarios, (scenario) => {
        runs++;
        return (playing = play(slots, scenario, meetings));
      });
      try {
        await fc.assert(property, {
          seed: SEED,
          numRuns: Number(MODEL_RUNS ?? RUNS),
          interruptAfterTimeLimit: LONGEST_MS,
          ...(MODEL_PATH && { path: MODEL_PATH }),
        });
      } catch (error) {
        await playing?.catch(() => undefined);
        throw error;
      }
      // At its time limit fast-check leaves the scenario that it plays. It would play on beside those of the next property, which hear what
      // it publishes; and what it finds counts.
      await playing?.catch((error: unknown) => {
        throw new Error(`MODEL_SEED=${SEED} MODEL_PATH=${runs - 1}: ${String(error)}`, { cause: error });
      });
      process.stdout.write(`${runs} scenarios of MODEL_SEED=${SEED}.\n`);
      if (isLong && runs >= RUNS) {
        expect(played.filter(([one, other]) => !meetings.have(one, other))).toEqual([]);
      }
    },
    2 * LONGEST_MS,
  );
});
