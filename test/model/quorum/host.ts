import type { Command } from '../../../lib/redis/scripts/script.js';
import type { Timeline } from '../properties/timeline.js';
import { ServerRecord } from './server-record.js';
import { VotingServer, type Machine, type VoteReply } from './voting-server.js';

/** Some time of 2023: what the scripts compute with is as large as in production. */
const BEGIN_MS = 1_700_000_000_000;
/** The prefix of the fields of holds. */
const HOLD = 'hold:';

/** A server of a quorum on a machine of its own, which carries out what the scripts are specified to do. */
export class Host implements Machine {
  readonly name: string;
  counter: number | undefined;
  /** Called when its process has ended, with all of its connections. */
  readonly onEnd = new Set<() => void>();
  readonly #timeline: Timeline;
  readonly #aheadMs: number;
  #runs = 0;
  #isUp = true;
  #startedAt: number;
  #votes!: VotingServer;
  #record!: ServerRecord;

  constructor(timeline: Timeline, name: string, aheadMs: number) {
    this.#timeline = timeline;
    this.name = name;
    this.#aheadMs = aheadMs;
    this.#startedAt = timeline.now;
    this.#forget();
  }

  get us(): number {
    return Math.floor((BEGIN_MS + this.#timeline.now + this.#aheadMs) * 1_000);
  }

  get run(): string {
    return `${this.name}.${this.#runs}`;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** When its process began. */
  get startedAt(): number {
    return this.#startedAt;
  }

  get info(): string {
    return `redis_version:8.2.0\r\nrole:master\r\nrun_id:${this.run}\r\nmaxmemory_policy:noeviction\r\n`;
  }

  /** Its process ends, and what it stored is gone. */
  kill(): void {
    this.#isUp = false;
    this.onEnd.forEach((end) => end());
  }

  start(): void {
    this.#isUp = true;
    this.#runs++;
    this.#startedAt = this.#timeline.now;
    this.#forget();
  }

  /** The record of its part in the quorum, and for how many milliseconds more the reports hold. */
  get remembers(): string {
    const now = Math.floor(this.us / 1_000);
    const fields = Object.entries(this.#record.stored()).map(([name, value]) =>
      name.includes(':') || name === 'seen' || name === 'read' ? `${name} ${Number(value) - now}` : `${name} ${value}`,
    );
    return `${this.run}: ${fields.join(', ')}`;
  }

  /** The reply to a command of the quorum. */
  carryOut({ script, parameters }: Command): unknown {
    const [count, ...rest] = parameters;
    const keys = rest.slice(0, count).map(String);
    const args = rest.slice(count);
    switch (script.name) {
      case 'vote':
        return this.#vote(args);
      case 'settle': {
        const [owner, vote, fence, last] = args;
        return this.#votes.settle(String(owner), holdOf(vote), Number(fence), Number(last) - Number(fence) + 1);
      }
      case 'renew':
        return this.#renew(keys.length, args);
      case 'release': {
        const [hold, , , stays] = args;
        return this.#votes.release(holdOf(hold), /^lock:done:(.*?):\{/.exec(keys[1] as string)?.[1] as string, Number(stays) > 0);
      }
      case 'report':
        return this.#report(args);
      default:
        throw new Error(`The simulated server does not know ${script.name}.`);
    }
  }

  #vote(args: readonly (string | number)[]): unknown {
    const [owner, votes, , process, by, proposed, attempt, ttlMs, waitedMs, fences, ageMs, latest] = args;
    const reply: VoteReply = this.#votes.vote({
      owner: String(owner),
      hold: holdOf(votes).slice(0, -1),
      attempt: Number(attempt),
      process: String(process),
      ttlMs: Number(ttlMs),
      by: String(by),
      proposed: Number(proposed),
      fences: Number(fences),
      waitedMs: Number(waitedMs),
      ageMs: Number(ageMs),
      latest: Number(latest),
    });
    if ('fence' in reply) {
      return `${reply.fence} ${reply.serverMs}`;
    }
    if ('lateAt' in reply) {
      return [reply.lateAt];
    }
    if ('tooHigh' in reply) {
      throw new Error(`FENCE ${reply.tooHigh}`);
    }
    return [reply.remainingMs, reply.by, reply.heldMs, reply.rank, reply.serverMs];
  }

  #renew(count: number, args: readonly (string | number)[]): number[] {
    return Array.from({ length: count }, (_, at) => {
      const [owner, fence, hold, , ttlMs, lingers] = args.slice(at * 6);
      const request = { owner: String(owner), fence: Number(fence), hold: holdOf(hold), ttlMs: Number(ttlMs) };
      return this.#votes.renew(request, Number(lingers) === 1);
    });
  }

  #report([run, counts, least, restarted, ...said]: readonly (string | number)[]): unknown {
    const pairs = Array.from({ length: said.length / 2 }, (_, at) => [String(said[2 * at]), Number(said[2 * at + 1])] as const);
    const answer = this.#record.report({
      run: String(run),
      restarted: Number(restarted) === 1,
      counts: counts as '' | 'again' | 'first',
      least: Number(least),
      said: pairs,
    }) as Readonly<Record<string, unknown>> & { readonly reported: readonly string[] };
    const { knownMs, counts: isCounted, firstUseMs, restarted: wasRestarted, fence, serverMs, reported } = answer;
    return [knownMs, Number(isCounted), firstUseMs, Number(wasRestarted), String(fence), serverMs, ...reported];
  }

  #forget(): void {
    this.counter = undefined;
    this.#votes = new VotingServer(this, () => undefined);
    this.#record = new ServerRecord(this);
  }
}

function holdOf(field: unknown): string {
  return String(field).slice(HOLD.length);
}
