import { BatchScript } from '../../redis/scripts/batch-script.js';
import { GIVE_FENCE, HOLD_FIELD, LEASE_FUNCTIONS, STORE_GRANT } from '../../redis/scripts/lua.js';
import { script } from '../../redis/scripts/script.js';
import { RELEASE } from '../../redis/scripts/scripts.js';
import { ABOUT_MS, MOST_AHEAD_US, PRESENT_MS, SLICE_MS } from './vote-rules.js';

/**
 * The scripts of a quorum's servers, besides those of the Redis store. A lock is stored as in the Redis store; its
 * holds are votes, each called `hold:<hold>.<number of the attempt>`, or `hold:<hold>` where the hold joined by a
 * ticket. A late command of one attempt concerns no other attempt.
 *
 * | key | content |
 * |---|---|
 * | `waiters` | a HASH that lives for a second: process → `<since when it waits> <when it was refused last>`; |
 * | | and `last` → `<since when> <process>`, for the process that had the lock last |
 * | `record` | a HASH: the server's part in the quorum |
 */

/**
 * Votes for an owner if the lock is free, or that owner has it already. Then earlier votes of the same hold are
 * replaced: they never stand in the way. Refuses late commands.
 *
 * A process that has had the lock for its slice of time is refused while another process waits, and so is a process
 * that has waited for less time than another. The servers differ a little on these times, and a majority decides.
 *
 * `withdrawn` is the done mark of the vote. The fields of all votes of the hold begin with `votes`. `fence` is the
 * first of so many `fences` that the process proposes. The caller has waited for `waited` ms, 0 in its first attempt.
 * The lock is `age` ms old: 0, unless the vote is cast again.
 *
 * Reply: `fence ms`, the fence that was stored and the server's time; or `[remaining ms, by, held ms, how many wait
 * longer, server's time in ms]` where another owner has the lock, another process has waited longer, or this hold or
 * this attempt has ended; or `[server's time in ms]` where the command came too late.
 */
export const VOTE = script(
  'vote',
  {
    keys: ['lock', 'done', 'withdrawn', 'counter', 'waiters'],
    args: ['owner', 'votes', 'vote', 'process', 'by', 'fence'],
    numbers: ['attempt', 'ttl', 'waited', 'fences', 'age', 'latest'],
  },
  `
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
${LEASE_FUNCTIONS}
local function whole(number)
  return string.format('%.0f', number)
end

local function refusal(left, by, held, rank)
  return {left, by, held, rank, ms}
end

local function grant()
  local now = time[1] * 1000000 + time[2]
  -- A proposal far ahead of the clocks of the servers would be above all that follow once the counters that know it are lost.
  local wanted = fence - now > ${MOST_AHEAD_US} and whole(now) or fence
  -- A counter that was lost may have been ahead of the proposal, but hardly of the server's clock; which may be ahead itself.
  local least = math.min(now, wanted + ${MOST_AHEAD_US})
${GIVE_FENCE}
  local since, hold = whole(ms - age), vote
${STORE_GRANT}
  return given .. ' ' .. whole(ms)
end

local function vote_again(held)
  local earlier = {}
  if not held[6] then
    local fields = redis.call('HGETALL', lock)
    for i = 1, #fields, 2 do
      if string.sub(fields[i], 1, #votes) == votes then
        if tonumber(string.sub(fields[i], #votes + 1)) > attempt then
          return refusal(0, '', 0, 0)
        end
        table.insert(earlier, fields[i])
      end
    end
  end
  redis.call('HSET', lock, vote, process)
  if #earlier > 0 then
    redis.call('HDEL', lock, unpack(earlier))
  end
  lengthen(lock, ttl, held[3])
  return held[2] .. ' ' .. whole(ms)
end

-- Of the other processes: since when the one waits that has waited longest, and how many have waited longer than this one. And which
-- process had the lock last, since when.
local function others()
  local fields = redis.call('HGETALL', waiters)
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
  return since, rank, last, from
end

-- Notes that this caller waits, unless this is its first attempt, which may be the only one.
local function wait(last, from)
  if waited > 0 then
    redis.call('HSET', waiters, process, whole(ms - waited) .. ' ' .. whole(ms))
    if last and not redis.call('HGET', waiters, 'last') then
      redis.call('HSET', waiters, 'last', whole(from) .. ' ' .. last)
    end
    redis.call('PEXPIRE', waiters, ${2 * PRESENT_MS})
  end
end

-- The process of the last hold that came in.
local function holder()
  local process
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, ${HOLD_FIELD.length}) == '${HOLD_FIELD}' then
      process = fields[i + 1]
    end
  end
  return process
end

if latest > 0 and ms > latest then
  return {ms}
end
if redis.call('EXISTS', lock, done, withdrawn, waiters) == 0 then
  return grant()
end
if redis.call('EXISTS', done, withdrawn) > 0 then
  return refusal(0, '', 0, 0)
end
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', vote)
if held[1] == owner then
  return vote_again(held)
end
local since, rank, last, from = others()
if not held[1] then
  local in_slice = last == process and ms - from < ${SLICE_MS}
  if since and not in_slice and ms - waited > since + ${ABOUT_MS} then
    wait()
    return refusal(${PRESENT_MS}, '', 0, rank)
  end
  local reply = grant()
  redis.call('HDEL', waiters, process)
  if not in_slice then
    redis.call('HSET', waiters, 'last', whole(ms - age) .. ' ' .. process)
  end
  redis.call('PEXPIRE', waiters, ${2 * PRESENT_MS})
  return reply
end
local left = remaining(lock, held[3])
if waited > 0 then
  wait(holder(), held[4])
end
return refusal(left, held[5], math.max(0, ms - held[4]), rank)
`,
);

/**
 * Gives a vote the fence on which the attempt settled. `last` is the last one that it reserves.
 *
 * Reply: 1, or 0 where the vote is gone.
 */
export const SETTLE = script(
  'settle',
  { keys: ['lock', 'counter'], args: ['owner', 'vote', 'fence', 'last'] },
  `
local held = redis.call('HMGET', lock, 'owner', vote)
if held[1] ~= owner or not held[2] then
  return 0
end
-- The counter comes first: a lock must not have a fence that is still to be given.
if (redis.call('GET', counter) or 0) + 0 < last + 0 then
  redis.call('SET', counter, last)
end
redis.call('HSET', lock, 'fence', fence)
return 1
`,
);

/**
 * Reports to a server the facts that a process knows, and replies with the server's facts of its part in the quorum.
 * The server's record has its run, when the run was first seen, whether its votes count, since when they do because the
 * quorum was new, and whether an earlier run is known; besides, the reports of processes about their servers and
 * settings, each with the time until which it holds.
 *
 * The record of an earlier run is forgotten. A command about a run that is over by now makes nothing count for the next
 * run.
 *
 * `restarted` is 1 if the process knows an earlier run of this server. `counts` is '' or, if its votes count from now
 * on, `again` or `first`; its last fence is at least `least` then. `said` has names, each with for how many ms it
 * holds.
 *
 * Reply: `[ms since the run was first seen, 1 if its votes count, ms since the first use or -1, 1 if there was an
 * earlier run, last fence, ms since 1970, each report, …]`
 */
export const REPORT = script(
  'report',
  { keys: ['record', 'counter'], args: ['run', 'counts', 'least'], numbers: ['restarted'], rest: 'said' },
  `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', record, 'run', 'read')
if held[2] and held[2] - now > 1000 then
  -- The clock was set back: what was reported holds for as long as it did then.
  local fields = redis.call('HGETALL', record)
  redis.call('HSET', record, 'seen', now)
  for i = 1, #fields, 2 do
    if string.find(fields[i], ':', 1, true) then
      redis.call('HSET', record, fields[i], fields[i + 1] - held[2] + now)
    end
  end
end
if held[1] ~= run then
  redis.call('HSET', record, 'run', run, 'seen', now, 'restarted', held[1] and 1 or 0)
  redis.call('HDEL', record, 'counts', 'first')
end
redis.call('HSET', record, 'read', now)
if restarted == 1 then
  redis.call('HSET', record, 'restarted', 1)
end
if counts == 'again' or counts == 'first' and redis.call('HGET', record, 'restarted') ~= '1' then
  -- The fence comes first: a process that finds a vote that counts has to find a fence that is above all before it.
  if (redis.call('GET', counter) or 0) + 0 < least + 0 then
    redis.call('SET', counter, least)
  end
  redis.call('HSET', record, 'counts', 1)
  -- Another process may have said so before, and a server may have restarted since.
  if counts == 'first' and not redis.call('HGET', record, 'first') then
    redis.call('HSET', record, 'first', now)
  end
end
for i = 1, #said, 2 do
  local ends = redis.call('HGET', record, said[i]) or 0
  redis.call('HSET', record, said[i], math.max(now + said[i + 1], tonumber(ends)))
end
local fields, known, reported = redis.call('HGETALL', record), {}, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if not string.find(field, ':', 1, true) then
    known[field] = tonumber(value)
  elseif tonumber(value) > now then
    table.insert(reported, field)
  else
    redis.call('HDEL', record, field)
  end
end
local first = known.first and math.max(0, now - known.first) or -1
return {now - known.seen, known.counts or 0, first, known.restarted, redis.call('GET', counter) or '0', now, unpack(reported)}
`,
);

/** The scripts that calls of one turn of the event loop ask a server for most. */
export const BATCH = new BatchScript([VOTE, SETTLE, RELEASE]);
