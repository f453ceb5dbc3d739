/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import type { Edit } from '../support/defective.js';
import { Random, seedsOf } from '../support/random.js';
import { Processes, World, type Conditions } from './deadlocks/world.js';
import { buildLibrary } from './properties/library.js';

const RUNS = 2_000;
const MOST_PROCESSES = 4;

/** Any conditions; in some, waits end while probes are on their way. */
function conditionsOf(seed: number): Conditions {
  const random = new Random(-seed);
  const isPatient = random.chance(0.3);
  return {
    processes: random.whole(2, MOST_PROCESSES),
    calls: random.whole(3, 8),
    keys: random.whole(3, 5),
    waitMs: isPatient ? [120_000, 120_000] : [300, 4_000],
    isPatient,
    lateness: random.pick([0, 0.2, 0.5, 0.8]),
    recheckMs: random.pick([2_000, 2_000, 20]),
  };
}

async function processesWith(edits: readonly Edit[] = []): Promise<Processes> {
  return new Processes(await buildLibrary(edits), MOST_PROCESSES);
}

async function play(processes: Processes, seed: number): Promise<number> {
  const world = new World(processes, conditionsOf(seed), seed);
  try {
    await world.run();
  } catch (error) {
    throw new Error(`MODEL_SEED=${seed}: ${String(error)}`, { cause: error });
  }
  return world.deadlocks;
}

/** The first failure within 5,000 histories from that seed on. */
async function firstFailure(processes: Processes, first: number): Promise<unknown> {
  for (let seed = first; seed < first + 5_000; seed++) {
    try {
      await play(processes, seed);
    } catch (error) {
      return error;
    }
  }
  return undefined;
}

describe('the search of deadlocks', () => {
  afterAll(() => stop());

  test('reports every cycle once, and none that was none', async () => {
    const processes = await processesWith();
    let deadlocks = 0;
    for (const seed of seedsOf(RUNS)) {
      deadlocks += await play(processes, seed);
    }
    process.stdout.write(`${deadlocks} deadlocks.\n`);
    expect(deadlocks).toBeGreaterThan(0);
  }, 1_200_000);

  const FILE = 'lib/operate/peers/deadlock-search.ts';

  test.each<{ defect: string; finding: RegExp; edits: readonly Edit[]; first?: number }>([
    {
      defect: 'a cycle is proven neither by a second lap nor by the store',
      // About one history in several thousand shows it.
      first: 100_001,
      finding: /never such a cycle/,
      edits: [
        [FILE, 'probe.lap === 1', 'probe.lap === 0'],
        [FILE, 'probe.lap === 2 && yielding', 'probe.lap === 1 && yielding'],
        [FILE, 'probe.lap === 2)', 'probe.lap === 1)'],
        [FILE, 'lap > 1 &&', 'lap > 3 &&'],
        [FILE, '!isReal || ', ''],
      ],
    },
    {
      defect: 'each call of a cycle gives way',
      finding: /Two calls of one cycle|did not get its lock last/,
      edits: [[FILE, 'yielding(cycle).wait === probe.origin', 'cycle.length > 0']],
    },
    {
      defect: 'a cycle is looked for once only',
      finding: /ended with 'busy'/,
      edits: [[FILE, 'this.#due.set(acquisition, this.#next());\n      void', 'this.#due.set(acquisition, Infinity);\n      void']],
    },
    {
      defect: 'the call that got its lock first gives way',
      finding: /did not get its lock last/,
      edits: [['lib/operate/peers/probe-message.ts', 'step.fence > last.fence', 'step.fence < last.fence']],
    },
    {
      defect: 'a call that is to give way while it asks the store waits on',
      finding: /ms to find the cycle|ended with 'busy'/,
      edits: [['lib/core/entering/waiters.ts', 'if (acquisition.withdrawn) {', 'if (false) {']],
    },
  ])(
    'is not right where $defect',
    async ({ finding, edits, first = 1 }) => {
      const processes = await processesWith(edits);
      expect(String(await firstFailure(processes, first))).toMatch(finding);
    },
    600_000,
  );
});
