import { Redis } from 'ioredis';
import type { RedisServer } from '../support/redis-server';
import { seedsOf } from '../support/random.js';
import { ServerClock } from '../support/server-clock.js';
import { expectFound, type SourceDefect } from './alike.js';
import { ScriptedServer } from './quorum/scripted-server.js';
import { differenceIn, type Received } from './quorum/votes-alike.js';

const SEEDS = seedsOf(400);
const DEFECTS: readonly SourceDefect[] = [
  ['keeps the votes of earlier attempts', `redis.call('HDEL', lock, unpack(earlier))`, ''],
  ['lets an attempt vote after a later one', '#votes + 1)) > attempt then', '#votes + 1)) > attempt + 99 then'],
  ['votes when the caller waits no longer', 'if latest > 0 and ms > latest then', 'if false then'],
  ['lets in a ticket that comes late', 'if not held[4] and latest > 0 then', 'if false then'],
  ['votes again after a withdrawal', `redis.call('EXISTS', done, withdrawn) > 0`, `redis.call('EXISTS', done) > 0`],
  ['votes again after a release', `redis.call('EXISTS', done, withdrawn) > 0`, `redis.call('EXISTS', withdrawn) > 0`],
  ['stores a fence from a clock that is far ahead', 'fence - now > 1000000 and', 'false and'],
  ['gives a fence twice', 'least = last + 1', 'least = last + 0'],
  ['trusts a low proposal after its counter was lost', 'math.min(now, wanted + 1000000)', '0'],
  ['gives the time of its own clock after its counter was lost', 'math.min(now, wanted + 1000000)', 'now'],
  ['lets a process go on while others wait', 'if since and not in_slice and', 'if false and'],
  ['holds back a process that is in its slice', 'if since and not in_slice and', 'if since and'],
  ['holds back a process that came a moment later', 'ms - waited > since + 50', 'ms - waited > since'],
  ['takes a process that has left for one that waits', 'second + 500 > ms', 'true'],
  ['counts the caller among those that wait longer', 'fields[i] ~= process and', ''],
  ['gives a fence that no number can count', 'if least + more > 9007199254740991 then', 'if false then'],
  ['gives one fence for a block', 'local more = fences - 1', 'local more = 0'],
  ['forgets the block where its counter was ahead', `string.format('%.0f', least + more)`, 'wanted'],
  ['forgets since when a lock is held whose vote is cast again', 'whole(ms - age), vote', 'whole(ms), vote'],
  ['gives the time of a vote that is cast again for that of the grant', `'last', whole(ms - age)`, `'last', whole(ms)`],
  ['shortens a lease by another vote', `if redis.call('PTTL', lock) < ttl then`, 'if true then'],
  ['keeps a lease whose clock was set back', 'if left < 0 or left > most then', 'if false then'],
  ['gives another vote the fence', 'if held[1] ~= owner or not held[2] then', 'if held[1] ~= owner then'],
  ['gives another owner the fence', 'if held[1] ~= owner or not held[2] then', 'if not held[2] then'],
  ['settles on a fence that it gives again later', `redis.call('SET', counter, last)\nend\nredis.call('HSET'`, `end\nredis.call('HSET'`],
  ['lowers its counter when it settles', `if (redis.call('GET', counter) or 0) + 0 < last + 0 then`, 'if true then'],
  ['settles on one fence for a block', `redis.call('SET', counter, last)`, `redis.call('SET', counter, fence)`],
  ['forgets that it knew an earlier run', `'restarted', held[1] and 1 or 0`, `'restarted', 0`],
  ['counts in its next run', `redis.call('HDEL', record, 'counts', 'first')`, ''],
  ['is new although it restarted', `redis.call('HGET', record, 'restarted') ~= '1'`, 'true'],
  ['takes a later report for the first use', `counts == 'first' and not redis.call('HGET', record, 'first')`, `counts == 'first'`],
  ['counts before its fence is above all others', `redis.call('SET', counter, least)`, ''],
  ['trusts times of a clock that was set back', 'if held[2] and held[2] - now > 1000 then', 'if false then'],
  ['shortens what another process reported', 'math.max(now + said[i + 1], tonumber(ends))', 'now + said[i + 1]'],
  ['believes for ever what was reported', 'elseif tonumber(value) > now then', 'elseif true then'],
];

describe('the scripts of a quorum', () => {
  let clock: ServerClock;
  let server: RedisServer;
  let subscriber: Redis;
  const messages: string[] = [];
  // A message comes before the answer to what its subscriber asks later.
  const received: Received = async () => {
    await subscriber.ping();
    return messages.splice(0);
  };
  const difference = (seed: number, edit = (source: string): string => source): Promise<string | undefined> =>
    differenceIn(seed, new ScriptedServer(server.client, clock, edit), received);

  beforeAll(async () => {
    clock = new ServerClock();
    server = await clock.startServer();
    subscriber = server.client.duplicate();
    subscriber.on('pmessage', (_pattern, channel: string, message: string) => {
      const [kind, fence] = message.split(' ');
      messages.push(`${channel.split(':').at(-1)}: ${kind} ${fence}`);
    });
    await subscriber.psubscribe('lock:wake:*');
  });
  afterAll(async () => {
    subscriber.disconnect();
    await server.stop();
    clock.remove();
  });

  test('answer, store and notify as their specification', async () => {
    for (const seed of SEEDS) {
      expect(await difference(seed)).toBeUndefined();
    }
    expect(await received()).toEqual([]);
  }, 240_000);

  test.each(DEFECTS)('a server that %s is found', (...defect) => expectFound(defect, difference, { mostSeeds: 200 }), 240_000);
});
