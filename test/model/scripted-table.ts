import type { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import type { HoldRecord, StoredLock } from '../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../lib/kit/key-state.js';
import type { JoinReply, TableReply } from '../../lib/kit/lock-table.js';
import { readBusy, readStored } from '../../lib/kit/replies.js';
import { sharesOfPlace } from '../../lib/core/seam/shares.js';
import { RedisCommands } from '../../lib/redis/scripts/redis-commands.js';
import { RedisKeys } from '../../lib/redis/scripts/redis-keys.js';
import { isLate, otherKindIn } from '../../lib/redis/scripts/redis-commands.js';
import type { Command } from '../../lib/redis/scripts/script.js';
import { BATCH } from '../../lib/redis/scripts/scripts.js';
import { newHold } from '../support/new-hold.js';
import type { OtherSide, Stored, StoredShare } from './steps.js';

const NAMES = new RedisKeys('lock', false);
/** Under its name something is that is no lock. */
const BROKEN_KEY = 'broken';
/** A key of Redis that has to be a text, so that the commands about `BROKEN_KEY` fail. */
export const BROKEN = NAMES.lock(NAMES.tag(BROKEN_KEY));
/**
 * Time passes, or the clock is set back: a negative expiry deletes a key. A lease in a key that is shared, which has
 * out, stays until somebody asks, where a clock that is set back gives it some of its time again; elsewhere it is gone.
 */
const ELAPSE = `
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  local fields = redis.call('TYPE', key).ok == 'hash' and redis.call('HGETALL', key) or {}
  local is_over = false
  for i = 1, #fields, 2 do
    local ends, rest, number = string.match(fields[i + 1], '^(%d+)( (%d+) %d+ %d+ .*)$')
    if ends and tonumber(ends) <= ms then
      is_over = true
      redis.call('HDEL', key, fields[i], 'order:' .. number)
    elseif ends then
      redis.call('HSET', key, fields[i], string.format('%.0f', ends - ARGV[1]) .. rest)
    end
  end
  local counts, least, last, latest = string.match(redis.call('TYPE', key).ok == 'hash' and redis.call('HGET', key, 'summary') or '', '^(%u .*) (%d+) (%d+) (%d+)$')
  if counts then
    least = is_over and 0 or least - ARGV[1]
    redis.call('HSET', key, 'summary', counts .. string.format(' %.0f %.0f %.0f', least, last - ARGV[1], latest - ARGV[1]))
  end
  if left >= 0 then
    redis.call('PEXPIRE', key, left - ARGV[1])
  end
end
`;

/** The scripts of the Redis store with the operations of a lock table. */
export class ScriptedTable implements OtherSide {
  readonly #client: Redis;
  readonly #edit: (source: string) => string;

  /** `edit` puts a defect into the scripts. */
  constructor(client: Redis, edit: (source: string) => string) {
    this.#client = client;
    this.#edit = edit;
  }

  async acquire(hold: HoldRecord, process: string, place: QueuedPlace | undefined, latest: number): Promise<TableReply> {
    return readReply(await this.run(commandsOf(process).acquire(hold, place, place?.polls === true, latest)));
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
    latest: number,
  ): Promise<{ released: boolean; reply: TableReply }> {
    const command = commandsOf(process).exchange(hold, next, place, place.polls, mayOvertake, latest);
    const [released, reply] = (await this.run(command)) as unknown[];
    return { released: released === 1, reply: readReply(reply) };
  }

  async join(hold: HoldRecord, process: string, latest: number): Promise<JoinReply> {
    const reply = await this.run(commandsOf(process).join(hold, latest));
    if (isLate(reply)) {
      return 'late';
    }
    return reply === 1 ? 'joined' : reply === -1 ? 'full' : 'ended';
  }

  async renew(hold: HoldRecord): Promise<boolean> {
    const [renewed] = (await this.run(commandsOf('').renew([hold]))) as unknown[];
    return renewed === 1;
  }

  async release(hold: HoldRecord): Promise<boolean> {
    return (await this.run(commandsOf('').release(hold))) === 1;
  }

  async leave(key: string, name: string, process: string): Promise<void> {
    await this.run(commandsOf(process).leave(key, name));
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return (await this.run(commandsOf('').forceRelease(key, fence))) === 1;
  }

  async elapse(ms: number): Promise<void> {
    await this.#client.eval(ELAPSE, 0, ms);
  }

  async stored(key: string): Promise<Stored> {
    const tag = NAMES.tag(key);
    const [lock, queue, left, [seconds, us]] = await Promise.all([
      this.#client.hgetall(NAMES.lock(tag)),
      this.#client.zrange(NAMES.queue(tag), '0', '-1', 'WITHSCORES'),
      this.#client.pttl(NAMES.lock(tag)),
      this.#client.time(),
    ]);
    const { owner = '', fence, ttl, turn = '', ...others } = lock;
    // A key that was shared may stay for a while after the last lease.
    const isShared = lock['owner'] === '';
    const shared = isShared ? sharesIn(others, Number(seconds) * 1_000 + Number(us) / 1_000) : [];
    const sharing = shared.flatMap((share) => (share.owner === '' ? [] : [share.name]));
    return {
      owner,
      fence: owner === '' && sharing.length === 0 ? 0 : Number(fence ?? 0),
      ttlMs: Number(ttl ?? 0),
      holds: Object.keys(others)
        .flatMap((field) => field.split('hold:').slice(1))
        .concat(sharing)
        .toSorted(),
      turn,
      queue: queue.flatMap((place, i) => (i % 2 === 0 ? [place + (queue[i + 1]?.endsWith('.5') ? ' polls' : '')] : [])),
      leftMs: isShared ? 0 : Math.max(0, left),
      shared: shared.length > 0 ? shared : undefined,
    };
  }

  async inspect(key: string): Promise<StoredLock | null> {
    return readStored(await this.run(commandsOf('').inspect(key)));
  }

  protected run({ script, parameters }: Command): Promise<unknown> {
    const [keys, ...rest] = parameters;
    return this.#client.eval(this.#edit(script.source), keys, ...rest);
  }
}

/**
 * A scripted table where each command is one of a batch: other commands are before and after it, and one of them fails.
 */
export class BatchedTable extends ScriptedTable {
  protected override async run(command: Command): Promise<unknown> {
    if (!BATCH.takes(command)) {
      return super.run(command);
    }
    const commands = commandsOf('others');
    const others = [
      commands.release(newHold('never held')),
      commands.acquire(newHold(BROKEN_KEY), undefined, false, 0),
      commands.acquire(newHold(randomUUID(), { ttlMs: 1 }), { name: 'place' }, true, 0),
    ] as const;
    const [released, failed, reply, granted, ...none] = (await super.run(
      BATCH.command([others[0], others[1], command, others[2]]),
    )) as readonly unknown[];
    if (released !== 0 || !(failed instanceof Error) || typeof granted !== 'string' || none.length > 0) {
      throw new Error(`The others of the batch were answered ${String(released)}, ${String(failed)}, ${String(granted)}.`);
    }
    return reply;
  }
}

/** Those that share a key, and whose time is not over; with the time of the longest, by which the key expires. */
function sharesIn(fields: Readonly<Record<string, string>>, now: number): StoredShare[] {
  const shares = Object.entries(fields).flatMap(([field, text]) => {
    const [, ends, number, ttl, , mode, owner = '', , by = ''] = /^(\d+) (\d+) (\d+) (\d+) (R|P\d+) (\S*) (\S*) (.*)$/.exec(text) ?? [];
    const leftMs = Number(ends) - now;
    const name = field.slice(field.indexOf(':') + 1);
    return ends === undefined || leftMs <= 0
      ? []
      : [{ name, shares: sharesOfPlace(mode ?? '') ?? 0, owner, by, ttlMs: number === '0' ? 0 : Number(ttl), leftMs }];
  });
  return shares.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function commandsOf(process: string): RedisCommands {
  return new RedisCommands(NAMES, process);
}

function readReply(reply: unknown): TableReply {
  if (!Array.isArray(reply)) {
    return { fence: Number.parseInt(String(reply), 10) };
  }
  if (isLate(reply)) {
    return { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false, late: true };
  }
  const otherKind = otherKindIn(reply);
  if (otherKind) {
    return { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false, otherKind };
  }
  const [, by, heldMs, , , turn] = reply as unknown[];
  const holder = { by: String(by) || String(turn).replace(/:[^:]*$/, ''), heldMs: Number(heldMs) };
  return { ...readBusy(reply), holder };
}
