import { LockConfigurationError, LockStoreError, type LockError } from '../core/errors.js';
import type { RedisSource } from '../redis/redis-client.js';
import { RedisConnection } from '../redis/redis-connection.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { Script } from '../redis/script.js';
import { serverWarnings } from '../redis/server-check.js';
import { Wakeups } from '../redis/wakeups.js';
import { REMEMBER } from './scripts.js';
import { runOf, type ServerRun } from './server-run.js';

/** The longest time for a command of a lease: a server that is slower must not hold up the others. */
const LEASE_COMMAND_MS = 200;
/** The same for what belongs to no lease. */
const COMMAND_MS = 1_000;
/** How often a server is asked whose votes do not count yet: another process may know its run. */
const AGAIN_MS = 250;

/** One connection to a server that is ready. What was answered on it comes from one run. */
export interface Session {
  run: ServerRun | undefined;
  /** When that was learnt, by the monotonic clock. */
  checkedAt: number;
  /** The run of the server whose votes counted last under this prefix, as far as the server remembers; '' for none. */
  recorded: string | undefined;
  /** Whether its votes count. */
  counts: boolean;
  warned: boolean;
}

/** An answer, and whether a vote counts that was given with it. */
export interface Answer {
  readonly reply: unknown;
  readonly counts: boolean;
}

/** What a server tells of itself to the quorum. */
export interface ServerListener {
  /** A connection was checked, and its server's votes do not count so far. */
  checked(): void;
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
  readonly #keys: RedisKeys;
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
    this.#keys = keys;
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
  get runId(): string | undefined {
    return this.#session?.run?.id;
  }

  /** Whether its votes count. */
  get counts(): boolean {
    return this.#session?.counts === true;
  }

  /** Whether its votes never counted, as far as it and this process know. */
  get isNew(): boolean {
    return this.#session?.run !== undefined && this.#session.recorded === '' && this.#countedRun === undefined;
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

  /** Runs a script within min(ttl / 10, 200 ms); without a ttl, within a second. */
  ask(script: Script, key: string, keys: readonly string[], args: readonly (string | number)[], ttlMs?: number): Promise<Answer> {
    const session = this.#session;
    const limitMs = ttlMs === undefined ? COMMAND_MS : Math.min(ttlMs / 10, LEASE_COMMAND_MS);
    // A connection that was made anew meanwhile may have led to another run.
    const answer = (reply: unknown): Answer => ({ reply, counts: session !== undefined && session.counts && session === this.#session });
    return this.#connection.run(script, key, keys, args, limitMs).then(answer);
  }

  publish(channel: string, message: string): Promise<void> {
    return this.#connection.publish(channel, message);
  }

  /** Why a vote does not count. */
  whyNot(): LockStoreError {
    const leftMs = this.#leftMs();
    const why =
      leftMs === undefined
        ? (this.#refusal?.detail ?? 'it is not known yet whether it restarted')
        : `it restarted not long ago, and its votes count in ${Math.ceil(leftMs)} ms`;
    return new LockStoreError(why, '', { unknown: true });
  }

  /** Asks anew whether its votes ever counted; the session in which it was asked. */
  async look(): Promise<Session | undefined> {
    const session = this.#session;
    if (session?.run) {
      await this.#recall(session, '');
    }
    return session === this.#session ? session : undefined;
  }

  /** Has the server remember that this run counts: before it does, since whoever finds nothing takes the quorum for new. */
  async remember(session: Session | undefined): Promise<void> {
    if (session?.run && session === this.#session) {
      await this.#recall(session, session.run.id);
    }
  }

  /** The votes given in this session count from here on. */
  count(session: Session | undefined): void {
    if (session?.run && session === this.#session && session.recorded === session.run.id) {
      session.counts = true;
      this.#countedRun = session.run.id;
      clearTimeout(this.#timer);
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
    const session: Session = { run: undefined, checkedAt: 0, recorded: undefined, counts: false, warned: false };
    this.#session = session;
    this.#check(session);
  }

  #check(session: Session): void {
    this.#refusal = undefined;
    this.#checking = this.#judge(session).catch((error: LockError) => {
      this.#refusal = error instanceof LockConfigurationError ? error : undefined;
      this.#checkAgain(session);
    });
  }

  async #judge(session: Session): Promise<void> {
    session.run ??= runOf(await this.#connection.info());
    session.checkedAt ||= performance.now();
    await this.#recall(session, '');
    if (session !== this.#session) {
      return;
    }
    const { id } = session.run;
    if (id === this.#countedRun || id === session.recorded || this.#leftMs() === 0) {
      if (id !== session.recorded) {
        await this.remember(session);
      }
      this.count(session);
      return;
    }
    this.#checkAgain(session);
    this.#listener.checked();
  }

  /** Asks what the server remembers, and has it remember `run`, unless that is ''. */
  async #recall(session: Session, run: string): Promise<void> {
    session.recorded = String(await this.#connection.run(REMEMBER, '', [`${this.#keys.prefix}:run:{0}`], [run], COMMAND_MS));
  }

  #checkAgain(session: Session): void {
    if (session !== this.#session) {
      return;
    }
    clearTimeout(this.#timer);
    const leftMs = this.#leftMs() ?? AGAIN_MS;
    this.#timer = setTimeout(
      () => {
        this.#warnOnce(session);
        this.#check(session);
      },
      Math.min(AGAIN_MS, leftMs),
    ).unref();
  }

  #warnOnce(session: Session): void {
    const leftMs = this.#leftMs();
    const why = leftMs === undefined ? this.#refusal?.detail : leftMs > 0 && restarted(leftMs);
    if (session === this.#session && !session.warned && why) {
      session.warned = true;
      this.#listener.warn(`${this.name} of the quorum: ${why}`);
    }
  }

  /** Until every lease is over that an earlier run may have voted for, in milliseconds; undefined while nothing is known of this one. */
  #leftMs(): number | undefined {
    const session = this.#session;
    return session?.run && Math.max(0, this.#longestLeaseMs - session.run.lastsMs - (performance.now() - session.checkedAt));
  }
}

function restarted(leftMs: number): string {
  return `it restarted not long ago, and may have forgotten locks. Its votes count in ${Math.ceil(leftMs / 1_000)} s.`;
}
