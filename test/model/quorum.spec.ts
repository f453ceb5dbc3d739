/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import type { Edit } from '../support/defective.js';
import { Random, seedsOf } from '../support/random.js';
import type { Host } from './quorum/host.js';
import { QuorumWorld, type Conditions } from './quorum/quorum-world.js';
import { buildQuorum, type LoadLibrary } from './quorum/simulated-library.js';

const RUNS = 25;
/** So many histories find each of the defects. */
const MOST_RUNS = 300;

const MEMBERS = 'lib/stores/quorum/members';
const DEFECTS: Readonly<Record<string, Edit>> = {
  'a server that does not count renews a lock': {
    file: 'lib/stores/quorum/renewing.ts',
    from: 'if (!counts) {',
    to: 'if (false) {',
  },
  'a server that remembers that it counts does so, whatever others say': {
    file: `${MEMBERS}/standing.ts`,
    from: 'there.every((other) => hasPlace(other, survey))',
    to: 'true',
  },
};
/** Those under which defects show soonest. */
const HARSH: Conditions = {
  servers: 3,
  processes: 3,
  longestLeaseMs: 2_000,
  latencyMs: 50,
  forMs: 60_000,
  everyMs: 500,
  replaces: true,
};

function conditionsOf(seed: number): Conditions {
  const random = new Random(-seed);
  return {
    servers: random.pick([3, 3, 5]),
    processes: random.whole(2, 4),
    longestLeaseMs: random.pick([2_000, 6_000]),
    latencyMs: random.pick([5, 50]),
    forMs: 60_000,
    everyMs: random.pick([700, 3_000]),
    replaces: random.chance(0.6),
  };
}

async function play(load: LoadLibrary, seed: number, conditions = conditionsOf(seed)): Promise<number> {
  const world = new QuorumWorld(load, conditions, seed);
  try {
    await world.run();
    await world.settle();
  } catch (error) {
    throw new Error(`MODEL_SEED=${seed}: ${String(error)}`, { cause: error });
  }
  return world.grants;
}

afterAll(() => stop());

test('no two processes trust a lock at once, whatever happens to the servers of a quorum and their list; then all count again', async () => {
  const load = await buildQuorum();
  const seeds = seedsOf(RUNS);
  let grants = 0;
  for (const seed of seeds) {
    grants += await play(load, seed);
  }
  expect(grants).toBeGreaterThan(seeds.length);
}, 1_200_000);

test.each(Object.entries(DEFECTS))(
  'it is found that %s',
  async (_, edit) => {
    const load = await buildQuorum([edit]);
    const playAll = async (): Promise<void> => {
      for (let seed = 1; seed <= MOST_RUNS; seed++) {
        await play(load, seed, HARSH);
      }
    };
    await expect(playAll()).rejects.toThrow(/has the lock/);
  },
  1_200_000,
);

/** What happens to two processes while they have different lists. */
interface Beside {
  /** Whether the holder stands still, so many milliseconds after a moment at which it has the lock. */
  readonly standsAfterMs?: number;
  /** For how long the other one does not reach the first of the servers that they share. */
  readonly slowMs?: number;
}

/**
 * A process has the lock by a new server and the first one that it shares with another list; the second one has forgotten what it said.
 * Whether a process that starts with the other list waits for the lock.
 */
async function waitsBeside(load: LoadLibrary, { standsAfterMs, slowMs = 0 }: Beside): Promise<boolean> {
  const longestLeaseMs = 20_000;
  const world = new QuorumWorld(load, { ...conditionsOf(1), longestLeaseMs, processes: 0 }, 1);
  world.isQuiet = true;
  const { timeline } = world;
  const pass = (ms: number): Promise<void> => world.play(timeline.now + ms);
  const [shared, other, replaced, added] = Array.from({ length: 4 }, () => world.newHost()) as [Host, Host, Host, Host];
  const before = world.newParticipant([shared, other, replaced]);
  void before.keep(longestLeaseMs);
  await pass(10_000);
  before.crash();
  const holder = world.newParticipant([shared, other, added]);
  void holder.keep(longestLeaseMs);
  await pass(100_000);
  holder.linkTo(other).refuse(1_000_000);
  await pass(60_000 + (standsAfterMs ?? 0));
  expect(holder.trustedUntil).toBeGreaterThan(timeline.now + longestLeaseMs * 0.95);
  if (standsAfterMs !== undefined) {
    holder.pause(1_000_000);
  }
  const late = world.newParticipant([shared, other, replaced]);
  void late.keep(longestLeaseMs);
  late.linkTo(shared).refuse(slowMs);
  await world.play(standsAfterMs === undefined ? timeline.now + longestLeaseMs : holder.trustedUntil);
  const waits = late.trustedUntil === 0;
  holder.crash();
  await pass(100_000);
  expect(late.trustedUntil).toBeGreaterThan(0);
  return waits;
}

describe('a process that starts with another list hears of the one that has the lock', () => {
  test.each<{ when: string; histories: readonly Beside[]; defect: Edit }>([
    {
      when: 'though that one stands still at any moment after a renewal',
      histories: [0, 1_500, 3_000, 4_500].map((standsAfterMs) => ({ standsAfterMs })),
      defect: {
        file: `${MEMBERS}/membership.ts`,
        from: 'return 2 * recentMs(longestLeaseMs) + longestLeaseMs;',
        to: 'return longestLeaseMs;',
      },
    },
    {
      when: 'though the server that knows of it answers later than the others',
      histories: [{ slowMs: 500 }],
      defect: { file: `${MEMBERS}/membership.ts`, from: 'const OTHERS_MS = 2_000;', to: 'const OTHERS_MS = 0;' },
    },
  ])(
    '$when, but for a defect',
    async ({ histories, defect }) => {
      const [load, defective] = [await buildQuorum(), await buildQuorum([defect])];
      const playAll = (library: LoadLibrary): Promise<boolean[]> => Promise.all(histories.map((each) => waitsBeside(library, each)));
      expect(await playAll(load)).not.toContain(false);
      expect(await playAll(defective)).toContain(false);
    },
    600_000,
  );
});
