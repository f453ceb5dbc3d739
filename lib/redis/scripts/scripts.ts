import { MOST_HOLDS } from '../../kit/protocol.js';
import { BatchScript } from './batch-script.js';
import { ATTEMPT, ATTEMPT_BODY, HAND_OVER, HOLD_FIELD, HOLDS, LEASE_FUNCTIONS, NOW, RELEASE_HOLD } from './lua.js';
import { CLAIM_FIELD, INSPECT_SHARED, SHARERS, RENEW_SHARED_HOLD } from './shared-lua.js';
import { ACQUIRE_SHARED, RELEASE_SHARED } from './shared-scripts.js';
import { script, scriptForEach } from './script.js';

/**
 * The operations of the Redis store, one script each. Every script may run twice, and answers the second time as it did
 * the first; a release does so where a done mark is left. In each script, the first write is one that a full or
 * restricted server accepts or refuses whole.
 *
 * | key | content |
 * |---|---|
 * | `lock`, held | a HASH: owner, fence, ttl, since (ms, server time), by, and per hold `hold:<id>` → process |
 * | `lock`, shared | a HASH: owner, which is empty, fence, per hold `in:<id>`, and per reserved place `claim:<place>` |
 * | `lock`, reserved | a HASH with one field: turn, the place that it is reserved for |
 * | `queue` | a ZSET: place → its number, which ends in .5 where the process polls |
 * | `done` | the first answer of a hold's release |
 * | `counter` | the last fence |
 *
 * `ttl` is the longest lease that was asked for, in ms. A process that polls is not gone because it receives no
 * message.
 *
 * | argument | meaning |
 * |---|---|
 * | `hold` | the hold's field in the lock |
 * | `place` | `<process>:<name>`, or '' for a caller that does not queue |
 * | `polls` | 0.5 for a process that polls, or 0 |
 * | `channel` | the prefix of the channels, to which the name of a process is appended |
 * | `key` | the key as the user wrote it, for messages |
 * | `ttl` | the lease asked for, in ms |
 * | `fences` | how many fences the grant reserves |
 * | `latest` | the latest server time, in ms, at which the command may be carried out; 0 where it is unknown |
 * | `stays` | how long the done mark stays, in ms; 0 where none is left |
 */

/**
 * Grants a lock that is free and reserved for no other place, or confirms the grant to a hold that is in the lock.
 *
 * Reply: the fence, which is about the server's time in µs, or `fence ms` where the server's time differs from it; or
 * `[remaining ms, by, held ms, rank in the queue or -1, 1 if it is new there, place it is reserved for or '', server's
 * time in ms]` where another owner has the lock, it is another's turn, or this hold has ended; or `[server's time in
 * ms]` where the lock is free, and the command came too late.
 */
export const ACQUIRE = script(
  'acquire',
  ATTEMPT,
  `local turn
${ATTEMPT_BODY}`,
);

/**
 * Releases `released`, and acquires for the next caller of the same process: before the queue where `overtakes` is 1,
 * otherwise the caller queues. The release is carried out also where the command comes late.
 *
 * Reply: a list of the replies to release and acquire.
 */
export const EXCHANGE = script(
  'exchange',
  {
    shared: ATTEMPT.shared,
    keys: [...ATTEMPT.keys, 'releasedDone'],
    args: [...ATTEMPT.args, 'released', 'stays'],
    numbers: [...ATTEMPT.numbers, 'overtakes'],
  },
  `${HAND_OVER}${RELEASE_HOLD}
local function attempt(turn)
${ATTEMPT_BODY}
end
local answer, last = release(lock, releasedDone, released, stays)
local reply
-- A command that comes late must not give the lock to a hold that has ended. The place may be queued already by a later one.
if last and overtakes == 1 and redis.call('EXISTS', done) == 0 then
  reply = attempt(place)
end
if type(reply) ~= 'string' then
  if last then
    hand_over(lock, queue, channel, key)
  end
  reply = reply or attempt()
end
return {answer, reply}
`,
);

/**
 * Adds a hold to a running lock; never creates one.
 *
 * Reply: 1, 0 where the lock has ended, or -1 where it has as many holds as it may; or `[server's time in ms]` where
 * the command came too late.
 */
export const JOIN = script(
  'join',
  { keys: ['lock', 'done'], args: ['owner', 'fence', 'hold', 'process'], numbers: ['ttl', 'latest'] },
  `${NOW}${LEASE_FUNCTIONS}
local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', hold)
if held[1] ~= owner or held[2] ~= fence or redis.call('EXISTS', done) == 1 then
  return 0
end
if not held[4] and ${HOLDS} >= ${MOST_HOLDS} then
  return -1
end
if not held[4] and latest > 0 then
  local ms = now()
  if ms > latest then
    return {ms}
  end
end
redis.call('HSET', lock, hold, process)
lengthen(lock, ttl, held[3])
return 1
`,
);

/** Renews a hold of write mode: sets `reply`. */
const RENEW_HOLD = `-- Another application's key under one name is the loss of that lock, and not a failure of the others.
local held = redis.pcall('HMGET', lock, 'owner', 'fence', 'ttl', hold)
if held.err and not string.find(held.err, '^WRONGTYPE') then
  return held
end
reply = 0
if held[1] == owner and held[2] == fence and held[4] then
  reply = 1
  -- Also where the lease is long enough: WAIT answers for what its connection has written.
  redis.call('PEXPIRE', lock, lingers == 1 and ${HOLDS} == 1 and ttl or math.max(redis.call('PTTL', lock), ttl))
  if ttl > tonumber(held[3]) then
    redis.call('HSET', lock, 'ttl', ttl)
  end
  if by ~= '' then
    redis.call('HSET', lock, 'by', by)
  end
end
`;

/**
 * Sets each lease to at least its ttl from now; to exactly its ttl for a hold that `lingers`, unless others are in the
 * lock. `by` is the caller that runs in it now, or ''.
 *
 * Reply for each: 1, or 0 where its lock is gone.
 */
export const RENEW = scriptForEach(
  'renew',
  { keys: ['lock'], args: ['owner', 'fence', 'hold', 'by'], numbers: ['ttl', 'lingers'] },
  RENEW_HOLD,
);

/** As `RENEW`, for holds of which some share their keys; `mode` is empty for the others. */
export const RENEW_ANY = scriptForEach(
  'renewAny',
  { keys: ['lock'], args: ['owner', 'fence', 'hold', 'by', 'mode'], numbers: ['ttl', 'lingers'] },
  `if mode == '' then
${RENEW_HOLD}
else
${RENEW_SHARED_HOLD}
end
`,
);

/**
 * Takes a hold out; the last one hands the lock over, or deletes it. A done mark, where one is left, keeps the first
 * answer, and refuses an acquire of the same hold that comes late.
 *
 * Reply: 1, or 0 where the hold was no longer in.
 */
export const RELEASE = script(
  'release',
  { keys: ['lock', 'done', 'queue'], args: ['hold', 'channel', 'key', 'stays'] },
  `${RELEASE_HOLD}
local answer, last = release(lock, done, hold, stays)
if last and redis.call('EXISTS', queue) == 0 then
  redis.call('DEL', lock)
elseif last then
${HAND_OVER}
  hand_over(lock, queue, channel, key)
end
return answer
`,
);

/**
 * Gives up a place in the queue, or the turn it came to, and no later one.
 *
 * Reply: 1.
 */
export const LEAVE = script(
  'leave',
  { keys: ['lock', 'queue'], args: ['place', 'channel', 'key'] },
  `${HAND_OVER}
local left = redis.call('ZREM', queue, place)
local turn, owner = unpack(redis.call('HMGET', lock, 'turn', 'owner'))
if owner == '' then
  local sharers = sharers_of(lock)
  local claim = left == 0 and sharers.get('${CLAIM_FIELD}' .. place)
  if claim then
    sharers.drop({'${CLAIM_FIELD}' .. place})
  end
  -- A writer that waits no longer keeps nobody out of a key that others share.
  if claim or left == 1 and sharers.size > 0 then
    hand_over(lock, queue, channel, key, nil, sharers)
  end
elseif left == 0 and turn == place then
  hand_over(lock, queue, channel, key)
end
return 1
`,
);

/**
 * Reads the stored state of a lock.
 *
 * Reply: `[fence, holds, remaining ms, since in ms, by, places in order, processes of the holds]`, or nil where nobody
 * holds it. Where holds share the key, `read` or their smallest count follows.
 */
export const INSPECT = script(
  'inspect',
  { keys: ['lock', 'queue'] },
  `local held = redis.call('HMGET', lock, 'fence', 'since', 'by', 'owner')
if not held[1] then
  return nil
end
if held[4] == '' then
${SHARERS}${INSPECT_SHARED}
end
-- One command in a line: servers before Redis 7.2 name only the line of one that they refuse.
local fields = redis.call('HGETALL', lock)
local holds, processes, known = 0, {}, {}
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, ${HOLD_FIELD.length}) == '${HOLD_FIELD}' then
    holds = holds + 1
    if not known[fields[i + 1]] then
      known[fields[i + 1]] = true
      table.insert(processes, fields[i + 1])
    end
  end
end
local left = redis.call('PTTL', lock)
local places = redis.call('ZRANGE', queue, 0, -1)
return {held[1], holds, left, held[2], held[3], places, processes}
`,
);

/**
 * Frees a lock, if its fence is the one named: hands it over, and notifies the processes that hold it. The done mark
 * belongs to this request.
 *
 * Reply: 1, or 0 where the lock is not held at that fence.
 */
export const FORCE_RELEASE = script(
  'forceRelease',
  { keys: ['lock', 'done', 'queue'], args: ['fence', 'channel', 'key'], numbers: ['stays'] },
  `${HAND_OVER}
local first = redis.call('GET', done)
if first then
  return tonumber(first)
end
if redis.call('HGET', lock, 'fence') ~= fence then
  return 0
end
local processes, sharers = {}, nil
if redis.call('HGET', lock, 'owner') == '' then
  sharers = sharers_of(lock)
  local holds = {}
  for field, member in pairs(sharers.all()) do
    if member.number > 0 then
      table.insert(holds, field)
      processes[member.process] = true
    end
  end
  if #holds == 0 then
    return 0
  end
  sharers.drop(holds)
else
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, ${HOLD_FIELD.length}) == '${HOLD_FIELD}' then
      processes[fields[i + 1]] = true
    end
  end
  redis.call('DEL', lock)
end
redis.call('SET', done, 1, 'PX', stays)
hand_over(lock, queue, channel, key, nil, sharers)
-- Only a hint, so it comes last and may fail: the next renewal finds out as well.
for process in pairs(processes) do
  redis.pcall('PUBLISH', channel .. process, 'forced ' .. fence .. ' ' .. key)
end
return 1
`,
);

/** The scripts that calls of one turn of the event loop ask for most. */
export const BATCH = new BatchScript([ACQUIRE, EXCHANGE, RELEASE, ACQUIRE_SHARED, RELEASE_SHARED]);
