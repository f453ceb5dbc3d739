import { LONGEST_COMMAND_MS } from '../../core/seam/time.js';
import { ServerClock } from '../../kit/server-clock.js';
import type { PlainCommands } from '../../redis/connection/plain-commands.js';
import type { RedisOrigin } from '../../redis/connection/redis-source.js';
import { RedisConnection } from '../../redis/connection/redis-connection.js';
import { isLate } from '../../redis/scripts/redis-commands.js';
import type { Command } from '../../redis/scripts/script.js';
import { Wakeups } from '../../redis/wakeups.js';
import { serverTimeIn } from '../votes/replies.js';
import { BATCH } from '../votes/scripts.js';
import { Unanswered } from '../votes/unanswered.js';
import { Session } from './session.js';

/** A reply, and whether a vote counts that was given with it. */
export interface Answer {
  readonly reply: unknown;
  readonly counts: boolean;
}

/** One of the servers of a quorum: its connection, and its commands. */
export class QuorumServer {
  readonly wakeups: Wakeups;
  readonly plain: PlainCommands;
  /** The holds that it may still let in, though nobody answered that it did. */
  readonly unanswered = new Unanswered();
  readonly #place: string;
  readonly #connection: RedisConnection;
  readonly #onReady: (session: Session) => void;
  readonly #mayCount: () => boolean;
  #address = '';
  #session: Session | undefined;

  /**
   * `place` says which of the servers it is. `onReady` is called for each connection that is ready, and where a
   * connection has to be checked again. No vote counts unless `mayCount`.
   */
  constructor(origin: RedisOrigin, place: string, onReady: (session: Session) => void, mayCount: () => boolean) {
    this.#place = place;
    this.#onReady = onReady;
    this.#mayCount = mayCount;
    this.wakeups = new Wakeups(origin, false);
    this.#connection = new RedisConnection(origin, BATCH, (address) => this.#ready(address), 'QuorumLockStore');
    this.plain = this.#connection.plain;
  }

  /** The name of the server in messages; no URL, which may hold a password. */
  get name(): string {
    return this.#address === '' ? this.#place : `${this.#place} (${this.#address})`;
  }

  /** The connection that was ready last. */
  get session(): Session | undefined {
    return this.#session;
  }

  /** The present time of the server's clock, in ms since 1970, as far as its replies show. */
  get clockMs(): number | undefined {
    return this.#session?.clock.now();
  }

  /** Runs a script; rejects where there is no reply within `limitMs`, a second where there is none. */
  async ask(command: Command, limitMs = LONGEST_COMMAND_MS): Promise<Answer> {
    const session = this.#session;
    const reply = await this.#connection.run(command, limitMs, (answer) => answer);
    // A connection that was made anew meanwhile may have led to another run.
    return { reply, counts: session !== undefined && session.counts && this.#mayCount() && session === this.#session };
  }

  /**
   * Asks to let a hold in. The server carries the command out until a time of its clock, and its replies have that
   * time. One that was refused though it came in time was judged by an old reading of the clock: it is sent once more.
   */
  async admit(hold: string, commandBy: (latest: number) => Command, limitMs: number): Promise<Answer> {
    const endsAt = performance.now() + limitMs;
    const ask = (): Promise<Answer> => this.unanswered.until(this.#askBy(commandBy, endsAt), hold);
    const answer = await ask();
    return isLate(answer.reply) && performance.now() < endsAt ? ask() : answer;
  }

  close(): void {
    this.#session = undefined;
    this.wakeups.close();
    this.#connection.close();
  }

  async #askBy(commandBy: (latest: number) => Command, endsAt: number): Promise<Answer> {
    const session = this.#session;
    const sentAt = performance.now();
    const limitMs = endsAt - sentAt;
    const answer = await this.ask(commandBy(session?.clock.latest(sentAt, limitMs) ?? 0), limitMs);
    const serverMs = serverTimeIn(answer.reply);
    if (serverMs === undefined) {
      return answer;
    }
    session?.clock.read(serverMs, sentAt);
    if (answer.counts && session?.countsAt(serverMs) === false) {
      this.#onReady(session);
      return { ...answer, counts: false };
    }
    return answer;
  }

  #ready(address: string): void {
    this.#address = address;
    this.wakeups.follow(address);
    // A server that restarted still has the clock of its machine.
    this.#session = new Session(this.#session?.clock ?? new ServerClock());
    this.#onReady(this.#session);
  }
}
