import { LockConfigurationError, LockStoreError, type LockError } from '../../core/errors.js';
import { ServerClock } from '../kit/server-clock.js';
import type { RedisSource } from '../redis/redis-source.js';
import { RedisConnection } from '../redis/redis-connection.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { Argument, Command } from '../redis/script.js';
import { serverWarnings } from '../redis/server-check.js';
import { Wakeups } from '../redis/wakeups.js';
import { ROLL } from './scripts.js';
import { runOf } from './server-run.js';
import { isLate, timeIn } from './times.js';
import { readStanding, type Standing, type Verdict } from './standing.js';

/** The longest time for a command of a lease: a server that is slower must not hold up the others. */
const LEASE_COMMAND_MS = 200;
/** The same for what belongs to no lease. */
const COMMAND_MS = 1_000;
/** How often a server is asked whose votes do not count yet, and how seldom one whose votes do. */
const AGAIN_MS = 250;
const SELDOM_MS = 15_000;

/** One connection to a server that is ready. What was answered on it comes from one run. */
interface Session {
  /** The id of the run, where it is known. */
  run: string | undefined;
  standing: Standing | undefined;
  /** Whether its votes count. */
  counts: boolean;
  /** Why they do not count for long, and how often that was found. */
  refused: { why: string; times: number };
  readonly clock: ServerClock;
}

/** An answer, and whether a vote counts that was given with it. */
export interface Answer {
  readonly reply: unknown;
  readonly counts: boolean;
}

/** What a server needs of the quorum that it is in. */
export interface ServerListener {
  /** Its run became known. */
  came(server: QuorumServer): void;
  /** It answered. */
  looked(): void;
  /** What it is told of the other servers: things said, and for how many ms each holds. */
  said(): readonly Argument[];
  verdict(server: QuorumServer): Verdict | undefined;
  warn(message: string): void;
}

/**
 * One of the servers of a quorum. One that restarted without its data may have forgotten votes, so its votes count only when the
 * longest lease has passed since: the delayed restart of Redlock
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
 *
 * They count at once where the server itself remembers that this very run counted before.
 */
export class QuorumServer {
  readonly wakeups: Wakeups;
  readonly #place: string;
  readonly #keys: { readonly record: string; readonly counter: string };
  readonly #longestLeaseMs: number;
  readonly #listener: ServerListener;
  readonly #connection: RedisConnection;
  #address = '';
  #session: Session | undefined;
  #checking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** The run that counted last, as far as this process knows. */
  #countedRun: string | undefined;
  /** What no retry mends, where the server was asked last. */
  #refusal: LockConfigurationError | undefined;

  /** `place` says which of the servers it is. */
  constructor(source: RedisSource, place: string, keys: RedisKeys, longestLeaseMs: number, listener: ServerListener) {
    this.#place = place;
    this.#keys = { record: `${keys.prefix}:run:{0}`, counter: keys.fence('') };
    this.#longestLeaseMs = longestLeaseMs;
    this.#listener = listener;
    this.wakeups = new Wakeups(source, false);
    this.#connection = new RedisConnection(source, (address) => this.#ready(address));
  }

  /** What messages call it; no URL, which may hold a password. */
  get name(): string {
    return this.#address === '' ? this.#place : `${this.#place} (${this.#address})`;
  }

  /** The id of the run at the other end, where it is known. */
  get run(): string | undefined {
    return this.#session?.run;
  }

  /** Whether its votes count. */
  get counts(): boolean {
    return this.#session?.counts === true;
  }

  /** What it knows of its part in the quorum; undefined where it has not answered for long. */
  get standing(): Standing | undefined {
    const standing = this.#session?.standing;
    return standing && performance.now() - standing.at < this.#longestLeaseMs / 2 + COMMAND_MS ? standing : undefined;
  }

  /** What its clock reads now, in ms since 1970, as far as it has told. */
  get clockMs(): number | undefined {
    return this.#session?.clock.now();
  }

  /** Connects, and checks what is found; warnings of its settings. */
  async open(): Promise<string[]> {
    const warnings = serverWarnings(await this.#connection.info());
    await this.#checking;
    if (this.#refusal) {
      throw this.#refusal;
    }
    return warnings;
  }

  /** Runs a script within its share of what the whole operation may take, and 200 ms at most; without a limit, within a second. */
  ask(command: Command, limitMs?: number): Promise<Answer> {
    return this.#run(command, limitMs === undefined ? COMMAND_MS : shareOf(limitMs));
  }

  #run(command: Command, limitMs: number): Promise<Answer> {
    const session = this.#session;
    // A connection that was made anew meanwhile may have led to another run.
    const answer = (reply: unknown): Answer => ({ reply, counts: session !== undefined && session.counts && session === this.#session });
    return this.#connection.run(command, limitMs).then(answer);
  }

  /**
   * The same for a command that the server carries out until a time of its clock, and whose replies tell that time. One
   * that was refused though it came in time was judged by what the clock had said before: it is sent once more.
   */
  async askInTime(commandBy: (latest: number) => Command, operationMs: number): Promise<Answer> {
    const limitMs = shareOf(operationMs);
    const sentAt = performance.now();
    const answer = await this.#askBy(sentAt, limitMs, commandBy);
    const leftMs = sentAt + limitMs - performance.now();
    return isLate(answer.reply) && leftMs > 0 ? this.#askBy(performance.now(), leftMs, commandBy) : answer;
  }

  async #askBy(sentAt: number, limitMs: number, commandBy: (latest: number) => Command): Promise<Answer> {
    const session = this.#session;
    const answer = await this.#run(commandBy(session?.clock.latest(sentAt, limitMs) ?? 0), limitMs);
    const serverMs = timeIn(answer.reply);
    if (serverMs !== undefined) {
      session?.clock.read(serverMs, sentAt);
    }
    return answer;
  }

  publish(channel: string, message: string): Promise<void> {
    return this.#connection.publish(channel, message);
  }

  /** Why a vote does not count. */
  whyNot(): LockStoreError {
    const verdict = this.#listener.verdict(this);
    const why = verdict === undefined ? (this.#refusal?.detail ?? 'it is not known yet whether it restarted') : reasonOf(verdict);
    return new LockStoreError(why, '', { unknown: true });
  }

  /**
   * Asks what it knows; with `counts`, its votes count from now on, and its next fence is above `least`. All know that before one
   * votes: whoever finds a vote finds out as well that it counts.
   */
  async look(counts: '' | 'again' | 'first' = '', least = 0): Promise<void> {
    const session = this.#session;
    if (session?.run === undefined) {
      return;
    }
    const restarted = this.#countedRun !== undefined && this.#countedRun !== session.run ? 1 : 0;
    // Of a server that was emptied while it ran, others would have to find out anew.
    const command = ROLL.command('', {
      ...this.#keys,
      run: session.run,
      restarted,
      counts: session.counts ? 'again' : counts,
      least,
      said: this.#listener.said(),
    });
    const sentAt = performance.now();
    const standing = readStanding(await this.#connection.run(command, COMMAND_MS));
    if (session !== this.#session) {
      return;
    }
    session.clock.read(standing.serverMs, sentAt);
    session.standing = standing;
    if (standing.counts) {
      session.counts = true;
      this.#countedRun = session.run;
    }
  }

  /** Tells it soon what is said of the others. */
  lookSoon(): void {
    if (this.counts) {
      this.#checkIn(AGAIN_MS);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#session = undefined;
    this.wakeups.close();
    this.#connection.close();
  }

  #ready(address: string): void {
    this.#address = address;
    this.wakeups.follow(address);
    // A server that restarted still has the clock of its machine.
    const clock = this.#session?.clock ?? new ServerClock();
    this.#session = { run: undefined, standing: undefined, counts: false, refused: { why: '', times: 0 }, clock };
    this.#check(this.#session);
  }

  #check(session: Session): void {
    this.#refusal = undefined;
    this.#checking = this.#judge(session)
      .catch((error: LockError) => {
        this.#refusal = error instanceof LockConfigurationError ? error : undefined;
      })
      .finally(() => {
        if (session === this.#session) {
          this.#warnOnce(session);
          this.#checkIn(session.counts ? Math.min(Math.max(AGAIN_MS, this.#longestLeaseMs / 4), SELDOM_MS) : AGAIN_MS);
        }
      });
  }

  async #judge(session: Session): Promise<void> {
    const isNew = session.run === undefined;
    session.run ??= runOf(await this.#connection.info());
    if (session !== this.#session) {
      return;
    }
    if (isNew) {
      this.#listener.came(this);
    }
    await this.look();
    if (session === this.#session) {
      this.#listener.looked();
    }
  }

  #checkIn(ms: number): void {
    const session = this.#session;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (session && session === this.#session) {
        this.#check(session);
      }
    }, ms).unref();
  }

  /** Not of what another process is just about to change. */
  #warnOnce(session: Session): void {
    const verdict = session.counts ? undefined : this.#listener.verdict(this);
    const { detail } = this.#refusal ?? {};
    const why = detail ?? (verdict && verdict.counts === undefined && verdict.why !== 'asking' ? verdict.why : '');
    session.refused = { why, times: why === session.refused.why ? session.refused.times + 1 : 1 };
    if (why !== '' && session.refused.times === 2) {
      this.#listener.warn(`${this.name} of the quorum: ${detail ?? warningOf(verdict)}`);
    }
  }
}

function reasonOf(verdict: Verdict): string {
  if (verdict.counts !== undefined) {
    return 'its votes count in a moment';
  }
  switch (verdict.why) {
    case 'asking':
      return `it is new, and its votes count in ${Math.ceil(verdict.inMs)} ms unless a process knows that it had votes before`;
    case 'restarted':
      return `it restarted not long ago, and its votes count in ${Math.ceil(verdict.inMs)} ms`;
    case 'others':
      return 'other processes have another server in its place';
  }
}

function warningOf(verdict: Verdict | undefined): string {
  return verdict?.counts === undefined && verdict?.why === 'restarted'
    ? `it restarted not long ago, or came in the place of another, and may have forgotten locks. Its votes count in ${Math.ceil(verdict.inMs / 1_000)} s.`
    : 'other processes have another server in its place, so its votes do not count. Give all processes the same list of servers; ' +
        'docs/stores/quorum.md says how to change it.';
}

/** An operation asks the servers twice where the first round decides nothing, and somewhat is left for the way there and back. */
function shareOf(limitMs: number): number {
  return Math.min(limitMs * 0.4, LEASE_COMMAND_MS);
}
