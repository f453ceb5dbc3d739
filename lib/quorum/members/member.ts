import { LockConfigurationError, LockStoreError, type LockError } from '../../core/words/errors.js';
import type { Argument } from '../../redis/scripts/script.js';
import { serverWarnings } from '../../redis/server-check.js';
import { evictsBy, valueOf } from '../../redis/server-info.js';
import type { QuorumCommands } from '../votes/quorum-commands.js';
import type { QuorumServer } from './quorum-server.js';
import { notCounted, warningOf } from './member-messages.js';
import { recentMs } from './report-times.js';
import type { Session } from './session.js';
import { readStanding, type Standing, type Verdict } from './standing.js';

/**
 * How often a server is checked, in milliseconds. `soon`: its votes do not count yet. `refused`: it refuses in a way
 * that no retry mends. `seldom`: its votes count; this is the longest time between two checks.
 */
const CHECK_MS = { soon: 250, refused: 1_000, seldom: 15_000 } as const;

/**
 * Whether a server's votes count from now on. If so, its next fence is above `least`. An answer after `endsAt`, by the
 * monotonic clock, changes nothing.
 */
export interface Count {
  readonly counts: '' | 'again' | 'first';
  readonly least: number;
  readonly endsAt: number;
}

const NO_COUNT: Count = { counts: '', least: 0, endsAt: 0 };

/** The role of a process in its quorum. */
export interface Participant {
  readonly longestLeaseMs: number;
  /** Whether it only looks: the other processes are not told of it, and it changes nothing. */
  readonly readOnly: boolean;
  readonly warn: (message: string) => void;
}

/** The part of its quorum that a member needs. */
export interface Members extends Participant {
  /** The run of a member became known. */
  found(member: Member): void;
  /** A member answered. The list is checked before its next vote counts. */
  answered(): void;
  /** A check of a member is over. */
  checked(): void;
  /** The report for every server: names, each with for how many milliseconds it holds. */
  report(): readonly Argument[];
  /** Why none of the votes counts, whatever the servers say; '' where nothing is known to be wrong. */
  problem(): string;
  /** Whether the votes of a member count; undefined where it has not answered. */
  verdict(member: Member): Verdict | undefined;
}

/**
 * A server as a member of a quorum: whether its votes count. A server that restarted without its data may have
 * forgotten votes, so its votes count only when the longest lease has passed since: the delayed restart of Redlock
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
 *
 * Where the server itself remembers that this very run counted before, its votes count as soon as it is known that no
 * other server counts in its place. They count at once for a process that heard of the run not long ago, whose reports
 * have held since. Each new connection is checked, and a connection that stays is checked from time to time.
 */
export class Member {
  readonly server: QuorumServer;
  readonly #commands: QuorumCommands;
  readonly #members: Members;
  #checking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** The run that counted last, as far as this process knows, and when it was heard of. */
  #counted: { readonly run: string; readonly at: number; readonly serverMs: number } | undefined;
  /** Since when it has not answered; undefined where it answers. */
  #silentSince: number | undefined = performance.now();
  /** Whether the server may evict votes, as it said last. */
  #evicts: boolean | undefined;
  /** Why the last check failed. */
  #failure: LockError | undefined;

  constructor(server: QuorumServer, commands: QuorumCommands, members: Members) {
    this.server = server;
    this.#commands = commands;
    this.#members = members;
  }

  /** The id of the run at the other end, where it is known. */
  get run(): string | undefined {
    return this.server.session?.run;
  }

  /** Whether its votes count. Where it was not heard of for long, another may have come in its place. */
  get counts(): boolean {
    return this.server.session?.counts === true && this.standing !== undefined;
  }

  /**
   * Whether the server votes: its votes count, and it did not refuse its last check. It refuses a check where the user
   * lacks a right by now.
   */
  get votes(): boolean {
    return (this.counts || this.#mayCount) && this.#members.problem() === '' && this.#refusal === undefined;
  }

  get evicts(): boolean | undefined {
    return this.#evicts;
  }

  /** The facts that the server knows of its part in the quorum; undefined where it has not answered for long. */
  get standing(): Standing | undefined {
    const standing = this.server.session?.standing;
    return standing && this.#isRecent(standing.at, performance.now()) ? standing : undefined;
  }

  /** For how long it has not answered, in milliseconds; 0 where it answers. */
  get silentMs(): number {
    return this.#silentSince === undefined ? 0 : performance.now() - this.#silentSince;
  }

  /** Connects, and checks the server; resolves with the warnings about its settings. */
  async open(): Promise<string[]> {
    const warnings = serverWarnings(await this.server.plain.info());
    await this.#checking;
    if (this.#failure || !this.standing) {
      // Without either, the connection was made anew meanwhile.
      throw this.#failure ?? new LockStoreError('Redis was not asked yet whether it restarted.', '', { unknown: false });
    }
    return warnings;
  }

  /** Checks the server: it has a new connection, or the last check was long ago. */
  check(session: Session): void {
    this.#failure = undefined;
    this.#checking = this.#judge(session).then(
      () => this.#checked(session),
      (error: LockError) => this.#checked(session, error),
    );
  }

  /** Why its votes do not count. */
  notCounted(): LockStoreError {
    const problem = this.#members.problem();
    return problem === '' ? notCounted(this.#members.verdict(this), this.#failure) : new LockStoreError(problem, '', { unknown: true });
  }

  /**
   * Reports to the server, and learns what it knows. Answers whether the server replied. The server stores that its
   * votes count before it votes: every process that finds a vote also finds that it counts.
   */
  async report({ counts, least, endsAt }: Count = NO_COUNT): Promise<boolean> {
    const { session } = this.server;
    const run = session?.run;
    const sentAt = performance.now();
    if (!session || run === undefined) {
      this.#silentSince ??= sentAt;
      return false;
    }
    const { readOnly } = this.#members;
    const command = this.#commands.report({
      run,
      restarted: this.#counted !== undefined && this.#counted.run !== run,
      // Otherwise other processes would have to find out anew where a server was emptied while it ran.
      counts: this.counts && !readOnly ? 'again' : counts,
      least,
      said: this.#members.report(),
    });
    const { reply } = await this.server.ask(command).catch((error: LockError) => {
      this.#silentSince ??= sentAt;
      throw error;
    });
    const standing = readStanding(reply);
    if (session !== this.server.session) {
      return false;
    }
    session.clock.read(standing.serverMs, sentAt);
    const mayCount = readOnly || (counts !== '' && standing.at < endsAt) || this.#wasCounted(run, standing);
    this.#silentSince = undefined;
    session.answered(standing, standing.counts && mayCount, standing.serverMs + recentMs(this.#members.longestLeaseMs));
    this.#counted = session.counts ? { run, at: standing.at, serverMs: standing.serverMs } : this.#counted;
    this.#members.answered();
    return true;
  }

  /** Reports soon; the report has the knowledge about the other servers by then. */
  reportSoon(): void {
    const { session } = this.server;
    if (session && this.counts) {
      this.#checkIn(session, CHECK_MS.soon);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.server.close();
  }

  /** For a process that only looks: whether the votes count for the others, or will soon. */
  get #mayCount(): boolean {
    const verdict = this.#members.readOnly ? this.#members.verdict(this) : undefined;
    return verdict !== undefined && (verdict.counts !== undefined || verdict.why === 'new');
  }

  /**
   * Whether the run counted not long before it answered so. The server's clock is asked as well, since the clock of a
   * machine that sleeps stands still.
   */
  #wasCounted(run: string, { at, serverMs }: { readonly at: number; readonly serverMs: number }): boolean {
    const before = this.#counted;
    return before?.run === run && this.#isRecent(before.at, at) && this.#isRecent(before.serverMs, serverMs);
  }

  /** Whether a fact that was heard at `at` still holds. */
  #isRecent(at: number, now: number): boolean {
    return now - at < recentMs(this.#members.longestLeaseMs);
  }

  /** Why the last check failed, where no retry mends that. */
  get #refusal(): LockConfigurationError | undefined {
    return this.#failure instanceof LockConfigurationError ? this.#failure : undefined;
  }

  async #judge(session: Session): Promise<void> {
    if (session.run === undefined) {
      const info = await this.server.plain.info();
      session.foundRun(runOf(info));
      this.#evicts = evictsBy(info);
      if (session === this.server.session) {
        this.#members.found(this);
      }
    }
    if (session === this.server.session) {
      await this.report();
      this.#members.checked();
    }
  }

  #checked(session: Session, failure?: LockError): void {
    if (session === this.server.session) {
      this.#failure = failure;
      if (failure) {
        this.#silentSince ??= performance.now();
      }
      this.#warnOf(session);
      const seldomMs = Math.min(Math.max(CHECK_MS.soon, this.#members.longestLeaseMs / 4), CHECK_MS.seldom);
      const isFine = this.counts && this.#members.problem() === '' && (!failure || this.#refusal !== undefined);
      this.#checkIn(session, !isFine ? CHECK_MS.soon : failure ? CHECK_MS.refused : seldomMs);
    }
  }

  #checkIn(session: Session, ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (session === this.server.session) {
        this.check(session);
      }
    }, ms).unref();
  }

  /** Warns when two checks in a row find the same reason. After one, another process may be about to change it. */
  #warnOf(session: Session): void {
    const verdict = this.counts ? undefined : this.#members.verdict(this);
    const { detail } = this.#refusal ?? {};
    const times = session.found(detail ?? (verdict?.counts === undefined ? verdict?.why : undefined) ?? '');
    const warning = detail ?? (verdict && warningOf(verdict));
    if (warning !== undefined && times === 2) {
      this.#members.warn(`${this.server.name} of the quorum: ${warning}`);
    }
  }
}

/**
 * The id of the run that the reply to INFO is about. A run is one life of a server's process: it ends with everything
 * that is not on a disk. Throws `LockConfigurationError` where the user may not read the id.
 */
function runOf(info: string): string {
  const id = valueOf(info, 'run_id');
  if (id === undefined) {
    throw new LockConfigurationError(
      'Redis refused INFO, by which a server is recognised that restarted without its data. Grant +info, as docs/stores/redis.md says under "The smallest ACL".',
    );
  }
  return id;
}
