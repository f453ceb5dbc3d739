/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import type { Edit } from '../support/defective.js';
import { Random, seedsOf } from '../support/random.js';
import type { Host } from './quorum/host.js';
import type { Participant } from './quorum/participant.js';
import { QuorumWorld, type Conditions } from './quorum/quorum-world.js';
import { buildQuorum, type LoadLibrary } from './quorum/simulated-library.js';

const RUNS = 25;
/** So many histories find each of the defects. */
const MOST_RUNS = 300;

const MEMBERS = 'lib/quorum/members';
const DEFECTS: Readonly<Record<string, Edit>> = {
  'a server that does not count renews a lock': ['lib/quorum/renewing.ts', 'if (!counts) {', 'if (false) {'],
  'a server that remembers that it counts does so, whatever others say': [
    `${MEMBERS}/standing.ts`,
    'there.every((other) => hasPlace(other, overview))',
    'true',
  ],
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

/** The longest lease of directed histories. */
const LONGEST_MS = 20_000;

/** A quiet world, and how time passes there. */
function quietWorld(load: LoadLibrary, longestLeaseMs = LONGEST_MS): readonly [QuorumWorld, (ms: number) => Promise<void>] {
  const world = new QuorumWorld(load, { ...conditionsOf(1), longestLeaseMs, processes: 0 }, 1);
  world.isQuiet = true;
  return [world, (ms) => world.play(world.timeline.now + ms)];
}

/** The events for two processes while they have different lists. */
interface Beside {
  /** Whether the holder stands still, so many milliseconds after a moment at which it has the lock. */
  readonly standsAfterMs?: number;
  /** For how long the other one does not reach the first of the servers that they share. */
  readonly slowMs?: number;
  /** How long after its start the other one stands still, until a moment before it reaches that server. */
  readonly lateAfterMs?: number;
}

/**
 * A process has the lock by a new server and the first server that it shares with another list; the second shared
 * server has forgotten what the process reported. Resolves to whether a process that starts with the other list waits
 * for the lock.
 */
async function waitsBeside(load: LoadLibrary, { standsAfterMs, slowMs = 0, lateAfterMs }: Beside): Promise<boolean> {
  const longestLeaseMs = LONGEST_MS;
  const [world, pass] = quietWorld(load);
  const { timeline } = world;
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
  late.linkTo(shared).refuse(lateAfterMs ?? slowMs);
  if (lateAfterMs !== undefined) {
    await pass(lateAfterMs);
    late.linkTo(shared).refuse(2_560);
    late.pause(2_500);
  }
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
      defect: [`${MEMBERS}/report-times.ts`, 'return 2 * recentMs(longestLeaseMs) + longestLeaseMs;', 'return longestLeaseMs;'],
    },
    {
      when: 'though the server that knows of it answers later than the others',
      histories: [{ slowMs: 500 }],
      defect: [`${MEMBERS}/membership.ts`, 'const OTHERS_MS = 2_000;', 'const OTHERS_MS = 0;'],
    },
    {
      when: 'though it stands still until a moment before that server answers',
      histories: [500, 700, 900].map((lateAfterMs) => ({ lateAfterMs })),
      defect: [`${MEMBERS}/membership.ts`, 'const MOST_STILL_MS = 1_500;', 'const MOST_STILL_MS = Infinity;'],
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

/**
 * A process does not reach one of the two servers that it shares with a new list, and has told only the other one which
 * servers it counts. That server is then lost. Resolves to whether a process with the new list, which is there already
 * or not, waits for the lease.
 */
async function waitsWithoutWitness(load: LoadLibrary, isEmpty: boolean, isThere: boolean): Promise<boolean> {
  const longestLeaseMs = 60_000;
  const [world, pass] = quietWorld(load, longestLeaseMs);
  const { timeline } = world;
  const [shared, other, replaced, added] = Array.from({ length: 4 }, () => world.newHost()) as [Host, Host, Host, Host];
  const before = world.newParticipant([shared, other, replaced]);
  void before.keep(longestLeaseMs);
  await pass(10_000);
  const first = world.newParticipant([shared, other, added]);
  void first.store.health();
  await pass(5_000);
  before.linkTo(other).refuse(1_000_000);
  await pass(130_000);
  expect(before.trustedUntil).toBeGreaterThan(timeline.now + longestLeaseMs * 0.95);
  shared.kill();
  if (isEmpty) {
    before.pause(1_000_000);
    shared.start();
  }
  const late = isThere ? first : world.newParticipant([shared, other, added]);
  void late.keep(longestLeaseMs);
  await world.play(before.trustedUntil);
  const waits = late.trustedUntil === 0;
  before.crash();
  await pass(200_000);
  expect(late.trustedUntil).toBeGreaterThan(0);
  return waits;
}

test('what only a server that is lost could tell is waited for, but for a defect', async () => {
  const from = "return inMs > 0 ? { why: 'unheard', inMs } : { counts: 'again' };";
  const [load, defective] = [await buildQuorum(), await buildQuorum([[`${MEMBERS}/standing.ts`, from, "return { counts: 'again' };"]])];
  const playAll = (library: LoadLibrary): Promise<boolean[]> =>
    Promise.all([false, true].flatMap((isEmpty) => [false, true].map((isThere) => waitsWithoutWitness(library, isEmpty, isThere))));
  expect(await playAll(load)).not.toContain(false);
  expect(await playAll(defective)).toContain(false);
}, 600_000);

/**
 * As above, but the server that is lost goes on for a minute in which the waiting process stands still, a moment after
 * it was cut off from the server. Resolves to whether that process waits for the lease: it does not know the reports to
 * the server in this minute.
 */
async function waitsAfterPause(load: LoadLibrary): Promise<boolean> {
  const longestLeaseMs = 60_000;
  const [world, pass] = quietWorld(load, longestLeaseMs);
  const { timeline } = world;
  const [other, shared, replaced, added] = Array.from({ length: 4 }, () => world.newHost()) as [Host, Host, Host, Host];
  const before = world.newParticipant([other, shared, replaced]);
  void before.keep(longestLeaseMs);
  await pass(10_000);
  const waiting = world.newParticipant([other, shared, added]);
  void waiting.store.health();
  await pass(5_000);
  before.linkTo(other).refuse(1_000_000);
  await pass(105_000);
  waiting.linkTo(shared).refuse(20_000);
  await pass(19_000);
  waiting.pause(70_000);
  await pass(69_500);
  shared.kill();
  void waiting.keep(longestLeaseMs);
  await world.play(before.trustedUntil);
  const waits = waiting.trustedUntil === 0;
  before.crash();
  await pass(200_000);
  expect(waiting.trustedUntil).toBeGreaterThan(timeline.now);
  return waits;
}

test('silence counts only while the process runs, but for a defect', async () => {
  const edit: Edit = [`${MEMBERS}/membership.ts`, 'Math.min(member.silentMs, ranMs)', 'member.silentMs'];
  expect(await waitsAfterPause(await buildQuorum())).toBe(true);
  expect(await waitsAfterPause(await buildQuorum([edit]))).toBe(false);
}, 600_000);

/**
 * The machine of a process sleeps while the list is changed. Resolves to whether it gets the lock that another process
 * has by the new list.
 */
async function overtakesAsleep(load: LoadLibrary): Promise<boolean> {
  const longestLeaseMs = 60_000;
  const [world, pass] = quietWorld(load, longestLeaseMs);
  const { timeline } = world;
  const [shared, other, replaced, added] = Array.from({ length: 4 }, () => world.newHost()) as [Host, Host, Host, Host];
  const asleep = world.newParticipant([shared, other, replaced]);
  await tryOnce(world, asleep);
  await pass(15_000);
  const sleeping = asleep.sleepFor(200_000);
  const holder = world.newParticipant([shared, other, added]);
  void holder.store.health();
  timeline.after(190_000, () => {
    holder.linkTo(shared).refuse(20_000);
    void holder.keep(longestLeaseMs);
  });
  await sleeping;
  expect(holder.trustedUntil).toBeGreaterThan(timeline.now);
  let overtakes = false;
  while (!overtakes && timeline.now < 240_000) {
    holder.linkTo(shared).refuse(20_000);
    overtakes = (await tryOnce(world, asleep)) && timeline.now < holder.trustedUntil;
  }
  holder.crash();
  asleep.crash();
  return overtakes;
}

test('a process whose machine slept while the list was changed does not count what it counted before, but for a defect', async () => {
  const from = 'this.#counts &&= serverMs < this.#countsUntil;';
  const [load, defective] = [await buildQuorum(), await buildQuorum([[`${MEMBERS}/session.ts`, from, '']])];
  expect(await overtakesAsleep(load)).toBe(false);
  expect(await overtakesAsleep(defective)).toBe(true);
}, 600_000);

/** Tries once; whether the lock was granted, and then released. */
async function tryOnce(world: QuorumWorld, process: Participant): Promise<boolean> {
  const id = `try-${tries++}`;
  const hold = { key: 'k', owner: id, id, fence: 0, fences: 1, ttlMs: 10_000, limitMs: 1_000, lingering: false, unanswered: true, by: id };
  const outcomes: boolean[] = [];
  const attempt = async (): Promise<boolean> => {
    const reply = await process.store.acquire(hold).catch(() => undefined);
    await process.store.release(hold).catch(() => undefined);
    return reply?.fence !== undefined;
  };
  void attempt().then((granted) => outcomes.push(granted));
  while (outcomes.length === 0) {
    await world.play(world.timeline.now + 20);
  }
  return outcomes[0] === true;
}
let tries = 0;

/**
 * The longest time in which a process that tries all the time could not have a lock, in milliseconds, while `steps`
 * happen.
 */
async function longestGap(
  world: QuorumWorld,
  process: Participant,
  steps: readonly (readonly [ms: number, step: () => void])[],
): Promise<number> {
  const { timeline } = world;
  let at = timeline.now;
  for (const [ms, step] of steps) {
    timeline.after((at += ms) - timeline.now, step);
  }
  let [hadAt, longest] = [timeline.now, 0];
  while (timeline.now < at) {
    if (await tryOnce(world, process)) {
      longest = Math.max(longest, timeline.now - hadAt);
      hadAt = timeline.now;
    }
  }
  return Math.max(longest, timeline.now - hadAt);
}

describe('locks can be had soon again', () => {
  const start = async (
    longestLeaseMs = LONGEST_MS,
  ): Promise<readonly [QuorumWorld, Participant, readonly Host[], (ms: number) => Promise<void>]> => {
    const [world, pass] = quietWorld(await buildQuorum(), longestLeaseMs);
    const hosts = Array.from({ length: 3 }, () => world.newHost());
    const participant = world.newParticipant(hosts);
    void participant.store.health();
    await pass(10_000);
    return [world, participant, hosts, pass];
  };

  const nothing = (): void => undefined;
  const restarts = (host: Host, forMs: number): (readonly [number, () => void])[] => [
    [100, () => host.kill()],
    [2_000, () => host.start()],
    [forMs, nothing],
  ];

  test('where servers are restarted one after the other, each once the one before counts', async () => {
    const [world, participant, hosts] = await start();
    const steps = hosts.flatMap((host) => restarts(host, 60_000));
    expect(await longestGap(world, participant, steps)).toBeLessThan(10_000);
  }, 600_000);

  test('where a second server restarts before the first one counts', async () => {
    const longestLeaseMs = 60_000;
    const [world, participant, [, first, second], pass] = await start(longestLeaseMs);
    await pass(100_000);
    const steps = [first, second].flatMap((host) => restarts(host as Host, longestLeaseMs * 1.25));
    // The first server counts when the reports about its earlier run are forgotten, and the second one knows of other
    // servers what it was told.
    expect(await longestGap(world, participant, [...steps, [60_000, nothing]])).toBeLessThan(1.25 * longestLeaseMs);
  }, 600_000);

  test('where the machine of the process slept for longer than its reports hold', async () => {
    const [world, participant, , pass] = await start(60_000);
    await pass(30_000);
    await participant.sleepFor(200_000);
    expect(await longestGap(world, participant, [[20_000, nothing]])).toBeLessThan(5_000);
  }, 600_000);

  test('where a server is emptied, though another one answers and says nothing of its run', async () => {
    const [world, participant, [emptied, mute], pass] = await start();
    await pass(60_000);
    const votesAgain = async (): Promise<boolean> => {
      let votes = false;
      void participant.store.health().then(({ members }) => (votes = members?.filter(({ voting }) => voting).length === 2));
      await pass(1_000);
      return votes;
    };
    // INFO is refused from now on, on a new connection.
    Object.defineProperty(mute, 'info', {
      get() {
        throw new Error('NOPERM');
      },
    });
    participant.linkTo(mute as Host).break();
    await pass(10_000);
    emptied?.kill();
    await pass(2_000);
    emptied?.start();
    const since = world.timeline.now;
    while (!(await votesAgain()) && world.timeline.now < since + 200_000) {}
    expect(world.timeline.now - since).toBeLessThan(2 * LONGEST_MS + 10_000);
  }, 600_000);

  test('where a server is back that was cut off for long, and another one has just crashed', async () => {
    const [world, participant, [, crashing, cutOff], pass] = await start();
    participant.linkTo(cutOff as Host).refuse(60_000);
    await pass(59_000);
    crashing?.kill();
    expect(await longestGap(world, participant, [[30_000, nothing]])).toBeLessThan(8_000);
  }, 600_000);
});
