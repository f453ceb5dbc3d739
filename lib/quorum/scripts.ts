import { script } from '../redis/script.js';

/**
 * What the servers of a quorum are asked besides the scripts of the Redis store, whose data they share. The vote of an
 * attempt is a hold called `<hold>.<number of the attempt>`: what comes late of one attempt concerns no other.
 */

/**
 * Votes for an owner, if the lock is free or that owner's already: an earlier vote of the same hold is replaced, and
 * never stands in the way.
 *
 * KEYS lock, done mark of the hold, done mark of the vote, fence · ARGV owner, hold, number of the attempt, process, ttl
 * in ms, by, proposed fence
 *
 * Reply: the fence that it stored, or `[remaining ms, by, held ms]` where another owner has the lock, or this hold or
 * this attempt has ended.
 */
export const VOTE = script(
  'vote',
  `
local lock, done, withdrawn, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, prefix, attempt = ARGV[1], 'hold:' .. ARGV[2] .. '.', tonumber(ARGV[3])
local process, ttl, by, fence = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]
local vote = prefix .. ARGV[3]

local function grant()
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- A proposal far ahead of the clocks of the servers would be above all that follow once the counters that know it are lost.
  if fence - now > 1000000 then
    fence = string.format('%.0f', now)
  end
  -- GETSET comes first: it is what a full server refuses.
  local last = redis.call('GETSET', counter, fence)
  -- A counter that was lost may have been ahead of the proposal, but hardly of the server's clock.
  local least = last and last + 1 or now
  if least > fence + 0 then
    fence = string.format('%.0f', least)
    redis.call('SET', counter, fence)
  end
  local since = time[1] .. string.sub('00000' .. time[2], -6, -4)
  redis.call('HSET', lock, 'owner', owner, 'fence', fence, 'ttl', ttl, 'since', since, 'by', by, vote, process)
  if redis.pcall('PEXPIRE', lock, ttl) ~= 1 then
    -- A user whom it is forbidden to must not leave a lock without an expiry.
    redis.call('DEL', lock)
    redis.call('PEXPIRE', lock, ttl)
  end
  return fence
end

local function vote_again(held)
  local earlier = {}
  if not held[6] then
    local fields = redis.call('HGETALL', lock)
    for i = 1, #fields, 2 do
      if string.sub(fields[i], 1, #prefix) == prefix then
        if tonumber(string.sub(fields[i], #prefix + 1)) > attempt then
          return {0, '', 0}
        end
        table.insert(earlier, fields[i])
      end
    end
  end
  redis.call('HSET', lock, vote, process, 'ttl', math.max(ttl, tonumber(held[3])))
  if #earlier > 0 then
    redis.call('HDEL', lock, unpack(earlier))
  end
  if redis.call('PTTL', lock) < ttl then
    redis.call('PEXPIRE', lock, ttl)
  end
  return held[2]
end

if redis.call('EXISTS', lock, done, withdrawn) == 0 then
  return grant()
end
if redis.call('EXISTS', done, withdrawn) > 0 then
  return {0, '', 0}
end
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', vote)
if held[1] == owner then
  return vote_again(held)
end
local left, most = redis.call('PTTL', lock), tonumber(held[3] or 1000)
-- More time left than was ever asked for: the server's clock was set back, or somebody took the expiry away.
if left < 0 or left > most then
  left = most
  redis.call('PEXPIRE', lock, left)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {left, held[5] or '', math.max(0, now - (held[4] or now))}
`,
);

/**
 * Gives a vote the fence on which the attempt settled.
 *
 * KEYS lock, fence · ARGV owner, vote, fence
 *
 * Reply 1, or 0 where the vote is gone.
 */
export const SETTLE = script(
  'settle',
  `
local lock, counter = KEYS[1], KEYS[2]
local owner, vote, fence = ARGV[1], 'hold:' .. ARGV[2], ARGV[3]
local held = redis.call('HMGET', lock, 'owner', vote)
if held[1] ~= owner or not held[2] then
  return 0
end
-- The counter comes first: a lock must not have a fence that is still to be given.
if (redis.call('GET', counter) or 0) + 0 < fence + 0 then
  redis.call('SET', counter, fence)
end
redis.call('HSET', lock, 'fence', fence)
return 1
`,
);

/**
 * What a server remembers: of which of its runs the votes count. Stores the run, if one is given.
 *
 * KEYS run · ARGV run or ''
 *
 * Reply: the run, or ''.
 */
export const REMEMBER = script(
  'remember',
  `
if ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
end
return redis.call('GET', KEYS[1]) or ''
`,
);
