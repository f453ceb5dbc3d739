import { Redis } from 'ioredis';
import { systemClock } from '../../lib/core/seam/time.js';
import { MOST_HOLDS } from '../../lib/kit/protocol.js';
import { LockTable } from '../../lib/kit/lock-table.js';
import { RedisServer } from '../support/redis-server';
import { seedsOf } from '../support/random.js';
import { differenceIn, expectAlike, expectFound, type AlikeServer, type SourceDefect } from './alike.js';
import { BatchedTable, BROKEN, ScriptedTable } from './scripted-table.js';
import { HEARING, KEY } from './steps.js';

/** `MODEL_RUNS` plays more. */
const SEEDS = seedsOf(100);
const DEFECTS: readonly SourceDefect[] = [
  ['gives an expired reservation to the same process again', `if place then\n      redis.call('ZREM', queue, place)`, 'if place then'],
  ['never goes before the queue', 'overtakes == 1', 'false'],
  ['grants what nobody waits for any more', 'latest > 0 and ms > latest', 'false'],
  ['lets in what nobody waits for any more', 'not held[4] and latest > 0', 'false'],
  ['shortens the lease of others in the lock', `and redis.call('HLEN', lock) - 5 == 1`, ''],
  ['leaves a lock taken that it could not exchange', `if type(reply) ~= 'string' then`, 'if not reply then'],
  ['forgets what was released', `if redis.call('EXISTS', done) == 1`, 'if false'],
  ['takes a process that polls for gone', 'first[2] % 1 ~= 0', 'false'],
  ['gives up the turn of another', 'left == 0 and turn == place', 'turn'],
  ['shortens a lease by a ticket', `redis.call('PTTL', lock) < ttl`, 'true'],
  ['does not say who runs now', `if by ~= '' then`, 'if false then'],
  ['shortens a lease by a renewal', `math.max(redis.call('PTTL', lock), ttl)`, 'ttl'],
  ['lengthens a lease by twice what a renewal asked for', `redis.call('PTTL', lock), ttl)`, `redis.call('PTTL', lock), 2 * ttl)`],
  ['sends whoever asks again to the end of the queue', 'if not number then', 'if true then'],
  ['reserves a lock for longer', `redis.call('PEXPIRE', lock, 1000)`, `redis.call('PEXPIRE', lock, 1500)`],
];

/** Of keys that several share. */
const DEFECTS_OF_SHARING: readonly SourceDefect[] = [
  ['starves a writer by readers that overlap', `and (not first or first == place)`, ''],
  ['wakes one where several fit', `    elseif not mode then\n      return place`, `    elseif mode then\n      sharers.keep()\n      return nil, sharers\n    else\n      return place`], // prettier-ignore
  ['takes back a permit that an expired owner gives back', `member and member.ends > ms`, 'member'],
  ['ignores the smallest count', `math.min(sharers.most, most_of(mode))`, `most_of(mode)`],
  ['ignores the smallest count of those present', `sharers.most = math.min(sharers.most, most)`, `sharers.most = most`], // prettier-ignore
  ['lengthens the leases of others by a renewal', `    sharers.put(hold, mine, ttl)\n    sharers.keep()\n  end`, `    sharers.put(hold, mine, ttl)\n    for field, member in pairs(sharers.all()) do sharers.put(field, member, ttl) end\n    sharers.keep()\n  end`], // prettier-ignore
  ['gives each reader a fence of its own', `if sharers and sharers.holds > 0 then\n  given`, `if false then\n  given`],
  ['does not count room that is reserved', `sharers.size < math.min`, `sharers.holds < math.min`],
  ['lets readers in beside permits', `sharers.kind == string.sub(mode, 1, 1) and sharers.size`, `sharers.size`],
  ['lets a writer in beside readers', `  if held[1] or sharers or turn`, `  if held[1] or turn`],
  ['keeps a reservation for ever', `sharers.drop({'claim:' .. place})\n  end\n  redis.call('ZREM'`, `end\n  redis.call('ZREM'`],
  ['believes a clock that was set back', `if member.ends > ms + member.ttl then`, 'if false then'],
  ['does not hand over where a writer leaves the queue', 'claim or left == 1 and sharers.size > 0', 'claim'],
  [
    'takes reserved room from others by force',
    'if member.number > 0 then\n      table.insert(holds',
    'if true then\n      table.insert(holds',
  ],
  ['believes a summary for ever', 'ms >= sharers.least', 'false'],
  ['believes the smallest count of one that has left', 'sharers.holds == 0 or sharers.fewest == 0', 'sharers.holds == 0'],
  ['forgets who came first', 'while sharers.holds > 0 and not', 'while false and not'],
  ['forgets whose lease became shorter', `    sharers.least = math.min(sharers.least, member.ends)\n    sharers.last = math.max(sharers.last, member.ends)\n    if is_new`, '    if is_new'], // prettier-ignore
  ['joins what has another fence', 'or sharers.fence ~= fence or', 'or'],
];

const DEFECTS_OF_BATCH: readonly SourceDefect[] = [
  ['fails whole where one of it fails', 'pcall(script[3], k, a + 1)', 'true, script[3](k, a + 1)'],
  ['mixes replies up', 'replies[count] = reply or false', 'table.insert(replies, 1, reply or false)'],
  ['takes the keys of another', 'k + script[1]', 'k + 3'],
  ['takes the arguments of another', 'a + 1 + script[2]', 'a + script[2]'],
];

describe('the scripts of the Redis store', () => {
  let server: RedisServer;
  let subscriber: Redis;
  const heard: string[] = [];
  async function hear(): Promise<string[]> {
    // A message comes before the answer to what its subscriber asks later.
    await subscriber.ping();
    return heard.splice(0);
  }
  const scripts: AlikeServer = {
    hasOwnTime: true,
    async begin(_now, edit) {
      await server.client.flushall();
      heard.length = 0;
      return new ScriptedTable(server.client, edit);
    },
    heard: hear,
  };
  const sharing: AlikeServer = { ...scripts, shares: true, hurries: true };
  const batches: AlikeServer = {
    hasOwnTime: true,
    async begin(_now, edit) {
      await server.client.flushall();
      await server.client.set(BROKEN, 'no lock');
      heard.length = 0;
      return new BatchedTable(server.client, edit);
    },
    heard: hear,
  };
  const sharingBatches: AlikeServer = { ...batches, shares: true, hurries: true };

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

  test('answer, store and notify the same as the lock table', () => expectAlike(scripts, SEEDS), 240_000);

  test('do so also in a batch', () => expectAlike(batches, SEEDS), 240_000);

  test('do so where readers and permits share a key', () => expectAlike(sharing, SEEDS), 240_000);

  test('do so where they share it also in a batch', () => expectAlike(sharingBatches, SEEDS), 240_000);

  test('refuse the same joins where a lock has as many holds as it may', async () => {
    await server.client.flushall();
    const table = new LockTable(systemClock, { turn: () => 1, forced: () => undefined });
    const sides = [table, new ScriptedTable(server.client, (source) => source)];
    const hold = {
      key: KEY,
      owner: 'ada',
      id: '0',
      fence: 0,
      fences: 1,
      ttlMs: 20_000,
      limitMs: 1_000,
      lingering: false,
      unanswered: true,
      by: 'ada',
    };
    const joins = Array.from({ length: MOST_HOLDS + 1 }, (_, id) => String(id));
    const answers = sides.map(async (side) => {
      const { fence = 0 } = await side.acquire(hold, HEARING, undefined, 0);
      return Promise.all([...joins, '1'].map(async (id) => side.join({ ...hold, id, fence }, HEARING, 0)));
    });
    const [inTable, inScripts] = await Promise.all(answers);
    expect(inScripts).toEqual(inTable);
    expect(inScripts?.slice(-3)).toEqual(['joined', 'full', 'joined']);
  });

  test.each(DEFECTS)(
    'a script that %s is found',
    (...defect) => expectFound(defect, (seed, edit) => differenceIn(seed, scripts, edit), { mostSeeds: 100 }),
    240_000,
  );

  test.each(DEFECTS_OF_SHARING)(
    'a script of keys that are shared and that %s is found',
    (...defect) => expectFound(defect, (seed, edit) => differenceIn(seed, sharing, edit), { mostSeeds: 200 }),
    240_000,
  );

  test.each(DEFECTS_OF_BATCH)(
    'a batch that %s is found',
    async (_, right, wrong) => {
      await expect(differenceIn(1, batches, (source) => source.replace(right, wrong))).rejects.toThrow();
    },
    240_000,
  );
});
