import { setTimeout as sleep } from 'node:timers/promises';
import { asLockError } from '../../../core/leases/background-releases.js';
import { LockConfigurationError, type LockStoreError } from '../../../core/words/errors.js';
import type { StoreHealth } from '../../../core/words/lock-health.js';
import type { Argument } from '../../redis/scripts/script.js';
import { healthOf } from './health.js';
import { Member, type Members } from './member.js';
import { patiently } from './patience.js';
import type { QuorumCommands } from '../votes/quorum-commands.js';
import type { QuorumServer } from './quorum-server.js';
import type { Session } from './session.js';
import { longestOf, numbersReported, verdictOf, type Standing, type Verdict } from './standing.js';
import type { Failure } from '../too-few.js';
import { majorityAmong } from '../votes/verdicts.js';
import { MOST_AHEAD_US } from '../votes/vote-rules.js';

/** For how long a start waits for the votes of servers that may be new, and how often it checks, in milliseconds. */
const START_MS = 7_000;
const PAUSE_MS = 20;
/** For how long a report holds at least, in milliseconds: the next ones may be late. */
const REPORT_MS = 2_000;

/** What a process is to its quorum. */
export interface Participant {
  readonly longestLeaseMs: number;
  /** Whether it only looks: the others are not told of it, and nothing changes by it. */
  readonly readOnly: boolean;
  readonly warn: (message: string) => void;
}

/** Which servers of a quorum have votes that count, and what processes report about them to each other by way of the servers. */
export class Membership {
  readonly #members: readonly Member[];
  readonly #longestLeaseMs: number;
  readonly #readOnly: boolean;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  #considering: Promise<void> | undefined;
  /** Why none of the votes counts: what is wrong with the list, as far as is known; '' where nothing is. */
  #problem = '';
  /** Whether the other processes are told of this one: it has found nothing wrong with its list at a majority. */
  #isAdmitted = false;
  /** Whether the list was checked at the start, which fails where something is wrong with it. */
  #hasStarted = false;

  constructor(servers: readonly QuorumServer[], commands: QuorumCommands, { longestLeaseMs, readOnly, warn }: Participant) {
    this.#longestLeaseMs = longestLeaseMs;
    this.#readOnly = readOnly;
    this.#warn = warn;
    const members: Members = {
      longestLeaseMs,
      readOnly,
      found: (member) => this.#members.forEach((other) => other !== member && other.reportSoon()),
      answered: () => this.#checkList(),
      checked: () => void this.#consider(),
      isAdmitted: () => this.#isAdmitted || readOnly,
      report: () => this.#report(),
      problem: () => this.#problem,
      verdict: (member) => this.#verdict(member),
      warn,
    };
    this.#members = servers.map((server) => new Member(server, commands, members));
  }

  /** Whether votes may count: nothing is known to be wrong with the list. */
  get isSound(): boolean {
    return this.#problem === '';
  }

  /** The server at that place of the list has a new connection. */
  connected(place: number, session: Session): void {
    this.#members[place]?.connected(session);
  }

  /** Why the server's votes do not count. */
  notCounted(server: QuorumServer): LockStoreError {
    return (this.#members.find((member) => member.server === server) as Member).notCounted();
  }

  /**
   * Connects, and checks all servers; why each is of no use, where it is. Waits for the votes of servers that are new. Throws
   * `LockConfigurationError` where the list is not one of independent servers that all processes have.
   */
  async open(): Promise<readonly (Failure | undefined)[]> {
    const failures = await Promise.all(this.#members.map((member) => this.#openOne(member)));
    // What goes on already began before the last answer.
    await this.#considering;
    await this.#consider();
    if (!this.isSound) {
      throw new LockConfigurationError(this.#problem);
    }
    this.#hasStarted = true;
    if (!this.#readOnly) {
      await this.#awaitVotes();
    }
    return failures;
  }

  /** Which servers answer, and which have votes that count. */
  health(): Promise<StoreHealth> {
    return healthOf(this.#members);
  }

  close(): void {
    this.#members.forEach((member) => member.close());
  }

  async #openOne(member: Member): Promise<Failure | undefined> {
    const { server } = member;
    try {
      for (const warning of await patiently(() => member.open())) {
        this.#warn(`${server.name} of the quorum: ${warning}`);
      }
      return undefined;
    } catch (error) {
      return { server, error: asLockError(error, '') };
    }
  }

  /** At the start, and later: a server that was away may come back as one that does not fit the others. */
  #checkList(): void {
    this.#problem = this.#twice() ?? this.#otherLength() ?? '';
  }

  /** One server by two names would make a majority of fewer servers. */
  #twice(): string | undefined {
    const runs = new Map<string, QuorumServer>();
    for (const { server, run } of this.#members) {
      const other = run === undefined ? undefined : runs.get(run);
      if (other) {
        return `QuorumLockStore: ${other.name} and ${server.name} are the same. Pass independent servers.`;
      }
      runs.set(run ?? server.name, server);
    }
    return undefined;
  }

  /** A majority of more servers, or of fewer, need not have one in common with a majority of these. */
  #otherLength(): string | undefined {
    const { length } = this.#members;
    const other = numbersReported(this.#standings(), 'servers').find((number) => number !== length);
    return other === undefined
      ? undefined
      : `QuorumLockStore was given ${length} servers, and other processes use some of them in a quorum of ${other}. Give all processes the same ` +
          `list. To change how many there are, end all processes that have the other list, and wait for ${Math.max(this.#longestMs, REPORT_MS)} ms.`;
  }

  /** Another process may just be finding out that the quorum is new, or that it is not. */
  async #awaitVotes(): Promise<void> {
    const startedAt = performance.now();
    const majority = majorityAmong(this.#members.length);
    const waits = (): boolean => {
      const there = this.#members.filter(({ standing }) => standing !== undefined);
      const verdicts = there.map((member) => (member.counts ? undefined : this.#verdict(member)));
      return there.length >= majority && verdicts.some((verdict) => verdict && (verdict.counts || verdict.why === 'new'));
    };
    while (waits() && performance.now() - startedAt < START_MS) {
      await sleep(PAUSE_MS);
    }
  }

  #standings(): (Standing | undefined)[] {
    return this.#members.map(({ standing }) => standing);
  }

  #verdict({ standing }: Member): Verdict | undefined {
    const runs = this.#members.flatMap((member) => (member.standing && member.run) ?? []);
    const [standings, longestLeaseMs, now] = [this.#standings(), this.#longestLeaseMs, performance.now()];
    return standing && verdictOf(standing, { standings, runs: new Set(runs), longestLeaseMs, now });
  }

  /** The longest lease of any process, as far as is known. */
  get #longestMs(): number {
    return longestOf(this.#standings(), this.#longestLeaseMs);
  }

  /**
   * The servers of this process, for as long as a lease may last that they have voted for, and its settings. Nothing before the list was
   * checked: a process that is refused must not be in the way of those that have the right one.
   */
  #report(): readonly Argument[] {
    if (!this.#isAdmitted) {
      return [];
    }
    const holdsMs = Math.max(this.#longestLeaseMs, REPORT_MS);
    const now = performance.now();
    const runs = this.#members.flatMap(({ run, standing }) =>
      run !== undefined && standing ? [`run:${run}`, Math.ceil(holdsMs - (now - standing.at))] : [],
    );
    return [`servers:${this.#members.length}`, holdsMs, `lease:${this.#longestLeaseMs}`, 2 * holdsMs, ...runs];
  }

  #consider(): Promise<void> {
    return (this.#considering ??= this.#admit().finally(() => (this.#considering = undefined)));
  }

  async #admit(): Promise<void> {
    if (!this.isSound && this.#hasStarted) {
      this.#warnOnce(`${this.#problem} No votes count until then.`);
    }
    if (this.#readOnly) {
      return;
    }
    const there = this.#standings().filter((standing) => standing !== undefined);
    if (!this.#isAdmitted && this.isSound && there.length >= majorityAmong(this.#members.length)) {
      this.#isAdmitted = true;
      // Where another list is reported at the same time, each server tells whoever comes second. No vote counts before.
      await this.#reportToAll();
    }
    if (this.#isAdmitted) {
      await this.#count();
    }
  }

  async #reportToAll(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.report().catch(() => undefined)));
  }

  /** Has the votes count of those servers that have a right to, with fences above all that the others know. */
  async #count(): Promise<void> {
    this.#compareLeases();
    const isReady = (member: Member): boolean => !member.counts && this.#verdict(member)?.counts !== undefined;
    if (!this.isSound || !this.#members.some(isReady)) {
      return;
    }
    // They are asked again: what was reported may be over, and each may have granted since.
    await this.#reportToAll();
    const known = this.#standings().map((standing) => standing?.fence ?? 0);
    // What is granted may be so far ahead of the servers' clocks.
    const least = Math.max(...known, Math.floor((clockOf(this.#members.map(({ server }) => server)) ?? 0) * 1_000) + MOST_AHEAD_US);
    const counted = this.#members.map((member) => (member.counts ? undefined : this.#verdict(member)?.counts));
    await Promise.all(this.#members.map((member, at) => member.report(counted[at] ?? '', least).catch(() => undefined)));
  }

  #compareLeases(): void {
    const longest = this.#longestMs;
    if (longest > this.#longestLeaseMs) {
      this.#warnOnce(
        `Another process uses this quorum with longestLease ${longest} ms, and this one has ${this.#longestLeaseMs} ms. Set the same in all; ` +
          'until then a server that restarted is left out for the longer of them.',
      );
    }
  }

  #warnOnce(message: string): void {
    if (!this.#warned.has(message)) {
      this.#warned.add(message);
      this.#warn(message);
    }
  }
}

/**
 * What the servers' clocks read, in ms since 1970, as far as their replies show: no later than those of a majority, so that a minority
 * of clocks that are ahead has no effect.
 */
export function clockOf(servers: readonly QuorumServer[]): number | undefined {
  const clocks = servers.flatMap(({ clockMs }) => clockMs ?? []).toSorted((first, second) => second - first);
  return clocks[Math.min(majorityAmong(servers.length), clocks.length) - 1];
}
