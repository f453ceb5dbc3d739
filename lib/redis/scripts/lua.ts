import { CLAIM_MS, MOST_FENCE, MOST_SKIPPED, QUEUE_MS } from '../../kit/protocol.js';
import { CLAIM_FIELD, SHARERS } from './shared-lua.js';

/** Lua that several scripts have in common. */

/** The prefix of the names of fields that stand for a hold. */
export const HOLD_FIELD = 'hold:';

/** The fields of a lock besides its holds. */
const OWN_FIELDS = ['owner', 'fence', 'ttl', 'since', 'by'];

/** How many holds are in `lock`, which has an owner. */
export const HOLDS = `redis.call('HLEN', lock) - ${OWN_FIELDS.length}`;

/** `now()`: the server's time in ms. */
export const NOW = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/**
 * `hand_over(lock, queue, channel, key, mine, sharers)`: reserves a free lock for the first place in the queue, and
 * notifies its process; where the first ones share the key, for as many as have room. Answers the place that has the
 * lock alone; nil where there is none, '' where too many processes were gone. And those who share the key, if there are
 * any: `sharers` before. `mine` is the place that asks: its process is there, whether or not it receives messages.
 */
export const HAND_OVER = `${SHARERS}
local function hand_over(lock, queue, channel, key, mine, sharers)
  local skipped = 0
  while skipped < ${MOST_SKIPPED} do
    -- Another application's key in the place of the queue counts as an empty queue: the writes before this one must not be left half done.
    local first = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
    local place = first[1]
    local mode = place and string.match(place, '[RP]%d*$')
    if sharers and sharers.size == 0 then
      sharers = nil
    end
    if sharers and not (mode and sharers.has_room(mode)) then
      sharers.keep()
      return nil, sharers
    end
    -- Off the queue before it is notified: a reservation that is not claimed is not given to the same process again.
    if place then
      redis.call('ZREM', queue, place)
    end
    if not sharers then
      redis.call('DEL', lock)
    end
    if not place then
      return nil
    end
    if mode then
      sharers = sharers or sharers_of(lock)
      sharers.claim(place, mode)
    else
      redis.call('HSET', lock, 'turn', place)
      redis.call('PEXPIRE', lock, ${CLAIM_MS})
    end
    local process, name = string.match(place, '^(.*):(.*)$')
    local receivers = redis.pcall('PUBLISH', channel .. process, 'turn ' .. name .. ' ' .. key)
    local polls = first[2] % 1 ~= 0
    if receivers == 0 and not polls and place ~= mine then
      skipped = skipped + 1
      if mode then
        sharers.drop({'${CLAIM_FIELD}' .. place})
      end
    elseif not mode then
      return place
    end
  end
  if sharers and sharers.size > 0 then
    sharers.keep()
    return '', sharers
  end
  redis.call('DEL', lock)
  return ''
end
`;

/**
 * `release(lock, done, hold, stays)`: takes a hold out. Answers its first answer, where a mark has it, and whether this
 * run took the last hold out.
 */
export const RELEASE_HOLD = `
local function release(lock, done, hold, stays)
  -- HDEL first: a full server accepts it, and what follows it in the same script.
  local answer = redis.call('HDEL', lock, hold)
  if stays ~= '0' then
    local first = answer == 0 and redis.call('GET', done)
    if first then
      return tonumber(first), false
    end
    redis.call('SET', done, answer, 'PX', stays)
  end
  return answer, answer == 1 and ${HOLDS} == 0
end
`;

/**
 * Sets `given` to the highest of `wanted` and the counter + 1, or of `wanted` and `least` where there is no counter.
 * This fence and the next ones, `fences` in all, are reserved: the counter then has the last of them. Returns an error
 * where the last fence would be higher than JavaScript can count.
 */
export const GIVE_FENCE = `
local more = fences - 1
if wanted + more > ${MOST_FENCE} then
  return redis.error_reply('FENCE ' .. wanted)
end
-- GETSET comes first: it is what a full server refuses.
local last = redis.call('GETSET', counter, more == 0 and wanted or string.format('%.0f', wanted + more))
if last then
  least = last + 1
end
if least + more > ${MOST_FENCE} then
  redis.call('SET', counter, last or wanted)
  return redis.error_reply('FENCE ' .. (last or wanted))
end
local given = wanted
if least > wanted + 0 then
  given = string.format('%.0f', least)
  redis.call('SET', counter, string.format('%.0f', least + more))
end
`;

/** Stores a lock with one hold, and the fence that is `given`. */
export const STORE_GRANT = `
redis.call('HSET', lock, 'owner', owner, 'fence', given, 'ttl', ttl, 'since', since, 'by', by, hold, process)
if redis.pcall('PEXPIRE', lock, ttl) ~= 1 then
  -- A user without the right to it must not leave a lock without an expiry.
  redis.call('DEL', lock)
  redis.call('PEXPIRE', lock, ttl)
end
`;

/**
 * `lengthen(lock, ttl, longest)`: sets a lease to at least `ttl` ms from now. `longest` is the longest ttl that was
 * asked for so far.
 *
 * `remaining(lock, longest)`: the rest of a lease, in ms.
 */
export const LEASE_FUNCTIONS = `
local function lengthen(lock, ttl, longest)
  if redis.call('PTTL', lock) < ttl then
    redis.call('PEXPIRE', lock, ttl)
  end
  if ttl > tonumber(longest) then
    redis.call('HSET', lock, 'ttl', ttl)
  end
end

local function remaining(lock, longest)
  local left, most = redis.call('PTTL', lock), tonumber(longest)
  -- More time left than was ever asked for: the server's clock was set back, or somebody took the expiry away.
  if left < 0 or left > most then
    left = most
    redis.call('PEXPIRE', lock, left)
  end
  return left
end
`;

/**
 * The names of the KEYS and ARGV of an attempt. The attempts of a batch share the server's time in µs: nothing else is
 * carried out meanwhile. Each attempt moves this time on by the fences that it reserves, so that the next one asks for
 * later fences.
 */
export const ATTEMPT = {
  shared: 'local clock\n',
  keys: ['lock', 'done', 'queue', 'counter'],
  args: ['owner', 'hold', 'process', 'by', 'place', 'channel', 'key', 'ttl', 'polls'],
  numbers: ['latest', 'fences'],
} as const;

/**
 * Answers busy, and queues at `place`. `held` has the stored owner, fence, ttl, since and by; `sharers` is who shares
 * the key. `ends` says in Lua when room is expected: at the end of the last of them, or of the first, or before it.
 */
export const answerBusy = (ends: string): string => `
    local left, by, since, permits
    if sharers then
      sharers.cut()
      turn, left = nil, ${ends} - sharers.ms
      local first = sharers.first()
      if first then
        by, since, permits = first.by, first.since, string.sub(first.mode, 2)
      end
      sharers.keep()
    else
      left, by, since = remaining(lock, held[3] or ${CLAIM_MS}), held[5], held[4]
    end
    local rank, joined = -1, 0
    if place ~= '' then
      local number = redis.call('ZSCORE', queue, place)
      if not number then
        number = math.floor(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0) + 1
        joined = 1
      end
      redis.call('ZADD', queue, math.floor(number) + polls, place)
      redis.call('PEXPIRE', queue, ${QUEUE_MS})
      rank = redis.call('ZRANK', queue, place)
    end
    local ms = now()
    return {left, by or '', math.max(0, ms - (since or ms)), rank, joined, turn or '', ms, permits}
`;

/** The server's time in µs, as `clock`, and in ms, as `ms`; a command that came too late is answered with it. */
export const CHECK_TIME = `
if not clock then
  local time = redis.call('TIME')
  clock = time[1] * 1000000 + time[2]
end
local ms = math.floor(clock / 1000)
if latest > 0 and ms > latest then
  return {ms}
end
`;

/** When the last of those who share a key leaves at the latest: a summary may have a later time. */
export const LAST_END = 'sharers.all() and sharers.last';

/**
 * An attempt; returns its reply. `turn` is set where the caller has just emptied the lock, and takes it before the
 * queue; where `turn` is nil, lock and queue are looked at. A grant is refused where the server's time is after
 * `latest`, and where the fence would be higher than JavaScript can count.
 *
 * Without contention, one EXISTS leads to the last lines: no function is defined then.
 */
export const ATTEMPT_BODY = `
if not turn and redis.call('EXISTS', lock, done, queue) > 0 then
${NOW}${HAND_OVER}${LEASE_FUNCTIONS}
  if redis.call('EXISTS', done) == 1 then
    return {0, '', 0, -1, 0, '', now()}
  end
  local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', hold, 'turn')
  turn = held[7]
  local sharers
  if held[1] == '' then
    sharers = sharers_of(lock)
    held[1] = nil
    if sharers.holds > 0 and sharers.kind == 'P' then
      return {'semaphore', sharers.ms}
    end
  end
  if not held[1] and not turn then
    turn = redis.call('ZRANGE', queue, 0, 0)[1]
    if turn ~= place then
      turn, sharers = hand_over(lock, queue, channel, key, place, sharers)
    end
    if sharers and sharers.size == 0 then
      sharers = nil
    end
  end
  if held[1] == owner and held[6] then
    lengthen(lock, ttl + 0, held[3])
    return held[2] .. ' ' .. now()
  end
  if held[1] or sharers or turn and (turn ~= place or turn == '') then${answerBusy(`(${LAST_END})`)}  end
end
${CHECK_TIME}local wanted, least = string.format('%.0f', clock), 0
${GIVE_FENCE}
if turn then
  redis.call('DEL', lock)
  redis.call('ZREM', queue, place)
end
local since = ms
${STORE_GRANT}
if given ~= wanted then
  return given .. ' ' .. ms
end
clock = clock + fences
return given
`;
