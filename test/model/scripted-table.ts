import type { Redis } from 'ioredis';
import type { HoldRecord } from '../../lib/core/lock-store.js';
import type { QueuedPlace } from '../../lib/stores/kit/key-state.js';
import type { JoinReply, TableReply } from '../../lib/stores/kit/lock-table.js';
import { DONE_MS } from '../../lib/stores/kit/protocol.js';
import { RedisKeys } from '../../lib/stores/redis/redis-keys.js';
import { isLate } from '../../lib/stores/redis/replies.js';
import type { Script } from '../../lib/stores/redis/script.js';
import { ACQUIRE, FORCE_RELEASE, JOIN, LEAVE, PASS, RELEASE, RENEW } from '../../lib/stores/redis/scripts.js';
import type { OtherSide, Stored } from './steps.js';

const KEYS = new RedisKeys('lock', false);
const WAKE = KEYS.wake('');
/** Time passes, or the clock is set back: a negative expiry deletes a key. */
const ELAPSE = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then
    redis.call('PEXPIRE', key, left - ARGV[1])
  end
end
`;

/** The scripts of the Redis store with the operations of a lock table. */
export class ScriptedTable implements OtherSide {
  readonly #client: Redis;
  readonly #edit: (source: string) => string;
  #requests = 0;

  /** `edit` puts a defect into the scripts. */
  constructor(client: Redis, edit: (source: string) => string) {
    this.#client = client;
    this.#edit = edit;
  }

  async acquire(hold: HoldRecord, process: string, place: QueuedPlace | undefined, latest: number): Promise<TableReply> {
    return readReply(await this.#run(ACQUIRE, keysOf(hold), [...argsOf(hold, process, place), latest]));
  }

  async pass(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
    latest: number,
  ): Promise<{ released: boolean; reply: TableReply }> {
    const args = [...argsOf(next, process, place), latest, hold.id, DONE_MS, mayOvertake ? 1 : 0];
    const [released, reply] = (await this.#run(PASS, [...keysOf(next), KEYS.done(hold.key, hold.id)], args)) as unknown[];
    return { released: released === 1, reply: readReply(reply) };
  }

  async join(hold: HoldRecord, process: string, latest: number): Promise<JoinReply> {
    const reply = await this.#run(JOIN, keysOf(hold).slice(0, 2), [hold.owner, hold.fence, hold.id, process, hold.ttlMs, latest]);
    if (isLate(reply)) {
      return 'late';
    }
    return reply === 1 ? 'joined' : reply === -1 ? 'full' : 'ended';
  }

  async renew(hold: HoldRecord): Promise<boolean> {
    return (
      Number(await this.#run(RENEW, keysOf(hold).slice(0, 1), [hold.owner, hold.fence, hold.id, hold.ttlMs, hold.lingering ? 1 : 0])) === 1
    );
  }

  async release(hold: HoldRecord): Promise<boolean> {
    return (await this.#run(RELEASE, keysOf(hold).slice(0, 3), [hold.id, DONE_MS, WAKE, hold.key])) === 1;
  }

  async leave(key: string, name: string, process: string): Promise<void> {
    await this.#run(LEAVE, [KEYS.lock(key), KEYS.queue(key)], [`${process}:${name}`, WAKE, key]);
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const keys = [KEYS.lock(key), KEYS.done(key, `request ${this.#requests++}`), KEYS.queue(key)];
    return (await this.#run(FORCE_RELEASE, keys, [fence, DONE_MS, WAKE, key])) === 1;
  }

  async elapse(ms: number): Promise<void> {
    await this.#client.eval(ELAPSE, 0, ms);
  }

  async stored(key: string): Promise<Stored> {
    const [lock, queue, left] = await Promise.all([
      this.#client.hgetall(KEYS.lock(key)),
      this.#client.zrange(KEYS.queue(key), '0', '-1', 'WITHSCORES'),
      this.#client.pttl(KEYS.lock(key)),
    ]);
    const { owner = '', fence, ttl, turn = '', ...others } = lock;
    return {
      owner,
      fence: Number(fence ?? 0),
      ttlMs: Number(ttl ?? 0),
      holds: Object.keys(others)
        .flatMap((field) => field.split('hold:').slice(1))
        .toSorted(),
      turn,
      queue: queue.flatMap((place, i) => (i % 2 === 0 ? [place + (queue[i + 1]?.endsWith('.5') ? ' polls' : '')] : [])),
      leftMs: Math.max(0, left),
    };
  }

  #run({ source }: Script, keys: string[], args: (string | number)[]): Promise<unknown> {
    return this.#client.eval(this.#edit(source), keys.length, ...keys, ...args);
  }
}

function keysOf({ key, id }: HoldRecord): string[] {
  return [KEYS.lock(key), KEYS.done(key, id), KEYS.queue(key), KEYS.fence(key)];
}

function argsOf({ key, owner, id, ttlMs, by }: HoldRecord, process: string, place?: QueuedPlace): (string | number)[] {
  return [owner, id, process, ttlMs, by, place ? `${process}:${place.name}` : '', place?.polls ? 0.5 : 0, WAKE, key];
}

function readReply(reply: unknown): TableReply {
  if (!Array.isArray(reply)) {
    return { fence: Number.parseInt(String(reply), 10) };
  }
  if (isLate(reply)) {
    return { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false, late: true };
  }
  const [left, by, heldMs, rank, joined, turn] = reply as unknown[];
  const holder = { by: String(by) || String(turn).replace(/:[^:]*$/, ''), heldMs: Number(heldMs) };
  return { remainingMs: Number(left), holder, rank: Number(rank), joined: joined === 1 };
}
