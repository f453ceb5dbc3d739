import { CLAIM_MS, MOST_FENCE, MOST_HOLDS } from '../../kit/protocol.js';

/**
 * Lua about keys that several share. Scripts of write mode define it where somebody shares the key, or wants to: it
 * costs nothing where nobody does.
 */

/** The prefix of the names of fields that stand for a hold which shares its key. */
export const SHARED_FIELD = 'in:';
/** The prefix of the names of fields that stand for room which is reserved for a place. */
export const CLAIM_FIELD = 'claim:';
/** The prefix of the names of fields that name the hold which came in as the one of that number. */
const ORDER_FIELD = 'order:';

/**
 * The text of a member, whose facts are locals of that prefix: those that may be read by others come last. By
 * concatenation: `%s` would end at a NUL.
 */
function textOf(prefix: string): string {
  const numbers = ['ends', 'number', 'ttl', 'since'].map((name) => prefix + name).join(', ');
  const texts = ['mode', 'owner', 'process', 'by'].map((name) => prefix + name).join(` .. ' ' .. `);
  return `string.format('%.0f %.0f %.0f %.0f ', ${numbers}) .. ${texts}`;
}

/** The numbers of a summary, in the order in which they are stored; the kind comes before them. */
const SUMMARY = ['size', 'holds', 'number', 'lowest', 'most', 'fewest', 'least', 'last', 'latest'];

/**
 * `sharers_of(lock)`: those who share a key, as stored, but for what is over by the server's time. Its members, by
 * field, are holds and reserved places; `holds` counts the former, and `size` both. `most` is how many may be in it, by
 * the smallest count, which so many have as `fewest` says; `kind` is R or P. Holds are numbered as they come in, from
 * `lowest` to `number`. No member's end is before `least`, none is after `last`, and `latest` is when one was stored.
 *
 * The lock has these as its summary, so that a permit costs the same whether ten are taken or a thousand. All members
 * are read where one may be over, where the last of those with the smallest count leaves, and where all are asked for.
 *
 * | function | what it does |
 * |---|---|
 * | `has_room(mode)` | whether one more has room |
 * | `get(field)` | the member; nil where there is none |
 * | `first()` | the hold that came first; false where there is none |
 * | `all()` | reads all members, and answers them by field |
 * | `put(field, member, ttl)` | stores a member, whose lease ends `ttl` ms from now |
 * | `claim(place, mode)` | reserves room for a place |
 * | `drop(fields)` | takes members out |
 * | `cut()` | cuts leases to the longest ttl that was asked for: after the clock was set back |
 * | `keep()` | removes what is over, and stores the summary and the expiry; deletes a key that nobody shares |
 */
export const SHARERS = `
local function sharers_of(lock)
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local sharers = {ms = ms}
  local members, over = {}, {}
  local function most_of(mode)
    return tonumber(string.sub(mode, 2)) or ${MOST_HOLDS}
  end
  local function clear()
    sharers.size, sharers.holds, sharers.lowest = 0, 0, ${MOST_FENCE}
    sharers.most, sharers.fewest, sharers.least, sharers.last = math.huge, 0, math.huge, 0
  end
  local function count_in(member)
    local most = most_of(member.mode)
    sharers.kind = string.sub(member.mode, 1, 1)
    sharers.size = sharers.size + 1
    sharers.fewest = most < sharers.most and 1 or most == sharers.most and sharers.fewest + 1 or sharers.fewest
    sharers.most = math.min(sharers.most, most)
    sharers.least = math.min(sharers.least, member.ends)
    sharers.last = math.max(sharers.last, member.ends)
    if member.number > 0 then
      sharers.holds = sharers.holds + 1
      sharers.number = math.max(sharers.number, member.number)
      sharers.lowest = math.min(sharers.lowest, member.number)
    end
  end
  local function parse(text)
    local ends, number, ttl, since, mode, owner, process, by = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) ([RP]%d*) (%S*) (%S*) (.*)$')
    return ends and {ends = tonumber(ends), number = tonumber(number), mode = mode, ttl = tonumber(ttl), since = tonumber(since), owner = owner, process = process, by = by}
  end
  local function order_of(number)
    return '${ORDER_FIELD}' .. number
  end
  local function store(field, member)
    redis.call('HSET', lock, 'owner', '', field, ${textOf('member.')})
    sharers.changed = true
  end
  local function count()
    clear()
    for _, member in pairs(members) do
      count_in(member)
    end
  end
  sharers.all = function()
    if not sharers.is_read then
      sharers.is_read, members = true, {}
      local fields = redis.call('HGETALL', lock)
      for i = 1, #fields, 2 do
        local member = parse(fields[i + 1])
        if member and member.ends > ms then
          members[fields[i]] = member
        elseif member then
          over[fields[i]] = member
          sharers.changed = true
        end
      end
      count()
    end
    return members
  end
  sharers.get = function(field)
    if not sharers.is_read and members[field] == nil then
      members[field] = parse(redis.call('HGET', lock, field)) or false
    end
    return members[field]
  end
  sharers.first = function()
    return sharers.holds > 0 and sharers.get(redis.call('HGET', lock, order_of(sharers.lowest)) or '')
  end
  sharers.has_room = function(mode)
    return sharers.size == 0 or sharers.kind == string.sub(mode, 1, 1) and sharers.size < math.min(sharers.most, most_of(mode))
  end
  sharers.put = function(field, member, ttl)
    local is_new = not sharers.get(field)
    member.ends, member.ttl = math.max(member.ends or 0, ms + ttl), math.max(member.ttl or 0, ttl)
    -- A reserved place has no number.
    member.number = member.number or sharers.number + 1
    member.since = member.since or ms
    store(field, member)
    members[field], sharers.latest = member, math.max(sharers.latest, ms)
    sharers.least = math.min(sharers.least, member.ends)
    sharers.last = math.max(sharers.last, member.ends)
    if is_new then
      count_in(member)
      if member.number > 0 then
        redis.call('HSET', lock, order_of(member.number), field)
      end
    end
  end
  sharers.claim = function(place, mode)
    local field = '${CLAIM_FIELD}' .. place
    sharers.put(field, {number = 0, mode = mode, since = 0, owner = '', process = '', by = ''}, ${CLAIM_MS})
  end
  sharers.drop = function(fields)
    for _, field in ipairs(fields) do
      local member = sharers.get(field)
      redis.call('HDEL', lock, field, order_of(member.number))
      members[field] = nil
      sharers.size = sharers.size - 1
      sharers.holds = sharers.holds - math.min(member.number, 1)
      if member.number == sharers.lowest then
        while sharers.holds > 0 and not redis.call('HGET', lock, order_of(sharers.lowest)) do
          sharers.lowest = sharers.lowest + 1
        end
      end
      sharers.fewest = sharers.fewest - (most_of(member.mode) == sharers.most and 1 or 0)
    end
    sharers.changed = true
    if sharers.size == 0 then
      members = {}
      clear()
    elseif sharers.holds == 0 or sharers.fewest == 0 then
      sharers.all()
      count()
    end
    return 1
  end
  sharers.cut = function()
    if ms < sharers.latest then
      for field, member in pairs(sharers.all()) do
        if member.ends > ms + member.ttl then
          member.ends = ms + member.ttl
          store(field, member)
        end
      end
      sharers.latest = ms
      count()
    end
  end
  sharers.keep = function()
    if sharers.size == 0 then
      redis.call('DEL', lock)
    elseif sharers.changed then
      for field, member in pairs(over) do
        -- One that was over may have come in again.
        redis.call('HDEL', lock, order_of(member.number), members[field] and '' or field)
      end
      local summary = sharers.kind
      for _, name in ipairs({'${SUMMARY.join(`', '`)}'}) do
        summary = summary .. string.format(' %.0f', sharers[name])
      end
      redis.call('HSET', lock, 'summary', summary)
      if redis.pcall('PEXPIRE', lock, sharers.last - ms) ~= 1 then
        -- A user without the right to it must not leave a lock without an expiry.
        redis.call('DEL', lock)
        redis.call('PEXPIRE', lock, 1)
      end
    end
  end
  local held = redis.call('HMGET', lock, 'fence', 'summary')
  sharers.fence, sharers.number, sharers.latest = held[1], 0, 0
  clear()
  if held[2] then
    local words = {}
    for word in string.gmatch(held[2], '%S+') do
      table.insert(words, tonumber(word) or word)
    end
    sharers.kind, ${SUMMARY.map((name) => `sharers.${name}`).join(', ')} = unpack(words)
  end
  -- Without a summary, there is nobody.
  if held[2] and ms >= sharers.least then
    sharers.all()
  end
  return sharers
end
`;

/** Stores the first hold of a key: its facts are locals. */
export const STORE_FIRST = `
local ends, number, since = ms + ttl, 1, ms
local summary = string.format('%s 1 1 1 1 %d 1 %.0f %.0f %.0f', string.sub(mode, 1, 1), tonumber(string.sub(mode, 2)) or ${MOST_HOLDS}, ends, ends, ms)
redis.call('HSET', lock, 'owner', '', 'fence', given, hold, ${textOf('')}, '${ORDER_FIELD}1', hold, 'summary', summary)
if redis.pcall('PEXPIRE', lock, ttl) ~= 1 then
  -- A user without the right to it must not leave a lock without an expiry.
  redis.call('DEL', lock)
  redis.call('PEXPIRE', lock, ttl)
end
`;

/** Renews a hold that shares its key: sets `reply`. */
export const RENEW_SHARED_HOLD = `${SHARERS}
local held = redis.pcall('HMGET', lock, 'owner', 'fence')
if held.err and not string.find(held.err, '^WRONGTYPE') then
  return held
end
reply = 0
if held[1] == '' and held[2] == fence then
  local sharers = sharers_of(lock)
  local mine = sharers.get(hold)
  if mine and mine.owner == owner then
    reply = 1
    -- HDEL first: a full server accepts it, and what follows it. A hold that it refused would fail the others' renewals.
    redis.call('HDEL', lock, '')
    mine.by = by ~= '' and by or mine.by
    mine.ends = lingers == 1 and 0 or mine.ends
    -- Also where the lease is long enough: WAIT answers for what its connection has written.
    sharers.put(hold, mine, ttl)
    sharers.keep()
  end
end
`;

/** Replies with what `INSPECT` finds of a key that several share. */
export const INSPECT_SHARED = `
local sharers = sharers_of(lock)
if sharers.holds == 0 then
  return nil
end
local last, most, processes, known = 0, ${MOST_HOLDS}, {}, {}
for _, member in pairs(sharers.all()) do
  if member.number > 0 then
    last = math.max(last, member.ends)
    most = math.min(most, tonumber(string.sub(member.mode, 2)) or most)
    if not known[member.process] then
      known[member.process] = true
      table.insert(processes, member.process)
    end
  end
end
local places = redis.call('ZRANGE', queue, 0, -1)
local shares = sharers.kind == 'R' and 'read' or most
local first = sharers.first()
return {sharers.fence, sharers.holds, last - sharers.ms, first.since, first.by, places, processes, shares}
`;
