import { Redis } from 'ioredis';
import { systemClock } from '../../lib/core/clock.js';
import { MOST_HOLDS } from '../../lib/core/most-holds.js';
import { KeyState } from '../../lib/memory/key-state.js';
import { LockTable } from '../../lib/memory/lock-table.js';
import { RedisServer } from '../support/redis-server';
import { replace } from './mutants.js';
import { Random, seedsOf } from '../support/random.js';
import { ScriptedTable, type Stored } from './scripted-table.js';
import { GRAIN_MS, HEARING, KEY, nextStep, take } from './steps.js';

const SEEDS = seedsOf(300);
const STEPS = 40;
const DEFECTS: readonly (readonly [string, string, string])[] = [
  ['gives an expired reservation to the same process again', `redis.call('ZREM', queue, place)`, ''],
  ['never goes before the queue', `passes = ARGV[12] == '1'`, 'passes = false'],
  ['forgets what was released', `redis.call('EXISTS', done) == 1`, 'false'],
  ['takes a process that polls for gone', 'or first[2] % 1 ~= 0', ''],
  ['gives up the turn of another', 'left == 0 and turn == place', 'turn'],
  ['shortens a lease by a ticket', `redis.call('PTTL', lock) < ttl`, 'true'],
  ['shortens a lease by a renewal', `math.max(redis.call('PTTL', lock), ttl)`, 'ttl'],
];

describe('the scripts of the Redis store', () => {
  let server: RedisServer;
  let subscriber: Redis;
  const heard: string[] = [];

  beforeAll(async () => {
    server = await RedisServer.start();
    subscriber = server.client.duplicate();
    subscriber.on('message', (_channel, message) => heard.push(message));
    await subscriber.subscribe(`lock:wake:${HEARING}`);
  });
  afterAll(async () => {
    subscriber.disconnect();
    await server.stop();
  });

  test('answer, store and tell the same as the lock table', async () => {
    for (const seed of SEEDS) {
      expect(await differenceIn(seed)).toBeUndefined();
    }
  }, 60_000);

  test('refuse the same joins where a lock has as many holds as it may', async () => {
    await server.client.flushall();
    const table = new LockTable(systemClock, { turn: () => 1, forced: () => undefined });
    const sides = [table, new ScriptedTable(server.client, (source) => source)];
    const hold = { key: KEY, owner: 'ada', id: '0', fence: 0, ttlMs: 20_000, by: 'ada' };
    const joins = Array.from({ length: MOST_HOLDS + 1 }, (_, id) => String(id));
    const answers = sides.map(async (side) => {
      const { fence = 0 } = await side.acquire(hold, HEARING);
      return Promise.all([...joins, '1'].map(async (id) => side.join({ ...hold, id, fence }, HEARING)));
    });
    const [inTable, inScripts] = await Promise.all(answers);
    expect(inScripts).toEqual(inTable);
    expect(inScripts?.slice(-3)).toEqual(['joined', 'full', 'joined']);
  });

  test.each(DEFECTS)('a script that %s is found out', async (_, right, wrong) => {
    let difference: string | undefined;
    for (let seed = 1; !difference && seed <= 100; seed++) {
      difference = await differenceIn(seed, (source) => source.replace(right, wrong));
    }
    expect(difference).toContain('but the scripts');
  });

  /** Where the two differ in the sequence of that seed, with what led to it. */
  async function differenceIn(seed: number, edit = (source: string) => source): Promise<string | undefined> {
    await server.client.flushall();
    heard.length = 0;
    const random = new Random(seed);
    const scripts = new ScriptedTable(server.client, edit);
    // Far enough from 0 to be set back.
    let now = 1_000_000 * GRAIN_MS;
    const told: string[] = [];
    const tell = (process: string, message: string) => (process === HEARING ? told.push(message) : 0);
    const table = new LockTable(
      { monotonic: () => now, wall: () => now },
      {
        turn: ({ process, name }, key) => tell(process, `turn ${name} ${key}`),
        forced: (process, key, fence) => tell(process, `forced ${fence} ${key}`),
      },
    );
    const fences = { table: [0], scripts: [0] };
    const trace = [`MODEL_SEED=${seed}`];
    const began = performance.now();
    for (let count = random.chance(0.2) ? -random.pick([66, 130]) : 0; count < STEPS; count++) {
      const step = nextStep(random, count, storedIn(table, now), fences.table.length - 1);
      const answer = await take(step, table, fences.table[step.grant] ?? 0);
      now += step.kind === 'elapse' ? step.ms : 0;
      // One connection keeps what is sent at once in order.
      const [scripted, stored] = await Promise.all([take(step, scripts, fences.scripts[step.grant] ?? 0), scripts.stored(KEY)]);
      // A message comes before the answer to what its subscriber asks later.
      await subscriber.ping();
      const outcome = textOf({ answer, told: told.splice(0), stored: storedIn(table, now) }, fences.table);
      const other = textOf({ answer: scripted, told: heard.splice(0), stored }, fences.scripts);
      trace.push(JSON.stringify(step), `  ${outcome}`);
      if (outcome !== other) {
        // In Redis, time passes by itself too.
        return performance.now() - began > GRAIN_MS / 2 ? differenceIn(seed, edit) : `${trace.join('\n')}\nbut the scripts: ${other}`;
      }
    }
    return undefined;
  }
});

/** The table shows this to nobody, but tidies what it has of a key that it is asked about. */
function storedIn(table: LockTable, now: number): Stored {
  let state: KeyState | undefined;
  const restore = replace(KeyState.prototype, 'tidy', (self, tidy) => {
    state = tidy() ? self : undefined;
    return state !== undefined;
  });
  table.inspect(KEY);
  restore();
  const { grant, turn, queue } = state ?? new KeyState({ monotonic: () => now, wall: () => now });
  return {
    owner: grant?.owner ?? '',
    fence: grant?.fence ?? 0,
    ttlMs: grant?.ttlMs ?? 0,
    holds: [...(grant?.holds.keys() ?? [])].toSorted(),
    turn: turn ? `${turn.place.process}:${turn.place.name}` : '',
    queue: [...queue.values()].map(({ process, name, polls }) => `${process}:${name}${polls ? ' polls' : ''}`),
    leftMs: ((grant ?? turn)?.endsAt ?? now) - now,
  };
}

/** As text, in which fences are numbers of grants, and times are whole grains. */
function textOf(outcome: unknown, fences: number[]): string {
  return JSON.stringify(outcome, (name, value: unknown) => {
    if (name === 'fence') {
      return numberOf(Number(value), fences);
    }
    if (typeof value === 'string') {
      return value.replace(/^(forced) (\d+)/, (_, forced, fence) => `${forced} ${numberOf(Number(fence), fences)}`);
    }
    return name === 'heldMs' ? undefined : name.endsWith('Ms') ? Math.ceil(Number(value) / GRAIN_MS) : value;
  });
}

/** Fences rise. */
function numberOf(fence: number, fences: number[]): number {
  if (fence > (fences.at(-1) ?? 0)) {
    fences.push(fence);
  }
  return fences.indexOf(fence);
}
