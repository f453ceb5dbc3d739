import { createHash } from 'node:crypto';

/**
 * The operations of the Redis store, one script each. Every script may run twice and answers the second time as it did
 * the first; in each, the first write is one that a full or restricted server accepts or refuses whole.
 *
 * A lock is a HASH: owner, fence, ttl (the longest asked for, in ms), since (ms, server time), by, and one field
 * `hold:<id>` → process id per hold. The five fields of a lock without holds are what `HLEN` is compared with.
 */
export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

function script(name: string, source: string): Script {
  return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}

/**
 * Grants a free lock, or confirms the grant to a hold that is in.
 *
 * KEYS lock, done mark, fence · ARGV owner, hold, process, ttl in ms, by
 *
 * Reply `[1, fence]`, or `[0, remaining ms, by, held ms]` where another owner has it or this hold has ended.
 */
export const ACQUIRE = script(
  'acquire',
  `
local lock, done, counter = KEYS[1], KEYS[2], KEYS[3]
local owner, hold, process, ttl, by = ARGV[1], 'hold:' .. ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', hold)
local time = redis.call('TIME')
if redis.call('EXISTS', done) == 1 then
  return {0, 0, '', 0}
end
if not held[1] then
  local last = tonumber(redis.call('GET', counter) or 0)
  local fence = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
  -- SET is what a full server refuses, and PEXPIRE what must not be forbidden once the lock stands: both come first.
  redis.call('SET', counter, fence)
  redis.call('PEXPIRE', lock, ttl)
  redis.call('HSET', lock, 'owner', owner, 'fence', fence, 'ttl', ttl, 'since', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), 'by', by, hold, process)
  redis.call('PEXPIRE', lock, ttl)
  return {1, fence}
end
local left = redis.call('PTTL', lock)
if held[1] == owner and held[6] then
  if left < ttl then
    redis.call('PEXPIRE', lock, ttl)
  end
  return {1, held[2]}
end
-- More time left than was ever asked for: the server's clock was set back, or somebody took the expiry away.
if left < 0 or left > tonumber(held[3]) then
  left = tonumber(held[3])
  redis.call('PEXPIRE', lock, left)
end
return {0, left, held[5], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - held[4])}
`,
);

/**
 * Adds a hold to a running lock; never creates one.
 *
 * KEYS lock, done mark · ARGV owner, fence, hold, process, ttl in ms
 *
 * Reply 1, or 0 where that lock has ended.
 */
export const JOIN = script(
  'join',
  `
local lock, done = KEYS[1], KEYS[2]
local owner, fence, hold, process, ttl = ARGV[1], ARGV[2], 'hold:' .. ARGV[3], ARGV[4], tonumber(ARGV[5])
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl')
if held[1] ~= owner or held[2] ~= fence or redis.call('EXISTS', done) == 1 then
  return 0
end
redis.call('HSET', lock, hold, process, 'ttl', math.max(ttl, tonumber(held[3])))
if redis.call('PTTL', lock) < ttl then
  redis.call('PEXPIRE', lock, ttl)
end
return 1
`,
);

/**
 * Sets each lease to at least its ttl from now.
 *
 * KEYS locks · ARGV for each: owner, fence, hold, ttl in ms
 *
 * Reply for each: 1, or 0 where its lock is gone.
 */
export const RENEW = script(
  'renew',
  `
local replies = {}
for i, lock in ipairs(KEYS) do
  local owner, fence, hold, ttl = ARGV[4 * i - 3], ARGV[4 * i - 2], 'hold:' .. ARGV[4 * i - 1], tonumber(ARGV[4 * i])
  -- A foreign key under one name is that lock's loss, and no failure of the others.
  local held = redis.pcall('HMGET', lock, 'owner', 'fence', 'ttl', hold)
  if held.err and not string.find(held.err, '^WRONGTYPE') then
    return held
  end
  replies[i] = 0
  if held[1] == owner and held[2] == fence and held[4] then
    replies[i] = 1
    if redis.call('PTTL', lock) < ttl then
      redis.call('PEXPIRE', lock, ttl)
    end
    if ttl > tonumber(held[3]) then
      redis.call('HSET', lock, 'ttl', ttl)
    end
  end
end
return replies
`,
);

/**
 * Takes a hold out, and deletes the lock with the last one. The done mark keeps the first answer, and refuses an
 * acquire of the same hold that comes late.
 *
 * KEYS lock, done mark · ARGV hold, how long the done mark stays in ms
 *
 * Reply 1, or 0 where the hold was no longer in.
 */
export const RELEASE = script(
  'release',
  `
local lock, done = KEYS[1], KEYS[2]
local hold, stays = 'hold:' .. ARGV[1], ARGV[2]
local first = redis.call('GET', done)
if first then
  return tonumber(first)
end
-- HDEL first: a full server accepts it, and what follows it in the same script.
local answer = redis.call('HDEL', lock, hold)
if answer == 1 and redis.call('HLEN', lock) == 5 then
  redis.call('DEL', lock)
end
redis.call('SET', done, answer, 'PX', stays)
return answer
`,
);

/**
 * What is stored of a lock.
 *
 * KEYS lock
 *
 * Reply `[fence, holds, remaining ms, since in ms, by]`, or an empty list where nobody holds it.
 */
export const INSPECT = script(
  'inspect',
  `
local lock = KEYS[1]
local held = redis.call('HMGET', lock, 'fence', 'since', 'by')
if not held[1] then
  return {}
end
local holds = redis.call('HLEN', lock) - 5
return {held[1], holds, redis.call('PTTL', lock), held[2], held[3]}
`,
);

/**
 * Deletes a lock, if its fence is the one named, and tells the processes that hold it.
 *
 * KEYS lock, done mark of this request · ARGV fence, key as the user wrote it, channel without process id, how long the
 * done mark stays in ms
 *
 * Reply 1, or 0 where the lock is not held at that fence.
 */
export const FORCE_RELEASE = script(
  'forceRelease',
  `
local lock, done = KEYS[1], KEYS[2]
local fence, key, channel, stays = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
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
-- Only a hint, so it comes last and may fail: the next renewal finds out as well.
for process in pairs(processes) do
  redis.pcall('PUBLISH', channel .. process, 'forced ' .. fence .. ' ' .. key)
end
return 1
`,
);
