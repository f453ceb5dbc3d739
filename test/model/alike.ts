import type { StoredLock } from '../../lib/core/seam/lock-store.js';
import { KeyState } from '../../lib/kit/key-state.js';
import { LockTable } from '../../lib/kit/lock-table.js';
import type { SharedHolds } from '../../lib/kit/shared-holds.js';
import { sharesOfPlace } from '../../lib/core/seam/shares.js';
import { Random } from '../support/random.js';
import {
  fencesOf,
  GRAIN_MS,
  HEARING,
  KEY,
  nextStep,
  SHARING,
  take,
  type OtherSide,
  type Step,
  type Stored,
  type StoredShare,
} from './steps.js';

const STEPS = 40;

/** A server whose operations are compared with those of the lock table. */
export interface AlikeServer {
  /** Whether its time passes by itself too. */
  readonly hasOwnTime: boolean;
  /**
   * Whether it only wakes `HEARING`: it does not tell of a forced release, and does not wake the process that asks,
   * which learns of its turn by the answer. Default: false.
   */
  readonly onlyWakes?: boolean;
  /** Whether it may say of permits that the first is back sooner than it is. Default: false. */
  readonly hurries?: boolean;
  /** Whether its keys can be shared, by readers and by permits. Default: false. */
  readonly shares?: boolean;
  /** Its operations, with a defect that `edit` puts into them, and nothing stored. */
  begin(now: number, edit: (source: string) => string): Promise<OtherSide>;
  /** The messages to `HEARING` since the last time. */
  heard(): Promise<string[]>;
}

/** Where the server differs from the lock table in the sequence of that seed, with what led to it. */
export async function differenceIn(
  seed: number,
  server: AlikeServer,
  edit = (source: string): string => source,
): Promise<string | undefined> {
  const random = new Random(seed);
  const wishes = server.shares ? random.pick(SHARING) : undefined;
  // Far enough from 0 to be set back.
  let now = 1_000_000 * GRAIN_MS;
  const side = await server.begin(now, edit);
  const told: string[] = [];
  const tell = (process: string, message: string): number => (process === HEARING ? told.push(message) : 0);
  const table = new LockTable(
    { monotonic: () => now, wall: () => now },
    {
      turn: ({ process, name }, key) => tell(process, `turn ${name} ${key}`),
      forced: (process, key, fence) => tell(process, `forced ${fence} ${key}`),
    },
  );
  const heardOf = (messages: readonly string[], { kind, place }: Step): readonly string[] => {
    const asks = kind === 'acquire' || kind === 'exchange';
    return server.onlyWakes
      ? messages.filter((message) => message.startsWith('turn ') && !(asks && message.startsWith(`turn ${place.name} `)))
      : messages;
  };
  const fences = { table: [0], server: [0] };
  const blocks = { table: new Blocks(), server: new Blocks() };
  const trace = [`MODEL_SEED=${seed}`];
  const began = performance.now();
  for (let count = random.chance(0.2) ? -random.pick([66, 130]) : 0; count < STEPS; count++) {
    const step = nextStep(random, count, storedIn(table, now), fences.table.length - 1, wishes);
    const answer = await take(step, table, fences.table[step.grant] ?? 0);
    now += step.kind === 'elapse' ? step.ms : 0;
    // One connection keeps what is sent at once in order.
    const [answered, stored, found] = await Promise.all([
      take(step, side, fences.server[step.grant] ?? 0),
      side.stored(KEY),
      side.inspect?.(KEY),
    ]);
    if (server.hurries) {
      hurry(answered, answer, step);
    }
    const outcome = textOf(
      {
        answer,
        overlaps: blocks.table.overlaps(answer, step),
        told: heardOf(told.splice(0), step),
        stored: storedIn(table, now),
        found: side.inspect && foundOf(table.inspect(KEY)),
      },
      fences.table,
    );
    const other = textOf(
      {
        answer: answered,
        overlaps: blocks.server.overlaps(answered, step),
        told: heardOf(await server.heard(), step),
        stored,
        found: side.inspect && foundOf(found ?? null),
      },
      fences.server,
    );
    trace.push(JSON.stringify(step), `  ${outcome}`);
    if (outcome !== other) {
      return server.hasOwnTime && performance.now() - began > GRAIN_MS / 2
        ? differenceIn(seed, server, edit)
        : `${trace.join('\n')}\nbut the server: ${other}`;
    }
  }
  return undefined;
}

/** A defect of what a server runs: the first text, which has to be there, becomes the second wherever it stands. */
export type SourceDefect = readonly [defect: string, right: string, wrong: string];

/** Expects that the server does what the lock table does, in the sequences of all seeds. */
export async function expectAlike(server: AlikeServer, seeds: readonly number[]): Promise<void> {
  for (const seed of seeds) {
    expect(await differenceIn(seed, server)).toBeUndefined();
  }
}

/** Expects that one of the first sequences, as many as `mostSeeds`, shows a difference where `right` is `wrong`. */
export async function expectFound(
  [, right, wrong]: SourceDefect,
  differenceOf: (seed: number, edit: (source: string) => string) => Promise<string | undefined>,
  { mostSeeds = 400, finding = /but the server/ } = {},
): Promise<void> {
  let edits = 0;
  const edit = (source: string): string => {
    edits += source.split(right).length - 1;
    return source.replaceAll(right, () => wrong);
  };
  let difference: string | undefined;
  for (let seed = 1; difference === undefined && seed <= mostSeeds; seed++) {
    difference = await differenceOf(seed, edit);
  }
  expect(edits).toBeGreaterThan(0);
  expect(difference).toMatch(finding);
}

/** The fences that the grants so far have reserved. */
class Blocks {
  #last = 0;
  #end = 0;

  /** Whether a new grant is within the block of the one before. */
  overlaps(answer: unknown, step: Step): boolean {
    const { fence } = ((answer as { reply?: unknown } | undefined)?.reply ?? answer ?? {}) as { fence?: number };
    if (fence === undefined || fence === this.#last) {
      return false;
    }
    const overlaps = fence < this.#end;
    this.#last = fence;
    this.#end = fence + fencesOf(step);
    return overlaps;
  }
}

/** The table does not show this, but tidies the state of a key that it is asked about. */
function storedIn(table: LockTable, now: number): Stored {
  let state: KeyState | undefined;
  const original = Object.getOwnPropertyDescriptor(KeyState.prototype, 'tidy') as TypedPropertyDescriptor<() => boolean>;
  KeyState.prototype.tidy = function (this: KeyState) {
    const isLeft = original.value?.call(this) ?? false;
    state = isLeft ? this : undefined;
    return isLeft;
  };
  table.inspect(KEY);
  Object.defineProperty(KeyState.prototype, 'tidy', original);
  const { grant, turn, queue, shared } = state ?? new KeyState({ monotonic: () => now, wall: () => now });
  const sharing = [...(shared?.holds.keys() ?? [])];
  return {
    owner: grant?.owner ?? '',
    fence: grant?.fence ?? (sharing.length > 0 ? (shared?.fence ?? 0) : 0),
    ttlMs: grant?.ttlMs ?? 0,
    holds: [...(grant?.holds.keys() ?? sharing)].toSorted(),
    turn: turn ? `${turn.place.process}:${turn.place.name}` : '',
    queue: [...queue.values()].map(({ process, name, polls }) => `${process}:${name}${polls ? ' polls' : ''}`),
    leftMs: ((grant ?? turn)?.endsAt ?? now) - now,
    shared: shared && sharesIn(shared, now),
  };
}

function sharesIn({ holds, claims }: SharedHolds, now: number): StoredShare[] {
  const stored = [...holds].map(([name, { shares, owner, by, ttlMs, endsAt }]) => ({
    name,
    shares,
    owner,
    by,
    ttlMs,
    leftMs: endsAt - now,
  }));
  const reserved = [...claims.values()].map(({ place: { process, name }, endsAt }) => ({
    name: `${process}:${name}`,
    shares: sharesOfPlace(name) ?? 0,
    owner: '',
    by: '',
    ttlMs: 0,
    leftMs: endsAt - now,
  }));
  return [...stored, ...reserved].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Takes what was answered to a permit for as late as the table's answer, where it was sooner, but later than now. */
function hurry(answered: unknown, answer: unknown, { hold }: Step): void {
  const [early, exact] = [answered, answer] as { remainingMs?: number }[];
  if (/P\d+$/.test(hold) && early?.remainingMs && exact?.remainingMs && early.remainingMs > 0) {
    early.remainingMs = Math.max(early.remainingMs, exact.remainingMs);
  }
}

/** The facts about a lock that either side knows in the same words. */
function foundOf(found: StoredLock | null): unknown {
  return found && { ...found, since: undefined, waiters: found.waiters.length, processes: found.processes?.toSorted() };
}

/** As text, in which fences are numbers of grants, and times are whole grains. */
function textOf(outcome: unknown, fences: number[]): string {
  return JSON.stringify(outcome, (name, value: unknown) => {
    if (name === 'fence') {
      return numberOf(Number(value), fences);
    }
    if (typeof value === 'string') {
      return value.replace(/^(forced) (\d+)/, (_, forced, fence) => `${forced} ${numberOf(Number(fence), fences)}`);
    }
    return name === 'heldMs' ? undefined : name.endsWith('Ms') ? Math.ceil(Number(value) / GRAIN_MS) : value;
  });
}

/** Fences rise. */
function numberOf(fence: number, fences: number[]): number {
  if (fence > (fences.at(-1) ?? 0)) {
    fences.push(fence);
  }
  return fences.indexOf(fence);
}
