import { DONE_MS, MOST_FENCE, MOST_HOLDS } from '../../../lib/kit/protocol.js';
import { ABOUT_MS, MOST_AHEAD_US, PRESENT_MS, SLICE_MS } from '../../../lib/quorum/votes/vote-rules.js';
import type { Stored } from './stored.js';

/** The server's clock, in microseconds since 1970, and its counter of fences. */
export interface Machine {
  us: number;
  counter: number | undefined;
}

/** The arguments of VOTE; the attempt of a hold that joined is 0. */
export interface VoteRequest {
  readonly owner: string;
  readonly hold: string;
  readonly attempt: number;
  readonly process: string;
  readonly ttlMs: number;
  readonly by: string;
  readonly proposed: number;
  /** How many fences it reserves. */
  readonly fences: number;
  readonly waitedMs: number;
  /** How old the lock is, where the vote is cast again. */
  readonly ageMs: number;
  /** The latest time at which it may vote, in ms since 1970, or 0. */
  readonly latest: number;
}

/**
 * The answers of VOTE: the fence that was stored, a refusal, that the command is late, or the counter that no fence can
 * follow.
 */
export type VoteReply =
  | { readonly fence: number; readonly serverMs: number }
  | { readonly remainingMs: number; readonly by: string; readonly heldMs: number; readonly rank: number; readonly serverMs: number }
  | { readonly lateAt: number }
  | { readonly tooHigh: string };

/** The hold in the arguments of JOIN and RENEW. */
export interface HoldRequest {
  readonly owner: string;
  readonly fence: number;
  readonly hold: string;
  readonly ttlMs: number;
}

interface Lock {
  readonly owner: string;
  fence: number;
  ttlMs: number;
  readonly since: number;
  readonly by: string;
  readonly holds: Map<string, string>;
  endsAt: number;
}

/** Who waits for the lock, and which process had it last, since when. */
interface Waiters {
  readonly waiting: Map<string, { readonly since: number; readonly refusedAt: number }>;
  last: { readonly process: string; readonly since: number } | undefined;
  endsAt: number;
}

/**
 * One server of a quorum as a state machine, for one key: the effects of VOTE and SETTLE there, and of the scripts of
 * the single server, whose holds are votes here. The votes of one hold are called `<hold>.<number of the attempt>`, or
 * `<hold>` where it joined.
 *
 * | the lock | and | VOTE |
 * |---|---|---|
 * | any | the hold was released, or this vote withdrawn | refuses |
 * | free | no other process has waited longer, or the caller's process is in its slice | votes |
 * | free | another process has waited longer | refuses |
 * | the owner's | a later attempt of the hold has voted | refuses |
 * | the owner's | otherwise | votes, in place of earlier attempts of the hold |
 * | another's | | refuses |
 */
export class VotingServer {
  readonly #machine: Machine;
  readonly #notify: (process: string, message: string) => void;
  readonly #done = new Map<string, { readonly answer: number; readonly endsAt: number }>();
  #lock: Lock | undefined;
  #waiters: Waiters | undefined;

  constructor(machine: Machine, notify: (process: string, message: string) => void) {
    this.#machine = machine;
    this.#notify = notify;
  }

  vote(request: VoteRequest): VoteReply {
    this.#tidy();
    const { owner, hold, attempt, process } = request;
    if (this.#isLate(request.latest)) {
      return { lateAt: this.#ms };
    }
    if (this.#done.has(hold) || this.#done.has(voteOf(hold, attempt))) {
      return this.#refusal(0);
    }
    if (this.#lock) {
      return this.#lock.owner === owner ? this.#voteAgain(this.#lock, request) : this.#refuse(this.#lock, request);
    }
    if (!this.#waiters) {
      return this.#grant(request);
    }
    const waiters = this.#waiters;
    const isInSlice = waiters.last?.process === process && this.#ms - waiters.last.since < SLICE_MS;
    const others = this.#othersIn(waiters, process);
    const first = Math.min(...others);
    const since = this.#ms - request.waitedMs;
    if (!isInSlice && since > first + ABOUT_MS) {
      this.#wait(request);
      return this.#refusal(PRESENT_MS, '', 0, others.filter((other) => other < since).length);
    }
    const reply = this.#grant(request);
    waiters.waiting.delete(process);
    waiters.last = isInSlice ? waiters.last : { process, since: this.#ms - request.ageMs };
    waiters.endsAt = this.#ms + 2 * PRESENT_MS;
    return reply;
  }

  /** Gives a vote another fence, and never one that the server itself would give later; 0 where the vote is gone. */
  settle(owner: string, vote: string, fence: number, fences: number): number {
    this.#tidy();
    if (this.#lock?.owner !== owner || !this.#lock.holds.has(vote)) {
      return 0;
    }
    this.#machine.counter = Math.max(this.#machine.counter ?? 0, fence + fences - 1);
    this.#lock.fence = fence;
    return 1;
  }

  join({ owner, fence, hold, ttlMs }: HoldRequest, process: string, latest: number): number | { lateAt: number } {
    this.#tidy();
    const lock = this.#lock;
    if (lock?.owner !== owner || lock.fence !== fence || this.#done.has(hold)) {
      return 0;
    }
    if (!lock.holds.has(hold) && lock.holds.size >= MOST_HOLDS) {
      return -1;
    }
    if (!lock.holds.has(hold) && this.#isLate(latest)) {
      return { lateAt: this.#ms };
    }
    lock.holds.set(hold, process);
    this.#lengthen(lock, ttlMs);
    return 1;
  }

  renew({ owner, fence, hold, ttlMs }: HoldRequest, lingers: boolean): number {
    this.#tidy();
    const lock = this.#lock;
    if (lock?.owner !== owner || lock.fence !== fence || !lock.holds.has(hold)) {
      return 0;
    }
    if (lingers && lock.holds.size === 1) {
      lock.endsAt = this.#ms;
    }
    this.#lengthen(lock, ttlMs);
    return 1;
  }

  /**
   * Takes a vote out, or a hold; `done` names the hold that must not come in again. A repetition answers as the first
   * time, where it is unanswered.
   */
  release(vote: string, done: string, unanswered: boolean): number {
    this.#tidy();
    const answer = this.#lock?.holds.delete(vote) ? 1 : 0;
    const first = answer === 0 && unanswered ? this.#done.get(done) : undefined;
    if (first) {
      return first.answer;
    }
    if (unanswered) {
      this.#done.set(done, { answer, endsAt: this.#ms + DONE_MS });
    }
    if (answer === 1 && this.#lock?.holds.size === 0) {
      this.#lock = undefined;
    }
    return answer;
  }

  forceRelease(request: string, fence: number, doneMs: number): number {
    this.#tidy();
    const first = this.#done.get(request);
    if (first || this.#lock?.fence !== fence) {
      return first?.answer ?? 0;
    }
    const processes = new Set(this.#lock.holds.values());
    this.#lock = undefined;
    this.#done.set(request, { answer: 1, endsAt: this.#ms + doneMs });
    processes.forEach((process) => this.#notify(process, `forced ${fence}`));
    return 1;
  }

  inspect(): readonly unknown[] {
    this.#tidy();
    const lock = this.#lock;
    return lock ? [lock.fence, lock.holds.size, lock.endsAt - this.#ms, lock.since, lock.by] : [];
  }

  stored(): Omit<Stored, 'record'> {
    this.#tidy();
    const [lock, waiters, now] = [this.#lock, this.#waiters, this.#ms];
    return {
      lock: lock && {
        owner: lock.owner,
        fence: lock.fence,
        ttlMs: lock.ttlMs,
        since: lock.since,
        by: lock.by,
        holds: [...lock.holds],
        leftMs: lock.endsAt - now,
      },
      counter: this.#machine.counter,
      waiters: waiters && {
        waiting: Object.fromEntries(waiters.waiting),
        last: waiters.last && [waiters.last.process, waiters.last.since],
        leftMs: waiters.endsAt - now,
      },
      done: Object.fromEntries([...this.#done].map(([name, { answer, endsAt }]) => [name, { answer, leftMs: endsAt - now }])),
    };
  }

  /** Whole milliseconds. */
  get #ms(): number {
    return Math.floor(this.#machine.us / 1_000);
  }

  #isLate(latest: number): boolean {
    return latest > 0 && this.#ms > latest;
  }

  /** A proposal far ahead of the server's clock is cut; what follows the last fence is above it. */
  #grant({ owner, hold, attempt, process, ttlMs, by, proposed, fences, ageMs }: VoteRequest): VoteReply {
    const { us, counter } = this.#machine;
    const wanted = proposed - us > MOST_AHEAD_US ? us : proposed;
    // Without a counter, the clock stands for it; which may itself be far ahead of the others.
    const least = counter === undefined ? Math.min(us, wanted + MOST_AHEAD_US) : counter + 1;
    const more = fences - 1;
    if (wanted + more > MOST_FENCE || least + more > MOST_FENCE) {
      return { tooHigh: String(wanted + more > MOST_FENCE ? wanted : counter) };
    }
    const fence = Math.max(wanted, least);
    this.#machine.counter = fence + more;
    const holds = new Map([[voteOf(hold, attempt), process]]);
    this.#lock = { owner, fence, ttlMs, since: this.#ms - ageMs, by, holds, endsAt: this.#ms + ttlMs };
    return { fence, serverMs: this.#ms };
  }

  /** Whatever the fence of the lock is now, the vote is for that one. */
  #voteAgain(lock: Lock, { hold, attempt, process, ttlMs }: VoteRequest): VoteReply {
    const vote = voteOf(hold, attempt);
    const others = [...lock.holds.keys()].filter((name) => name !== vote && /^(.*)\.\d+$/.exec(name)?.[1] === hold);
    if (!lock.holds.has(vote)) {
      if (others.some((other) => Number(other.slice(hold.length + 1)) > attempt)) {
        return this.#refusal(0);
      }
      others.forEach((other) => lock.holds.delete(other));
    }
    lock.holds.set(vote, process);
    this.#lengthen(lock, ttlMs);
    return { fence: lock.fence, serverMs: this.#ms };
  }

  #refuse(lock: Lock, request: VoteRequest): VoteReply {
    // A lease that is longer than any that was asked for: the clock was set back.
    lock.endsAt = Math.min(lock.endsAt, this.#ms + lock.ttlMs);
    const since = this.#ms - request.waitedMs;
    const rank = this.#waiters ? this.#othersIn(this.#waiters, request.process).filter((other) => other < since).length : 0;
    this.#wait(request, { process: [...lock.holds.values()].at(-1) ?? '', since: lock.since });
    return this.#refusal(lock.endsAt - this.#ms, lock.by, Math.max(0, this.#ms - lock.since), rank);
  }

  /**
   * Records that a caller waits that was refused before. `holder` has the lock: it is the last holder, unless another
   * is recorded.
   */
  #wait({ process, waitedMs }: VoteRequest, holder?: Waiters['last']): void {
    if (waitedMs > 0) {
      this.#waiters ??= { waiting: new Map(), last: undefined, endsAt: 0 };
      this.#waiters.waiting.set(process, { since: this.#ms - waitedMs, refusedAt: this.#ms });
      this.#waiters.last ??= holder;
      this.#waiters.endsAt = this.#ms + 2 * PRESENT_MS;
    }
  }

  /** Since when the other processes wait that were there not long ago. */
  #othersIn({ waiting }: Waiters, process: string): number[] {
    return [...waiting].flatMap(([name, { since, refusedAt }]) => (name !== process && refusedAt + PRESENT_MS > this.#ms ? since : []));
  }

  #refusal(remainingMs: number, by = '', heldMs = 0, rank = 0): VoteReply {
    return { remainingMs, by, heldMs, rank, serverMs: this.#ms };
  }

  #lengthen(lock: Lock, ttlMs: number): void {
    lock.endsAt = Math.max(lock.endsAt, this.#ms + ttlMs);
    lock.ttlMs = Math.max(lock.ttlMs, ttlMs);
  }

  /** Redis keeps what ends in this very millisecond. */
  #tidy(): void {
    const isOver = ({ endsAt }: { endsAt: number }): boolean => endsAt < this.#ms;
    this.#lock = this.#lock && isOver(this.#lock) ? undefined : this.#lock;
    this.#waiters = this.#waiters && isOver(this.#waiters) ? undefined : this.#waiters;
    for (const [name, mark] of this.#done) {
      if (isOver(mark)) {
        this.#done.delete(name);
      }
    }
  }
}

function voteOf(hold: string, attempt: number): string {
  return attempt === 0 ? hold : `${hold}.${attempt}`;
}
