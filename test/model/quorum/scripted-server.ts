import type { Redis } from 'ioredis';
import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import { RedisKeys } from '../../../lib/redis/scripts/redis-keys.js';
import type { Command } from '../../../lib/redis/scripts/script.js';
import { FORCE_RELEASE } from '../../../lib/redis/scripts/scripts.js';
import { QuorumCommands } from '../../../lib/quorum/votes/quorum-commands.js';
import { newHold } from '../../support/new-hold.js';
import type { ServerClock } from '../../support/server-clock.js';
import type { Report } from './server-record.js';
import type { Stored } from './stored.js';
import type { HoldRequest, VoteReply, VoteRequest } from './voting-server.js';

export const KEY = 'a key:{1}';
const KEYS = new RedisKeys('lock', false);
const COMMANDS = new QuorumCommands(KEYS, '');
const TAG = KEYS.tag(KEY);
const [LOCK, QUEUE, COUNTER, WAITERS, RECORD] = [KEYS.lock(TAG), KEYS.queue(TAG), KEYS.fence(TAG), `lock:waiters:${TAG}`, 'lock:run:{0}'];

/** All that is stored: of each key its name, its time left, and its content. */
const DUMP = `
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local isHash = redis.call('TYPE', key).ok == 'hash'
  table.insert(found, {key, redis.call('PTTL', key), isHash and redis.call('HGETALL', key) or redis.call('GET', key)})
end
return found
`;
type Dumped = readonly [key: string, leftMs: number, content: string | readonly string[]];

/** The scripts of a quorum on a real server, with the operations of its specification. */
export class ScriptedServer {
  readonly #client: Redis;
  readonly #clock: ServerClock;
  readonly #edit: (source: string) => string;

  /** `edit` puts a defect into the scripts. */
  constructor(client: Redis, clock: ServerClock, edit: (source: string) => string) {
    this.#client = client;
    this.#clock = clock;
    this.#edit = edit;
  }

  /**
   * Sets the clock. Keys that have run out by then are gone for good: Redis itself would show them again where the
   * clock is set back before they are deleted.
   */
  async setClock(us: number): Promise<void> {
    this.#clock.stopAt(us);
    await this.#client.scan('0', 'COUNT', 1_000);
  }

  async setCounter(counter: number | undefined): Promise<void> {
    await (counter === undefined ? this.#client.del(COUNTER) : this.#client.set(COUNTER, counter));
  }

  async forget(): Promise<void> {
    await this.#client.flushall();
  }

  async vote({ owner, hold, fences, attempt, process, ttlMs, by, proposed, waitedMs, ageMs, latest }: VoteRequest): Promise<VoteReply> {
    const asks = { key: KEY, owner, id: hold, fences, ttlMs, by };
    const command = new QuorumCommands(KEYS, process).vote({ hold: asks, attempt, fence: proposed, waitedMs, ageMs }, latest);
    const reply = await this.#run(command).catch((error: Error) => /FENCE (\S+)/.exec(error.message)?.[1] ?? Promise.reject(error));
    if (Array.isArray(reply)) {
      const [remainingMs, heldBy, heldMs, rank, serverMs] = reply as [number, string, number, number, number];
      return reply.length === 1 ? { lateAt: remainingMs } : { remainingMs, by: heldBy, heldMs, rank, serverMs };
    }
    const [fence, serverMs] = String(reply).split(' ');
    return serverMs === undefined ? { tooHigh: String(reply) } : { fence: Number(fence), serverMs: Number(serverMs) };
  }

  async settle(owner: string, vote: string, fence: number, fences: number): Promise<number> {
    return (await this.#run(COMMANDS.settle({ key: KEY, owner, fences }, vote, fence))) as number;
  }

  async join(request: HoldRequest, process: string, latest: number): Promise<number | { lateAt: number }> {
    const reply = await this.#run(new QuorumCommands(KEYS, process).join(recordOf(request), latest));
    return Array.isArray(reply) ? { lateAt: reply[0] as number } : (reply as number);
  }

  async renew(request: HoldRequest, lingering: boolean): Promise<number> {
    return ((await this.#run(COMMANDS.renew([{ ...recordOf(request), lingering }]))) as [number])[0];
  }

  async release(vote: string, done: string, unanswered: boolean): Promise<number> {
    return (await this.#run(COMMANDS.release(newHold(KEY, { id: vote, unanswered }), done))) as number;
  }

  async forceRelease(request: string, fence: number, doneMs: number): Promise<number> {
    const keys = { lock: LOCK, done: KEYS.done(TAG, request), queue: QUEUE };
    return (await this.#run(FORCE_RELEASE.command(KEY, { ...keys, fence, channel: KEYS.wake(''), key: KEY, stays: doneMs }))) as number;
  }

  async inspect(): Promise<readonly unknown[]> {
    const [fence, holds, leftMs, since, by] = ((await this.#run(COMMANDS.inspect(KEY))) ?? []) as unknown[];
    return fence === undefined ? [] : [Number(fence), holds, leftMs, Number(since), by];
  }

  async report({ run, restarted, counts, least, said }: Report): Promise<unknown> {
    const command = COMMANDS.report({ run, restarted, counts, least, said: said.flat() });
    const [knownMs, voting, firstUseMs, isRestarted, fence, serverMs, ...names] = (await this.#run(command)) as unknown[];
    return {
      knownMs,
      counts: voting === 1,
      firstUseMs,
      restarted: isRestarted === 1,
      fence: Number(fence),
      serverMs,
      reported: (names as string[]).toSorted(),
    };
  }

  async stored(): Promise<Stored> {
    const dumped = (await this.#client.eval(DUMP, 0)) as Dumped[];
    const take = (key: string): Dumped | undefined => dumped.splice(...at(dumped, key))[0];
    const [lock, counter, waiters, record] = [take(LOCK), take(COUNTER), take(WAITERS), take(RECORD)];
    return {
      lock: lock && readLock(lock),
      counter: counter && Number(counter[2]),
      waiters: waiters && readWaiters(waiters),
      // Any other key has to be a done mark.
      done: Object.fromEntries(
        dumped.map(([key, leftMs, answer]) => {
          const name = /^lock:done:(.*?):/.exec(key)?.[1];
          return [name && key === KEYS.done(TAG, name) ? name : key, { answer: Number(answer), leftMs }];
        }),
      ),
      record: Object.fromEntries(fieldsOf(record).map(([name, value]) => [name, name === 'run' ? value : Number(value)])),
    };
  }

  #run({ script, parameters }: Command): Promise<unknown> {
    const [keys, ...rest] = parameters;
    return this.#client.eval(this.#edit(script.source), keys, ...rest);
  }
}

function recordOf({ owner, fence, hold, ttlMs }: HoldRequest): HoldRecord {
  return { key: KEY, owner, id: hold, fence, fences: 1, ttlMs, limitMs: 1_000, lingering: false, unanswered: true, by: '' };
}

/** Where a key is in a dump, for `splice`. */
function at(dumped: readonly Dumped[], key: string): [number, number] {
  const index = dumped.findIndex(([name]) => name === key);
  return index < 0 ? [0, 0] : [index, 1];
}

function fieldsOf(dumped: Dumped | undefined): [string, string][] {
  const flat = (dumped?.[2] ?? []) as readonly string[];
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] as string] as [string, string]] : []));
}

function readLock(dumped: Dumped): Stored['lock'] {
  const fields = fieldsOf(dumped);
  const { owner = '', fence, ttl, since, by = '' } = Object.fromEntries(fields);
  return {
    owner,
    fence: Number(fence),
    ttlMs: Number(ttl),
    since: Number(since),
    by,
    holds: fields.flatMap(([name, process]) => (name.startsWith('hold:') ? [[name.slice(5), process] as const] : [])),
    leftMs: dumped[1],
  };
}

function readWaiters(dumped: Dumped): Stored['waiters'] {
  const { last, ...waiting } = Object.fromEntries(fieldsOf(dumped).map(([name, value]) => [name, value.split(' ')]));
  return {
    waiting: Object.fromEntries(
      Object.entries(waiting).map(([process, [since, refusedAt]]) => [process, { since: Number(since), refusedAt: Number(refusedAt) }]),
    ),
    last: last && [last[1] as string, Number(last[0])],
    leftMs: dumped[1],
  };
}
