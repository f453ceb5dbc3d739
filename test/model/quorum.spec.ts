/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import type { Edit } from '../support/defective.js';
import { Random, seedsOf } from '../support/random.js';
import type { Host } from './quorum/host.js';
import { QuorumWorld, type Conditions } from './quorum/quorum-world.js';
import { buildQuorum, type LoadLibrary } from './quorum/simulated-library.js';

const RUNS = 40;
/** As many histories find each of the defects. */
const MOST_RUNS = 400;

const MEMBERS = 'lib/stores/quorum/members';
const DEFECTS: Readonly<Record<string, Edit>> = {
  'a server that does not count renews a lock': {
    file: 'lib/stores/quorum/renewing.ts',
    from: 'if (!counts) {',
    to: 'if (false) {',
  },
  'a majority does not wait for the others': {
    file: `${MEMBERS}/membership.ts`,
    from: 'const OTHERS_MS = 2_000;',
    to: 'const OTHERS_MS = 0;',
  },
  'all servers count': { file: `${MEMBERS}/membership.ts`, from: 'this.#members[place]?.counts === true', to: 'true' },
  'a server that restarted counts at once': { file: `${MEMBERS}/standing.ts`, from: 'if (knownMs >= waitMs ||', to: 'if (knownMs >= 0 ||' },
  'a server that remembers that it counts does so, whatever others say': {
    file: `${MEMBERS}/standing.ts`,
    from: 'there.every((other) => hasPlace(other, survey))',
    to: 'true',
  },
  'what others are about to count is not looked at': { file: `${MEMBERS}/standing.ts`, from: '/^(vote|want):/', to: '/^vote:/' },
  'servers of other lists are not looked at': {
    file: `${MEMBERS}/standing.ts`,
    from: 'strangersIn(there, runs) + runs.size > standings.length',
    to: 'false',
  },
  'what was heard long ago is trusted': {
    file: `${MEMBERS}/member.ts`,
    from: 'return now - at < recentMs(this.#members.longestLeaseMs);',
    to: 'return true;',
  },
  'a majority counts though one does not answer that has not long ago': {
    file: `${MEMBERS}/membership.ts`,
    from: 'answered[at] || !standing',
    to: 'true',
  },
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

async function play(load: LoadLibrary, seed: number): Promise<number> {
  const world = new QuorumWorld(load, conditionsOf(seed), seed);
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
      for (const seed of seedsOf(MOST_RUNS)) {
        await play(load, seed);
      }
    };
    await expect(playAll()).rejects.toThrow(/has the lock/);
  },
  1_200_000,
);

/** A process stands still right after a renewal, without a server that it shares with another list; whether a process with that list waits. */
async function standStill(load: LoadLibrary, offsetMs: number): Promise<boolean> {
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
  // Its votes are those of the first server and of the new one. What it said to the second one is forgotten.
  holder.links.find(({ host }) => host === other)?.refuse(1_000_000);
  await pass(60_000 + offsetMs);
  const { trustedUntil } = holder;
  expect(trustedUntil).toBeGreaterThan(timeline.now + longestLeaseMs * 0.95);
  holder.pause(1_000_000);
  const late = world.newParticipant([shared, other, replaced]);
  void late.keep(longestLeaseMs);
  await world.play(trustedUntil);
  const waits = late.trustedUntil === 0;
  await pass(100_000);
  expect(late.trustedUntil).toBeGreaterThan(0);
  return waits;
}

/** Between two reports of the process. */
const OFFSETS_MS = [0, 1_500, 3_000, 4_500];

test('others know of the servers of a process for as long as its lease may last', async () => {
  const load = await buildQuorum();
  for (const offsetMs of OFFSETS_MS) {
    expect(await standStill(load, offsetMs)).toBe(true);
  }
}, 600_000);

test('it is found that they forget them before', async () => {
  const to = 'return longestLeaseMs;';
  const load = await buildQuorum([{ file: `${MEMBERS}/membership.ts`, from: 'return 2 * recentMs(longestLeaseMs) + longestLeaseMs;', to }]);
  const waits = await Promise.all(OFFSETS_MS.map((offsetMs) => standStill(load, offsetMs)));
  expect(waits).toContain(false);
}, 600_000);
