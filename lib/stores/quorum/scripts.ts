import { MOST_FENCE } from '../kit/protocol.js';
import { HOLD_FIELD } from '../redis/lua.js';
import { script } from '../redis/script.js';
import { ABOUT_MS, MOST_AHEAD_US, PRESENT_MS, SLICE_MS } from './vote-rules.js';

/**
 * What the servers of a quorum are asked besides the scripts of the Redis store, whose data they share. The vote of an
 * attempt is a hold called `<hold>.<number of the attempt>`: what comes late of one attempt concerns no other.
 */

/**
 * Votes for an owner, if the lock is free or that owner's already: an earlier vote of the same hold is replaced, and
 * never stands in the way. Refuses what comes late.
 *
 * A server notes who waits, and since when. A process that has had the lock for its slice of time is refused while another one
 * waits, and so is whoever has not waited as long as another. They disagree a little on how long that is, and a majority decides.
 *
 * `withdrawn` is the done mark of the vote, `line` notes who waits, `votes` is what the fields of the hold's votes begin with, `waited`
 * is for how many ms this caller has waited. `fence` is the proposed one.
 *
 * Reply: `fence ms`, the fence that it stored and the server's time; or `[remaining ms, by, held ms, how many wait longer,
 * server's time in ms]` where another owner has the lock, it is another's turn, or this hold or this attempt has ended; or
 * `[server's time in ms]` where it came too late.
 */
export const VOTE = script(
  'vote',
  {
    keys: ['lock', 'done', 'withdrawn', 'counter', 'line'],
    args: ['owner', 'votes', 'vote', 'process', 'by', 'fence'],
    numbers: ['attempt', 'ttl', 'waited', 'latest'],
  },
  `
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function grant()
  local now = time[1] * 1000000 + time[2]
  -- A proposal far ahead of the clocks of the servers would be above all that follow once the counters that know it are lost.
  if fence - now > ${MOST_AHEAD_US} then
    fence = string.format('%.0f', now)
  end
  -- GETSET comes first: it is what a full server refuses.
  local last = redis.call('GETSET', counter, fence)
  -- A counter that was lost may have been ahead of the proposal, but hardly of the server's clock; which may be ahead itself.
  local least = last and last + 1 or math.min(now, fence + ${MOST_AHEAD_US})
  if least > ${MOST_FENCE} then
    redis.call('SET', counter, last)
    return redis.error_reply('FENCE ' .. last)
  end
  if least > fence + 0 then
    fence = string.format('%.0f', least)
    redis.call('SET', counter, fence)
  end
  redis.call('HSET', lock, 'owner', owner, 'fence', fence, 'ttl', ttl, 'since', string.format('%.0f', ms), 'by', by, vote, process)
  if redis.pcall('PEXPIRE', lock, ttl) ~= 1 then
    -- A user whom it is forbidden to must not leave a lock without an expiry.
    redis.call('DEL', lock)
    redis.call('PEXPIRE', lock, ttl)
  end
  return fence .. ' ' .. string.format('%.0f', ms)
end

local function vote_again(held)
  local earlier = {}
  if not held[6] then
    local fields = redis.call('HGETALL', lock)
    for i = 1, #fields, 2 do
      if string.sub(fields[i], 1, #votes) == votes then
        if tonumber(string.sub(fields[i], #votes + 1)) > attempt then
          return {0, '', 0, 0, ms}
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
  return held[2] .. ' ' .. string.format('%.0f', ms)
end

-- Since when the process waits that has waited longest of the others; who had the lock last, and since when; how many wait longer.
local function others()
  local fields = redis.call('HGETALL', line)
  local since, last, from
  local rank = 0
  for i = 1, #fields, 2 do
    local first, second = string.match(fields[i + 1], '^(%S+) (%S+)$')
    if fields[i] == 'last' then
      from, last = tonumber(first), second
    elseif fields[i] ~= process and second + ${PRESENT_MS} > ms then
      since = math.min(since or first, tonumber(first))
      rank = rank + (tonumber(first) < ms - waited and 1 or 0)
    end
  end
  return since, last, from, rank
end

-- Notes that this caller waits; the first attempt does not, since it may be the only one.
local function wait(last, from)
  if waited > 0 then
    redis.call('HSET', line, process, string.format('%.0f %.0f', ms - waited, ms))
    if last and not redis.call('HGET', line, 'last') then
      redis.call('HSET', line, 'last', string.format('%.0f ', from) .. last)
    end
    redis.call('PEXPIRE', line, ${2 * PRESENT_MS})
  end
end

if latest > 0 and ms > latest then
  return {ms}
end
local found = redis.call('EXISTS', lock, done, withdrawn, line)
if found == 0 then
  return grant()
end
if redis.call('EXISTS', done, withdrawn) > 0 then
  return {0, '', 0, 0, ms}
end
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', vote)
if held[1] == owner then
  return vote_again(held)
end
local since, last, from, rank = others()
if not held[1] then
  local goes_on = last == process and ms - from < ${SLICE_MS}
  if since and not goes_on and ms - waited > since + ${ABOUT_MS} then
    wait()
    return {${PRESENT_MS}, '', 0, rank, ms}
  end
  local reply = grant()
  redis.call('HDEL', line, process)
  if last ~= process or not goes_on then
    redis.call('HSET', line, 'last', string.format('%.0f ', ms) .. process)
  end
  redis.call('PEXPIRE', line, ${2 * PRESENT_MS})
  return reply
end
local left, most = redis.call('PTTL', lock), tonumber(held[3] or 1000)
-- More time left than was ever asked for: the server's clock was set back, or somebody took the expiry away.
if left < 0 or left > most then
  left = most
  redis.call('PEXPIRE', lock, left)
end
if waited > 0 then
  local holds, holder = redis.call('HGETALL', lock), nil
  for i = 1, #holds, 2 do
    if string.sub(holds[i], 1, ${HOLD_FIELD.length}) == '${HOLD_FIELD}' then
      holder = holds[i + 1]
    end
  end
  wait(holder, held[4] or ms)
end
return {left, held[5] or '', math.max(0, ms - (held[4] or ms)), rank, ms}
`,
);

/**
 * Gives a vote the fence on which the attempt settled.
 *
 * Reply 1, or 0 where the vote is gone.
 */
export const SETTLE = script(
  'settle',
  { keys: ['lock', 'counter'], args: ['owner', 'vote', 'fence'] },
  `
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
 * What a server remembers of the quorum that it is in. A hash: the run that it is about, when that was first seen, whether its votes
 * count, whether they do since the first use of all and since when, and whether somebody knew the server in an earlier run. Besides,
 * what processes said of their servers, each with the time until which it holds.
 *
 * What is said of an earlier run is forgotten. In a script that tells of a run which is over by now, nothing counts for the next one.
 *
 * `restarted` is 1 if the server is known to have had an earlier run; `counts` is '' or, if its votes count from now on, `again` or
 * `first`; `least` is the least fence that is its last then; `said` has for each thing said its name, and for how many ms it holds.
 *
 * Reply: `[ms since the run was first seen, 1 if its votes count, ms since the first use or -1, 1 if there was an earlier run, last
 * fence, ms since 1970, what is said, …]`
 */
export const ROLL = script(
  'roll',
  { keys: ['record', 'counter'], args: ['run', 'counts', 'least'], numbers: ['restarted'], rest: 'said' },
  `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', record, 'run', 'looked')
if held[2] and held[2] - now > 1000 then
  -- The clock was set back: what was noted by the other time tells nothing.
  local fields = redis.call('HGETALL', record)
  redis.call('HSET', record, 'seen', now)
  for i = 1, #fields, 2 do
    if string.find(fields[i], ':', 1, true) then
      redis.call('HDEL', record, fields[i])
    end
  end
end
if held[1] ~= run then
  redis.call('HSET', record, 'run', run, 'seen', now, 'restarted', held[1] and 1 or 0)
  redis.call('HDEL', record, 'counts', 'first')
end
redis.call('HSET', record, 'looked', now)
if restarted == 1 then
  redis.call('HSET', record, 'restarted', 1)
end
if counts == 'again' or counts == 'first' and redis.call('HGET', record, 'restarted') ~= '1' then
  -- The fence comes first: whoever finds a vote that counts has to find a fence that is above all before it.
  if (redis.call('GET', counter) or 0) + 0 < least + 0 then
    redis.call('SET', counter, least)
  end
  redis.call('HSET', record, 'counts', 1)
  if counts == 'first' then
    redis.call('HSET', record, 'first', now)
  end
end
for i = 1, #said, 2 do
  local ends = redis.call('HGET', record, said[i]) or 0
  redis.call('HSET', record, said[i], math.max(now + said[i + 1], tonumber(ends)))
end
local fields, known, kept = redis.call('HGETALL', record), {}, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if not string.find(field, ':', 1, true) then
    known[field] = tonumber(value)
  elseif tonumber(value) > now then
    table.insert(kept, field)
  else
    redis.call('HDEL', record, field)
  end
end
local first = known.first and math.max(0, now - known.first) or -1
return {now - known.seen, known.counts or 0, first, known.restarted, redis.call('GET', counter) or '0', now, unpack(kept)}
`,
);
