import { MOST_FENCES } from '../../lib/core/seam/lock-store.js';
import type { Shares } from '../../lib/core/seam/lock-store.js';
import type { HoldRecord, StoredLock } from '../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../lib/kit/key-state.js';
import type { JoinReply, LockTable, TableReply } from '../../lib/kit/lock-table.js';
import { sharesOfPlace } from '../../lib/core/seam/shares.js';
import type { Random } from '../support/random.js';

/** The stored data of a hold that shares its key, or of room that is reserved for a place. */
export interface StoredShare {
  /** The hold, or the process and the name of the place. */
  readonly name: string;
  readonly shares: Shares;
  /** Empty for a place. */
  readonly owner: string;
  readonly by: string;
  readonly ttlMs: number;
  readonly leftMs: number;
}

/** The stored data of a key. `owner`, `ttlMs` and `leftMs` are those of write mode, or of the key's reservation. */
export interface Stored {
  readonly owner: string;
  readonly fence: number;
  readonly ttlMs: number;
  readonly holds: readonly string[];
  /** The place that it is reserved for. */
  readonly turn: string;
  readonly queue: readonly string[];
  readonly leftMs: number;
  /** By name. Undefined where nobody shares the key, or has room reserved. */
  readonly shared?: readonly StoredShare[] | undefined;
}

/** The operations of a lock table, done by a server. */
export interface OtherSide {
  /** `latest`: the latest time at which it may grant, in ms since 1970, or 0. */
  acquire(hold: HoldRecord, process: string, place: QueuedPlace | undefined, latest: number): Promise<TableReply>;
  exchange(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
    latest: number,
  ): Promise<{ released: boolean; reply: TableReply }>;
  join(hold: HoldRecord, process: string, latest: number): Promise<JoinReply>;
  renew(hold: HoldRecord): Promise<boolean>;
  release(hold: HoldRecord): Promise<boolean>;
  leave(key: string, name: string, process: string): Promise<void>;
  forceRelease(key: string, fence: number): Promise<boolean>;
  /** Time passes, or the clock is set back. */
  elapse(ms: number): Promise<void>;
  stored(key: string): Promise<Stored>;
  /** Compared where the server has it; but for `since` and `waiters`. */
  inspect?(key: string): Promise<StoredLock | null>;
}

export const KEY = 'a key:{1}';
/** All times are multiples of it, so that it makes no difference how long Redis takes. */
export const GRAIN_MS = 500;
/** The process that receives its messages. */
export const HEARING = 'host:1:ada';
const GONE = 'host:2:bob';
/** Does not receive them either; it polls, mostly. */
const POLLING = 'host:3:cyd';
/** How the callers of a sequence want the key, by the ends of the names of their places: all may occur in it. */
export type Wishes = readonly string[];
/** The wishes of one sequence each, for a server whose keys can be shared. */
export const SHARING: readonly Wishes[] = [[''], ['', 'R', 'R'], ['P1', 'P2', 'P3', 'P3'], ['', 'R', 'P2', 'P3']];
const KINDS = ['acquire', 'release', 'exchange', 'join', 'renew', 'leave', 'forceRelease', 'elapse'] as const;

/** One operation on either side; `hold` and `next` are ids, and `grant` counts the grants of a sequence from 1. */
export interface Step {
  readonly kind: (typeof KINDS)[number];
  readonly hold: string;
  readonly next: string;
  readonly grant: number;
  readonly place: QueuedPlace;
  readonly queues: boolean;
  readonly mayOvertake: boolean;
  readonly ms: number;
  /** 0, or a moment that is long over: the command comes late. */
  readonly latest: number;
  readonly lingering: boolean;
  /** Whether a release leaves a done mark. */
  readonly unanswered: boolean;
}

/**
 * A step that mostly concerns stored holds and places. The steps before the first one make a crowd that queues and is
 * gone.
 */
export function nextStep(
  random: Random,
  count: number,
  { holds, turn, queue, shared = [] }: Stored,
  grant: number,
  wishes: Wishes = [''],
): Step {
  const wish = wishes.length > 1 ? random.pick(wishes) : '';
  if (count < 0) {
    const place = { name: `bob${count}${wish}`, process: GONE, polls: false };
    return {
      kind: 'acquire',
      hold: `${GONE}${count}${wish}`,
      next: '',
      grant,
      place,
      queues: true,
      mayOvertake: false,
      ms: 0,
      latest: 0,
      lingering: false,
      unanswered: true,
    };
  }
  const claims = shared.flatMap(({ name, owner }) => (owner === '' ? [name] : []));
  const [, known, stored] = /^(.*):(\S+)/.exec(random.pick(['', turn, ...claims, queue[0] ?? '', queue.at(-1) ?? ''])) ?? [];
  const process = known ?? random.pick([HEARING, GONE, POLLING]);
  const end = stored === undefined ? wish : endOf(stored);
  const own = `${process}-${Math.floor(count / 6) + random.whole(0, 1)}${end}`;
  const held = random.chance(0.6) ? random.pick([holds[0] ?? own, ...holds]) : own;
  const wished = random.pick<Step['kind']>(['acquire', 'acquire', 'acquire', 'release', 'exchange', 'join', 'renew', ...KINDS]);
  const kind = isAsked(wished, held, own) ? wished : 'acquire';
  const name = stored ?? `${process.slice(-3)}${Math.floor(count / 12) + random.whole(0, 1)}${end}`;
  return {
    kind,
    hold: kind === 'acquire' ? own : kind === 'join' && random.chance(0.7) ? `${own}@${ownerOf(held)}` : held,
    next: own,
    grant: random.chance(0.8) ? grant : random.whole(0, grant),
    place: { name, process, polls: process === POLLING && random.chance(0.7) },
    queues: random.chance(0.7),
    mayOvertake: random.chance(0.5),
    ms: GRAIN_MS * random.pick([1, 2, 2, 4, 8, 16, 24, 150, -1, -3]),
    latest: random.chance(0.1) ? 1 : 0,
    lingering: random.chance(0.3),
    unanswered: random.chance(0.6),
  };
}

/** No exchange is asked of holds that share their key, and no join of a permit. */
function isAsked(kind: Step['kind'], held: string, own: string): boolean {
  return kind === 'exchange' ? endOf(held) + endOf(own) === '' : kind !== 'join' || !/P\d+$/.test(held);
}

/** The end of the name of a hold or a place, which says how its process wants the key. */
function endOf(name: string): string {
  return /(?:R|P\d+)$/.exec(name)?.[0] ?? '';
}

/** The answer of a side to a step. Only a renewal asks for another lease than the hold did first. */
export async function take(step: Step, side: LockTable | OtherSide, fence: number): Promise<unknown> {
  const { kind, place, ms, latest, lingering, unanswered } = step;
  const hold = { ...recordOf(step.hold), fence, unanswered };
  switch (kind) {
    case 'acquire':
      return bare(await side.acquire(hold, place.process, step.queues ? place : undefined, latest));
    case 'exchange': {
      const { released, reply } = await side.exchange(hold, recordOf(step.next), place.process, place, step.mayOvertake, latest);
      return { released, reply: bare(reply) };
    }
    case 'join':
      return side.join(hold, place.process, latest);
    case 'renew':
      // Some say that another call than the first one runs now.
      return side.renew({ ...hold, ttlMs: Math.abs(ms), lingering, by: ms > 4 * GRAIN_MS ? `${hold.by} again` : '' });
    case 'release':
      return side.release(hold);
    case 'leave':
      return side.leave(KEY, place.name, place.process);
    case 'forceRelease':
      return side.forceRelease(KEY, fence);
    case 'elapse':
      return 'elapse' in side ? side.elapse(ms) : undefined;
  }
}

/** Of a refusal only what it says. */
function bare(reply: TableReply): unknown {
  const { fence, otherKind } = reply;
  return fence !== undefined ? { fence } : otherKind ? { otherKind } : reply;
}

function recordOf(id: string): HoldRecord {
  return {
    key: KEY,
    owner: ownerOf(id),
    id,
    fence: 0,
    fences: fencesOfHold(id),
    shares: sharesOfPlace(endOf(id)),
    ttlMs: GRAIN_MS * (3 + (Number(/-(\d+)/.exec(id)?.[1]) % 5)),
    limitMs: 1_000,
    lingering: false,
    unanswered: false,
    by: id,
  };
}

/** How many fences the step asks for. */
export function fencesOf({ kind, hold, next }: Step): number {
  return fencesOfHold(kind === 'exchange' ? next : hold);
}

function fencesOfHold(id: string): number {
  return 1 + ((3 * Number(/-(\d+)/.exec(id)?.[1])) % MOST_FENCES || 0);
}

function ownerOf(id: string): string {
  return id.split('@').at(-1) ?? id;
}
