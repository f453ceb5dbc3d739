import { CLAIM_MS, MOST_HOLDS } from '../../kit/protocol.js';

/**
 * Lua about keys that several share. Scripts of write mode define it where somebody shares the key, or wants to: it
 * costs nothing where nobody does.
 */

/** The prefix of the names of fields that stand for a hold which shares its key. */
export const SHARED_FIELD = 'in:';
/** The prefix of the names of fields that stand for room which is reserved for a place. */
export const CLAIM_FIELD = 'claim:';

/**
 * The text of a member, whose facts are locals of that prefix: those that may be read by others come last. By
 * concatenation: `%s` would end at a NUL.
 */
function textOf(prefix: string): string {
  const numbers = ['ends', 'number', 'ttl', 'since'].map((name) => prefix + name).join(', ');
  const texts = ['mode', 'owner', 'process', 'by'].map((name) => prefix + name).join(` .. ' ' .. `);
  return `string.format('%.0f %.0f %.0f %.0f ', ${numbers}) .. ${texts}`;
}

/**
 * `sharers_of(lock)`: those who share a key, as stored, but for what is over by the server's time. Its members, by
 * field, are holds and reserved places; `holds` counts the former, and `size` both. `most` is how many may be in it, by
 * the smallest count, and `kind` is R or P. `first` is the hold that came first; `least` and `last` are the ends of the
 * first and the last member.
 *
 * | function | what it does |
 * |---|---|
 * | `has_room(mode)` | whether one more has room |
 * | `put(field, member, ttl)` | stores a member, whose lease ends `ttl` ms from now |
 * | `claim(place, mode)` | reserves room for a place |
 * | `drop(fields)` | takes members out |
 * | `cut()` | cuts leases to the longest ttl that was asked for: after the clock was set back |
 * | `keep()` | removes what is over, and sets the expiry of the key; deletes a key that nobody shares any more |
 */
export const SHARERS = `
local function sharers_of(lock)
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local sharers = {ms = ms, members = {}, over = {}}
  local function count_in(member)
    local kind, most = string.match(member.mode, '(.)(.*)')
    sharers.kind = kind
    sharers.most = math.min(sharers.most, tonumber(most) or ${MOST_HOLDS})
    sharers.size = sharers.size + 1
    sharers.least = math.min(sharers.least, member.ends)
    sharers.last = math.max(sharers.last, member.ends)
    if member.number > 0 then
      sharers.holds = sharers.holds + 1
      sharers.number = math.max(sharers.number, member.number)
      if not sharers.first or member.number < sharers.first.number then
        sharers.first = member
      end
    end
  end
  local function count()
    sharers.size, sharers.holds, sharers.number, sharers.most = 0, 0, 0, ${MOST_HOLDS}
    sharers.least, sharers.last, sharers.first, sharers.kind = math.huge, 0, nil, nil
    for _, member in pairs(sharers.members) do
      count_in(member)
    end
  end
  local function store(field, member)
    redis.call('HSET', lock, 'owner', '', field, ${textOf('member.')})
    sharers.changed = true
  end
  sharers.has_room = function(mode)
    local kind, most = string.match(mode, '(.)(.*)')
    return sharers.size == 0 or sharers.kind == kind and sharers.size < math.min(sharers.most, tonumber(most) or ${MOST_HOLDS})
  end
  sharers.put = function(field, member, ttl)
    member.ends, member.ttl = math.max(member.ends or 0, ms + ttl), math.max(member.ttl or 0, ttl)
    -- Holds are numbered in the order in which they come; a reserved place has none.
    member.number = member.number or sharers.number + 1
    member.since = member.since or ms
    store(field, member)
    local was = sharers.members[field]
    sharers.members[field] = member
    if was then
      count()
    else
      count_in(member)
    end
  end
  sharers.claim = function(place, mode)
    local field = '${CLAIM_FIELD}' .. place
    sharers.put(field, {number = 0, mode = mode, since = 0, owner = '', process = '', by = ''}, ${CLAIM_MS})
  end
  sharers.drop = function(fields)
    for _, field in ipairs(fields) do
      sharers.members[field] = nil
    end
    redis.call('HDEL', lock, unpack(fields))
    sharers.changed = true
    count()
    return 1
  end
  sharers.cut = function()
    for field, member in pairs(sharers.members) do
      if member.ends > ms + member.ttl then
        member.ends = ms + member.ttl
        store(field, member)
      end
    end
    count()
  end
  sharers.keep = function()
    if sharers.size == 0 then
      redis.call('DEL', lock)
    elseif sharers.changed or #sharers.over > 0 then
      if #sharers.over > 0 then
        redis.call('HDEL', lock, unpack(sharers.over))
      end
      if redis.pcall('PEXPIRE', lock, sharers.last - ms) ~= 1 then
        -- A user without the right to it must not leave a lock without an expiry.
        redis.call('DEL', lock)
        redis.call('PEXPIRE', lock, 1)
      end
    end
  end
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local ends, number, ttl, since, mode, owner, process, by = string.match(fields[i + 1], '^(%d+) (%d+) (%d+) (%d+) ([RP]%d*) (%S*) (%S*) (.*)$')
    if fields[i] == 'fence' then
      sharers.fence = fields[i + 1]
    elseif ends and tonumber(ends) > ms then
      sharers.members[fields[i]] = {ends = tonumber(ends), number = tonumber(number), mode = mode, ttl = tonumber(ttl), since = tonumber(since), owner = owner, process = process, by = by}
    elseif ends then
      table.insert(sharers.over, fields[i])
    end
  end
  count()
  return sharers
end
`;

/** Stores the first hold of a key: its facts are locals. */
export const STORE_FIRST = `
local ends, number, since = ms + ttl, 1, ms
redis.call('HSET', lock, 'owner', '', 'fence', given, hold, ${textOf('')})
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
  local mine = sharers.members[hold]
  if mine and mine.owner == owner then
    reply = 1
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
for _, member in pairs(sharers.members) do
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
return {sharers.fence, sharers.holds, last - sharers.ms, sharers.first.since, sharers.first.by, places, processes, shares}
`;
