import { MOST_HOLDS } from '../../kit/protocol.js';
import { answerBusy, ATTEMPT, CHECK_TIME, GIVE_FENCE, HAND_OVER, LAST_END, LEASE_FUNCTIONS, NOW } from './lua.js';
import { script } from './script.js';
import { CLAIM_FIELD, SHARERS, STORE_FIRST } from './shared-lua.js';

/**
 * The operations of holds that share their key, where those of write mode do not do. They keep the rules of `scripts`,
 * with its arguments; and `mode`, which is R for a reader, and P with the count for a permit.
 *
 * A hold is stored as `<end> <number> <ttl> <since> <mode> <owner> <process> <by>`: its own lease ends at `<end>`, by
 * the server's clock in ms since 1970, and it was the `<number>`th that came in. The number of a reserved place is 0.
 * The key expires with the last of them.
 */

/**
 * Grants a key that has room and is not reserved for another place, or confirms the grant to a hold that is in. All
 * that are in have the fence of the first.
 *
 * Reply: as that of `ACQUIRE`; a hold that cannot share the key with those that are in is answered `['lock' or
 * 'semaphore', server's time in ms]`, which is what the key is.
 */
export const ACQUIRE_SHARED = script(
  'acquireShared',
  { ...ATTEMPT, args: [...ATTEMPT.args, 'mode'] },
  `local sharers
if redis.call('EXISTS', lock, done, queue) > 0 then
${NOW}${HAND_OVER}${LEASE_FUNCTIONS}
  if redis.call('EXISTS', done) == 1 then
    return {0, '', 0, -1, 0, '', now()}
  end
  local held = redis.call('HMGET', lock, 'owner', 'fence', 'ttl', 'since', 'by', 'turn')
  local turn = held[6]
  local kind = string.sub(mode, 1, 1)
  local has_room = false
  if held[1] and held[1] ~= '' then
    if kind == 'P' then
      return {'lock', now()}
    end
  elseif not turn then
    sharers = sharers_of(lock)
    local mine = sharers.get(hold)
    if mine and mine.owner == owner then
      mine.by = by ~= '' and by or mine.by
      sharers.put(hold, mine, ttl)
      sharers.keep()
      return sharers.fence .. ' ' .. sharers.ms
    end
    if sharers.holds > 0 and sharers.kind ~= kind then
      return {sharers.kind == 'P' and 'semaphore' or 'lock', sharers.ms}
    end
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    if first and first ~= place then
      turn, sharers = hand_over(lock, queue, channel, key, place, sharers)
      first = redis.call('ZRANGE', queue, 0, 0)[1]
    end
    if sharers then
      has_room = sharers.get('${CLAIM_FIELD}' .. place) or sharers.has_room(mode) and (not first or first == place)
    else
      has_room = not first
    end
    has_room = has_room and not turn
  end
  if not has_room then${answerBusy(`(kind == 'P' and sharers.least or ${LAST_END})`)}  end
end
${CHECK_TIME}
local given
if sharers and sharers.holds > 0 then
  given = sharers.fence
else
  local wanted, least = string.format('%.0f', clock), 0
  local fence
  do
${GIVE_FENCE}
    fence = given
  end
  given = fence
  clock = clock + fences
end
if sharers then
  redis.call('HSET', lock, 'fence', given)
  if sharers.get('${CLAIM_FIELD}' .. place) then
    sharers.drop({'${CLAIM_FIELD}' .. place})
  end
  redis.call('ZREM', queue, place)
  sharers.put(hold, {mode = mode, owner = owner, process = process, by = by}, tonumber(ttl))
  sharers.keep()
else
${STORE_FIRST}
end
return given .. ' ' .. ms
`,
);

/**
 * Adds a hold beside one of the same owner; never creates one.
 *
 * Reply: as that of `JOIN`.
 */
export const JOIN_SHARED = script(
  'joinShared',
  { keys: ['lock', 'done'], args: ['owner', 'fence', 'hold', 'process', 'by', 'mode'], numbers: ['ttl', 'latest'] },
  `${SHARERS}
local sharers = sharers_of(lock)
local is_in = false
for _, member in pairs(sharers.all()) do
  is_in = is_in or member.owner == owner
end
if not is_in or sharers.fence ~= fence or redis.call('EXISTS', done) == 1 then
  return 0
end
local mine = sharers.get(hold)
if not mine and sharers.holds >= ${MOST_HOLDS} then
  return -1
end
if not mine and latest > 0 and sharers.ms > latest then
  return {sharers.ms}
end
mine = mine or {mode = mode, owner = owner, process = process, by = by}
mine.by = by ~= '' and by or mine.by
sharers.put(hold, mine, ttl)
sharers.keep()
return 1
`,
);

/**
 * Takes a hold out, and hands over the room that it leaves. One whose lease is over was not in.
 *
 * Reply: as that of `RELEASE`.
 */
export const RELEASE_SHARED = script(
  'releaseShared',
  { keys: ['lock', 'done', 'queue'], args: ['owner', 'hold', 'channel', 'key', 'stays'] },
  `${SHARERS}
local sharers = sharers_of(lock)
local mine = sharers.get(hold)
-- HDEL first: a full server accepts it, and what follows it in the same script.
local answer = mine and mine.owner == owner and sharers.drop({hold}) or redis.call('HDEL', lock, '')
if stays ~= '0' then
  local first = answer == 0 and redis.call('GET', done)
  if first then
    return tonumber(first)
  end
  redis.call('SET', done, answer, 'PX', stays)
end
if answer == 1 and redis.call('EXISTS', queue) == 0 then
  sharers.keep()
elseif answer == 1 then
${HAND_OVER}
  hand_over(lock, queue, channel, key, nil, sharers)
end
return answer
`,
);
