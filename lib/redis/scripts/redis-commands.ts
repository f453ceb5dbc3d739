import { randomUUID } from 'node:crypto';
import type { HoldRecord, Place } from '../../core/seam/lock-store.js';
import { DONE_MS } from '../../kit/protocol.js';
import { placeEnd, type KeyKind } from '../../core/seam/shares.js';
import { HOLD_FIELD } from './lua.js';
import type { RedisKeys } from './redis-keys.js';
import type { Command } from './script.js';
import { ACQUIRE, EXCHANGE, FORCE_RELEASE, INSPECT, JOIN, LEAVE, RELEASE, RENEW, RENEW_ANY } from './scripts.js';
import { SHARED_FIELD } from './shared-lua.js';
import { ACQUIRE_SHARED, JOIN_SHARED, RELEASE_SHARED } from './shared-scripts.js';

/**
 * The commands of locks in Redis, each put together here only: the Redis store and the quorum share them. `latest` is
 * the latest server time, in ms, at which a command may be carried out; 0 where the server's time is unknown. `polls`
 * says that the process cannot be notified.
 */
export class RedisCommands {
  readonly names: RedisKeys;
  readonly process: string;
  /** The prefix of the channels, to which the name of a process is appended. */
  readonly #channel: string;

  /** The commands of one process. */
  constructor(names: RedisKeys, process: string) {
    this.names = names;
    this.process = process;
    this.#channel = names.wake('');
  }

  acquire(hold: HoldRecord, place: Place | undefined, polls: boolean, latest: number): Command {
    const attempt = this.#attemptOf(hold, place, polls, latest);
    return hold.shares === undefined
      ? ACQUIRE.command(hold.key, attempt)
      : ACQUIRE_SHARED.command(hold.key, { ...attempt, hold: sharedFieldOf(hold.id), mode: placeEnd(hold.shares) });
  }

  /** Releases `hold`, and acquires for `next`. */
  exchange(hold: HoldRecord, next: HoldRecord, place: Place, polls: boolean, mayOvertake: boolean, latest: number): Command {
    const { key, id, unanswered } = hold;
    return EXCHANGE.command(key, {
      ...this.#attemptOf(next, place, polls, latest),
      releasedDone: this.names.done(this.names.tag(key), id),
      released: fieldOf(id),
      stays: unanswered ? DONE_MS : 0,
      overtakes: mayOvertake ? 1 : 0,
    });
  }

  join({ key, owner, fence, id, ttlMs, by, shares }: HoldRecord, latest: number): Command {
    const tag = this.names.tag(key);
    const join = {
      lock: this.names.lock(tag),
      done: this.names.done(tag, id),
      owner,
      fence,
      hold: fieldOf(id),
      process: this.process,
      ttl: Math.ceil(ttlMs),
      latest,
    };
    return shares === undefined
      ? JOIN.command(key, join)
      : JOIN_SHARED.command(key, { ...join, hold: sharedFieldOf(id), by, mode: placeEnd(shares) });
  }

  renew(holds: readonly Omit<HoldRecord, 'fences' | 'limitMs' | 'unanswered'>[]): Command {
    const renewals = holds.map(({ key, owner, fence, id, by, ttlMs, lingering }) => ({
      lock: this.names.lock(this.names.tag(key)),
      owner,
      fence,
      hold: fieldOf(id),
      by,
      ttl: Math.ceil(ttlMs),
      lingers: lingering ? 1 : 0,
    }));
    const key = holds[0]?.key ?? '';
    if (holds.every(({ shares }) => shares === undefined)) {
      return RENEW.command(key, renewals);
    }
    const any = holds.map(({ id, shares }, at) => {
      const hold = shares === undefined ? fieldOf(id) : sharedFieldOf(id);
      return Object.assign({ mode: placeEnd(shares) }, renewals[at] as (typeof renewals)[0], { hold });
    });
    return RENEW_ANY.command(key, any);
  }

  /** The done mark belongs to the hold, or to another hold that is named. */
  release({ key, id, owner, shares, unanswered }: HoldRecord, done = id): Command {
    const end = this.#endOf(key, done, unanswered);
    return shares === undefined
      ? RELEASE.command(key, { ...end, hold: fieldOf(id) })
      : RELEASE_SHARED.command(key, { ...end, owner, hold: sharedFieldOf(id) });
  }

  leave(key: string, name: string): Command {
    const tag = this.names.tag(key);
    return LEAVE.command(key, {
      lock: this.names.lock(tag),
      queue: this.names.queue(tag),
      place: this.#placeOf(name),
      channel: this.#channel,
      key,
    });
  }

  inspect(key: string): Command {
    const tag = this.names.tag(key);
    return INSPECT.command(key, { lock: this.names.lock(tag), queue: this.names.queue(tag) });
  }

  /** Each request has a done mark of its own. */
  forceRelease(key: string, fence: number): Command {
    return FORCE_RELEASE.command(key, { ...this.#endOf(key, randomUUID(), true), fence });
  }

  #attemptOf({ key, owner, id, fences, ttlMs, by }: HoldRecord, place: Place | undefined, polls: boolean, latest: number) {
    const tag = this.names.tag(key);
    return {
      lock: this.names.lock(tag),
      done: this.names.done(tag, id),
      queue: this.names.queue(tag),
      counter: this.names.fence(tag),
      owner,
      hold: fieldOf(id),
      process: this.process,
      by,
      place: place ? this.#placeOf(place.name) : '',
      channel: this.#channel,
      key,
      ttl: Math.ceil(ttlMs),
      polls: polls ? 0.5 : 0,
      latest,
      fences,
    };
  }

  /** The arguments that all releases have: the done mark, where one is `left`, belongs to `done`. */
  #endOf(key: string, done: string, left: boolean) {
    const tag = this.names.tag(key);
    return {
      lock: this.names.lock(tag),
      done: this.names.done(tag, done),
      queue: this.names.queue(tag),
      channel: this.#channel,
      key,
      stays: left ? DONE_MS : 0,
    };
  }

  #placeOf(name: string): string {
    return `${this.process}:${name}`;
  }
}

/** The field that stands for a hold in its lock. */
export function fieldOf(hold: string): string {
  return HOLD_FIELD + hold;
}

/** The field that stands for a hold in a key that it shares. */
function sharedFieldOf(hold: string): string {
  return SHARED_FIELD + hold;
}

/** The kind of a key, in a reply that refuses a hold which needs the other. */
export function otherKindIn(reply: readonly unknown[]): KeyKind | undefined {
  return reply.length === 2 ? (reply[0] as KeyKind) : undefined;
}

/** The server's time, in ms, in the reply to `ACQUIRE` or in one that refuses a late command. */
export function timeIn(reply: unknown): number {
  if (Array.isArray(reply)) {
    return Number(reply.at(-1));
  }
  const text = String(reply);
  const at = text.indexOf(' ');
  return at < 0 ? Number(text) / 1000 : Number(text.slice(at + 1));
}

/** Whether a command came too late to be carried out. */
export function isLate(reply: unknown): boolean {
  return Array.isArray(reply) && reply.length === 1;
}

/** Whether a server carried a command out: reads 1 or 0. */
export function isOne(reply: unknown): boolean {
  return Number(reply) === 1;
}

/** Reads a list of 1 and 0. */
export function readAnswers(reply: unknown): boolean[] {
  return (reply as readonly unknown[]).map(isOne);
}
