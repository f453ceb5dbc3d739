import { CLAIM_MS, MOST_FENCE, MOST_HOLDS, MOST_SKIPPED, QUEUE_MS } from '../kit/protocol.js';
import { script } from './script.js';

/**
 * The operations of the Redis store, one script each. Every script may run twice and answers the second time as it did
 * the first; in each, the first write is one that a full or restricted server accepts or refuses whole.
 *
 * A lock is a HASH: owner, fence, ttl (the longest asked for, in ms), since (ms, server time), by, and one field
 * `hold:<id>` → process per hold. The five fields of a lock without holds are what `HLEN` is compared with. A lock that
 * waits to be claimed is a HASH with one field: turn, the place it is reserved for.
 *
 * A queue is a ZSET: place → its number. A place is called `<process>:<name>`; the number of one that polls ends in .5:
 * that nobody hears its message does not mean that it is gone.
 */

/**
 * Uses the locals lock, queue, channel, key. Answers the place that the lock is reserved for; nil where nobody waits, ''
 * where too many were gone. `mine` is the place of whoever asks, who is there whether or not it hears messages.
 */
const HAND_OVER = `
local function hand_over(mine)
  for skipped = 1, ${MOST_SKIPPED} do
    -- Where a foreign key stands in the place of the queue, nobody queues: what was written before must not be left half done.
    local first = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
    local place = first[1]
    -- Off the queue before it is told: a reservation that nobody claims is not given to the same process again.
    if place then
      redis.call('ZREM', queue, place)
    end
    redis.call('DEL', lock)
    if not place then
      return nil
    end
    redis.call('HSET', lock, 'turn', place)
    redis.call('PEXPIRE', lock, ${CLAIM_MS})
    local process, name = string.match(place, '^(.*):(.*)$')
    local heard = redis.pcall('PUBLISH', channel .. process, 'turn ' .. name .. ' ' .. key)
    if heard ~= 0 or first[2] % 1 ~= 0 or place == mine then
      return place
    end
  end
  redis.call('DEL', lock)
  return ''
end
`;

/** The server's time in ms. */
const NOW = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/**
 * Uses the locals lock, done, queue, counter, owner, hold, process, ttl, by, place, polls, latest, now. A grant is refused where the
 * command comes later than \`latest\`, and where the counter is above what a number of JavaScript can count.
 */
const ACQUIRE_FUNCTIONS = `
local function grant(turn)
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  if latest > 0 and ms > latest then
    return {ms}
  end
  local clock = time[1] .. string.sub('00000' .. time[2], -6)
  if clock + 0 > ${MOST_FENCE} then
    return redis.error_reply('FENCE ' .. clock)
  end
  local fence = clock
  -- GETSET comes first: it is what a full server refuses.
  local last = redis.call('GETSET', counter, clock)
  if last and last + 0 >= clock + 0 then
    if last + 0 >= ${MOST_FENCE} then
      redis.call('SET', counter, last)
      return redis.error_reply('FENCE ' .. last)
    end
    fence = string.format('%.0f', last + 1)
    redis.call('SET', counter, fence)
  end
  if turn then
    redis.call('DEL', lock)
    redis.call('ZREM', queue, place)
  end
  redis.call('HSET', lock, 'owner', owner, 'fence', fence, 'ttl', ttl, 'since', string.sub(fence, 1, -4), 'by', by, hold, process)
  if redis.pcall('PEXPIRE', lock, ttl) ~= 1 then
    -- A user whom it is forbidden to must not leave a lock without an expiry.
    redis.call('DEL', lock)
    redis.call('PEXPIRE', lock, ttl)
  end
  return fence == clock and fence or fence .. ' ' .. ms
end

local function acquire()
  if redis.call('EXISTS', lock, done, queue) == 0 then
    return grant()
  end
  if redis.call('EXISTS', done) == 1 then
    return {0, '', 0, -1, 0, '', now()}
  end
  local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', hold, 'turn')
  local turn = held[7]
  if not held[1] and not turn then
    turn = redis.call('ZRANGE', queue, 0, 0)[1]
    if turn ~= place then
      turn = hand_over(place)
    end
  end
  if not held[1] and (not turn or turn == place and turn ~= '') then
    return grant(turn)
  end
  local left = redis.call('PTTL', lock)
  if held[1] == owner and held[6] then
    if left < ttl then
      redis.call('PEXPIRE', lock, ttl)
    end
    if ttl > tonumber(held[3]) then
      redis.call('HSET', lock, 'ttl', ttl)
    end
    return held[2] .. ' ' .. now()
  end
  -- More time left than was ever asked for: the server's clock was set back, or somebody took the expiry away.
  local most = tonumber(held[3] or ${CLAIM_MS})
  if left < 0 or left > most then
    left = most
    redis.call('PEXPIRE', lock, left)
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
  return {left, held[5] or '', math.max(0, ms - (held[4] or ms)), rank, joined, turn or '', ms}
end
`;

/** Takes a hold out; answers the first answer, and whether this run took the last one out. */
const RELEASE_FUNCTION = `
local function release(done, hold, stays)
  -- HDEL first: a full server accepts it, and what follows it in the same script.
  local answer = redis.call('HDEL', lock, hold)
  local first = answer == 0 and redis.call('GET', done)
  if first then
    return tonumber(first), false
  end
  redis.call('SET', done, answer, 'PX', stays)
  return answer, answer == 1 and redis.call('HLEN', lock) == 5
end
`;

/**
 * Grants a lock that is free and nobody else's turn, or confirms the grant to a hold that is in.
 *
 * KEYS lock, done mark, queue, fence · ARGV owner, hold, process, ttl in ms, by, place or '', 0.5 if it polls or 0,
 * channel without process, key as the user wrote it, the latest server time in ms at which it may be granted or 0
 *
 * Reply: the fence, which is the server's time in µs, or `fence ms` where the time is another; or `[remaining ms, by, held ms, rank in
 * the queue or -1, 1 if it is new there, place it is reserved for or '', server's time in ms]` where another owner has it, it is
 * another's turn, or this hold has ended; or `[server's time in ms]` where it is free, and the command came too late.
 */
export const ACQUIRE = script(
  'acquire',
  `
local lock, done, queue, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, hold, process, ttl, by = ARGV[1], 'hold:' .. ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local place, polls, channel, key, latest = ARGV[6], ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10])
${NOW}
${HAND_OVER}
${ACQUIRE_FUNCTIONS}
return acquire()
`,
);

/**
 * Adds a hold to a running lock; never creates one.
 *
 * KEYS lock, done mark · ARGV owner, fence, hold, process, ttl in ms, the latest server time in ms at which it may enter or 0
 *
 * Reply 1, 0 where that lock has ended, or -1 where it has as many holds as it may; or `[server's time in ms]` where it came too late.
 */
export const JOIN = script(
  'join',
  `
local lock, done = KEYS[1], KEYS[2]
local owner, fence, hold, process, ttl, latest = ARGV[1], ARGV[2], 'hold:' .. ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
${NOW}
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', hold)
if held[1] ~= owner or held[2] ~= fence or redis.call('EXISTS', done) == 1 then
  return 0
end
if not held[4] and redis.call('HLEN', lock) - 5 >= ${MOST_HOLDS} then
  return -1
end
if not held[4] and latest > 0 then
  local ms = now()
  if ms > latest then
    return {ms}
  end
end
redis.call('HSET', lock, hold, process, 'ttl', math.max(ttl, tonumber(held[3])))
if redis.call('PTTL', lock) < ttl then
  redis.call('PEXPIRE', lock, ttl)
end
return 1
`,
);

/**
 * Sets each lease to at least its ttl from now; to just that for a hold that lingers, unless others are in.
 *
 * KEYS locks · ARGV for each: owner, fence, hold, ttl in ms, 1 if it lingers or 0
 *
 * Reply for each: 1, or 0 where its lock is gone.
 */
export const RENEW = script(
  'renew',
  `
local replies = {}
for i, lock in ipairs(KEYS) do
  local owner, fence, hold, ttl, lingers = ARGV[5 * i - 4], ARGV[5 * i - 3], 'hold:' .. ARGV[5 * i - 2], tonumber(ARGV[5 * i - 1]), ARGV[5 * i]
  -- A foreign key under one name is that lock's loss, and no failure of the others.
  local held = redis.pcall('HMGET', lock, 'owner', 'fence', 'ttl', hold)
  if held.err and not string.find(held.err, '^WRONGTYPE') then
    return held
  end
  replies[i] = 0
  if held[1] == owner and held[2] == fence and held[4] then
    replies[i] = 1
    -- Also where the lease is long enough: WAIT answers for what its connection has written.
    redis.call('PEXPIRE', lock, lingers == '1' and redis.call('HLEN', lock) == 6 and ttl or math.max(redis.call('PTTL', lock), ttl))
    if ttl > tonumber(held[3]) then
      redis.call('HSET', lock, 'ttl', ttl)
    end
  end
end
return replies
`,
);

/**
 * Takes a hold out; the last one hands the lock over, or deletes it. The done mark keeps the first answer, and refuses
 * an acquire of the same hold that comes late.
 *
 * KEYS lock, done mark, queue · ARGV hold, how long the done mark stays in ms, channel without process, key as the user
 * wrote it
 *
 * Reply 1, or 0 where the hold was no longer in.
 */
export const RELEASE = script(
  'release',
  `
local lock, done, queue = KEYS[1], KEYS[2], KEYS[3]
local hold, stays, channel, key = 'hold:' .. ARGV[1], ARGV[2], ARGV[3], ARGV[4]
${HAND_OVER}
${RELEASE_FUNCTION}
local answer, last = release(done, hold, stays)
if last then
  hand_over()
end
return answer
`,
);

/**
 * Release and the next acquire of the same process in one: the next caller goes before the queue where it may, and queues
 * otherwise.
 *
 * KEYS lock, done mark, queue, fence, done mark of the hold to release · ARGV as for acquire, the hold to release, how
 * long its done mark stays in ms, 1 if the next may go before the queue. The release is carried out also where it comes late.
 *
 * Reply: a list of that of release and that of acquire.
 */
export const PASS = script(
  'pass',
  `
${NOW}
local lock, done, queue, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, hold, process, ttl, by = ARGV[1], 'hold:' .. ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local place, polls, channel, key, latest = ARGV[6], ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10])
local passes = ARGV[13] == '1'
${HAND_OVER}
${ACQUIRE_FUNCTIONS}
${RELEASE_FUNCTION}
local answer, last = release(KEYS[5], 'hold:' .. ARGV[11], ARGV[12])
local reply
-- A command that comes late must not pass the lock to a hold that has ended. The place may be queued already by a later one.
if last and passes and redis.call('EXISTS', done) == 0 then
  reply = grant(place)
end
if type(reply) ~= 'string' then
  if last then
    hand_over()
  end
  reply = reply or acquire()
end
return {answer, reply}
`,
);

/**
 * Gives up a place in the queue, or the turn it came to, and no later one.
 *
 * KEYS lock, queue · ARGV place, channel without process, key as the user wrote it
 *
 * Reply 1.
 */
export const LEAVE = script(
  'leave',
  `
local lock, queue = KEYS[1], KEYS[2]
local place, channel, key = ARGV[1], ARGV[2], ARGV[3]
${HAND_OVER}
local left = redis.call('ZREM', queue, place)
local turn = redis.call('HGET', lock, 'turn')
if left == 0 and turn == place then
  hand_over()
end
return 1
`,
);

/**
 * What is stored of a lock.
 *
 * KEYS lock, queue
 *
 * Reply `[fence, holds, remaining ms, since in ms, by, first place, second place, …]`, or an empty list where nobody
 * holds it.
 */
export const INSPECT = script(
  'inspect',
  `
local lock, queue = KEYS[1], KEYS[2]
local held = redis.call('HMGET', lock, 'fence', 'since', 'by')
if not held[1] then
  return {}
end
local reply = {held[1], redis.call('HLEN', lock) - 5, redis.call('PTTL', lock), held[2], held[3]}
for _, place in ipairs(redis.call('ZRANGE', queue, 0, -1)) do
  table.insert(reply, place)
end
return reply
`,
);

/**
 * Frees a lock, if its fence is the one named: hands it over, and tells the processes that hold it.
 *
 * KEYS lock, done mark of this request, queue · ARGV fence, how long the done mark stays in ms, channel without process,
 * key as the user wrote it
 *
 * Reply 1, or 0 where the lock is not held at that fence.
 */
export const FORCE_RELEASE = script(
  'forceRelease',
  `
local lock, done, queue = KEYS[1], KEYS[2], KEYS[3]
local fence, stays, channel, key = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
${HAND_OVER}
local first = redis.call('GET', done)
if first then
  return tonumber(first)
end
if redis.call('HGET', lock, 'fence') ~= fence then
  return 0
end
local processes = {}
local fields = redis.call('HGETALL', lock)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 5) == 'hold:' then
    processes[fields[i + 1]] = true
  end
end
redis.call('DEL', lock)
redis.call('SET', done, 1, 'PX', stays)
hand_over()
-- Only a hint, so it comes last and may fail: the next renewal finds out as well.
for process in pairs(processes) do
  redis.pcall('PUBLISH', channel .. process, 'forced ' .. fence .. ' ' .. key)
end
return 1
`,
);
