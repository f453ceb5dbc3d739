import { setTimeout as sleep } from 'node:timers/promises';
import { asLockError, LockConfigurationError, type LockStoreError } from '../../core/words/errors.js';
import type { StoreHealth } from '../../core/words/lock-health.js';
import { OncePerKey } from '../../core/words/once-per-key.js';
import { answeredOf, membersOf, worstOf } from '../../kit/probe.js';
import type { Argument } from '../../redis/scripts/script.js';
import { listProblem } from './list-problem.js';
import { Member, type Members, type Participant } from './member.js';
import { isSilence, patiently } from './patience.js';
import { holdMs } from './report-times.js';
import type { QuorumCommands } from '../votes/quorum-commands.js';
import type { QuorumServer } from './quorum-server.js';
import type { Session } from './session.js';
import { longestOf, verdictOf, type Standing, type Verdict } from './standing.js';
import type { Failure } from '../too-few.js';
import { majorityAmong } from '../votes/verdicts.js';
import { MOST_AHEAD_US } from '../votes/vote-rules.js';

/** For how long a start waits for the votes of servers that may be new, and how often it checks, in milliseconds. */
const START_MS = 7_000;
const PAUSE_MS = 20;
/**
 * For how long a process waits for servers that have not answered before it counts the votes of a majority, in
 * milliseconds: those servers may know of a process with another list.
 */
const OTHERS_MS = 2_000;
/** For how long a process may stand still, in milliseconds, for that time to count: a report takes as long. */
const MOST_STILL_MS = 1_500;
/** For how long a report is trusted that a server is about to count, and how soon it has to count, in milliseconds. */
const WANT_MS = { holds: 5_000, within: 2_000 } as const;

/**
 * Decides which servers of a quorum have votes that count. Processes report about these servers to each other by way of
 * the servers.
 *
 * | state of this process | meaning | next |
 * |---|---|---|
 * | alone | fewer servers than a majority have answered: no votes count, and it reports nothing | admitted |
 * | admitted | a majority finds the list right: it is reported; servers that are away are waited for | claiming |
 * | claiming | it reports which servers it wants to count, and reads if a process forbids that | counting; admitted |
 * | counting | these servers' votes count until one restarts or the list has a problem | claiming; stopped |
 * | stopped | the list is wrong: no votes count until it is mended | counting |
 */
export class Membership {
  readonly #members: readonly Member[];
  readonly #majority: number;
  readonly #longestLeaseMs: number;
  readonly #readOnly: boolean;
  readonly #warn: (message: string) => void;
  readonly #warned = new OncePerKey();
  #considering: Promise<void> | undefined;
  /** `wants`: servers that shall count. `counts`: those that count once the report in flight is answered. */
  #claim: { readonly wants: ReadonlySet<Member>; readonly counts: ReadonlySet<Member> } | undefined;
  /** Why none of the votes counts: the problem of the list, as far as it is known; '' where there is none. */
  #problem = '';
  /**
   * Whether this process is reported to the other processes: it has found nothing wrong with its list at a majority.
   */
  #isAdmitted = false;
  /** Since when a majority has answered, and this process has run. */
  #majorityAt: number | undefined;
  /** When this process is known to have run. */
  #ranAt = -Infinity;
  /** The servers that refused the connection at the start. They are not waited for. */
  readonly #refusing = new Set<Member>();
  /** Whether the list was checked at the start, which fails where something is wrong with it. */
  #hasStarted = false;

  constructor(servers: readonly QuorumServer[], commands: QuorumCommands, participant: Participant) {
    this.#longestLeaseMs = participant.longestLeaseMs;
    this.#readOnly = participant.readOnly;
    this.#warn = participant.warn;
    const members: Members = {
      ...participant,
      found: (member) => this.#members.forEach((other) => other !== member && other.reportSoon()),
      answered: () => {
        // Later on as well: a server that was away may come back as one that does not fit the others.
        this.#problem = listProblem(this.#members, holdMs(this.#longestMs));
      },
      checked: () => void this.#consider(),
      report: () => this.#report(),
      problem: () => this.#problem,
      verdict: (member) => this.#verdict(member),
    };
    this.#majority = majorityAmong(servers.length);
    this.#members = servers.map((server) => new Member(server, commands, members));
  }

  /** Whether votes of the server at that place of the list may count. */
  mayCount(place: number): boolean {
    return this.#isSound && this.#members[place]?.counts === true;
  }

  /** The server at that place of the list has a new connection. */
  connected(place: number, session: Session): void {
    const member = this.#members[place] as Member;
    this.#refusing.delete(member);
    member.check(session);
  }

  /** Why the server's votes do not count. */
  notCounted(server: QuorumServer): LockStoreError {
    return (this.#members.find((member) => member.server === server) as Member).notCounted();
  }

  /**
   * Connects, and checks all servers; resolves with the failure of each server that is of no use. Waits for the votes
   * of servers that are new. Throws `LockConfigurationError` where the list does not have independent servers, or
   * differs from that of other processes.
   */
  async open(): Promise<readonly (Failure | undefined)[]> {
    const failures = await Promise.all(this.#members.map((member) => this.#openOne(member)));
    // A check that is running began before the last answer.
    await this.#considering;
    await this.#consider();
    if (!this.#isSound) {
      throw new LockConfigurationError(this.#problem);
    }
    this.#hasStarted = true;
    if (!this.#readOnly) {
      await this.#awaitVotes();
    }
    return failures;
  }

  /** Asks each server by itself. A server that does not answer has no vote; core decides how many may be missing. */
  async health(): Promise<StoreHealth> {
    const answers = (await Promise.all(this.#members.map(({ server }) => server.plain.probe()))).flat();
    const evicts = this.#members.flatMap((member) => member.evicts ?? []);
    return {
      ...worstOf(answeredOf(answers)),
      members: membersOf(
        answers,
        this.#members.map(({ votes }) => votes),
      ),
      majority: this.#majority,
      evicts: evicts.length > 0 ? evicts.includes(true) : undefined,
    };
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
      if (!isSilence(error)) {
        this.#refusing.add(member);
      }
      return { server, error: asLockError(error, '') };
    }
  }

  /** Another process may just be finding out that the quorum is new, or that it is not. */
  async #awaitVotes(): Promise<void> {
    const startedAt = performance.now();
    const waits = (): boolean => {
      const there = this.#members.filter(({ standing }) => standing !== undefined);
      const verdicts = there.map((member) => (member.counts ? undefined : this.#verdict(member)));
      return there.length >= this.#majority && verdicts.some((verdict) => verdict && (verdict.counts || verdict.why === 'new'));
    };
    while (waits() && performance.now() - startedAt < START_MS) {
      await sleep(PAUSE_MS);
    }
  }

  #standings(): (Standing | undefined)[] {
    return this.#members.map(({ standing }) => standing);
  }

  /**
   * Whether the votes of a member count beside the members that count already and those `wanted`, which are to begin
   * with it; undefined where the member has not answered.
   */
  #verdict({ standing, run }: Member, wanted: readonly Member[] = []): Verdict | undefined {
    const counting = new Set([...this.#members.filter(({ counts }) => counts), ...wanted].flatMap((member) => member.run ?? []));
    const [standings, longestLeaseMs, now] = [this.#standings(), this.#longestLeaseMs, performance.now()];
    // Nothing is known of the time in which this process stood still.
    const ranMs = Math.max(1, now - (this.#majorityAt ?? now));
    const silentMs = this.#members.map((member) => Math.min(member.silentMs, ranMs));
    const overview = { standings, silentMs, counting, longestLeaseMs, holdMs: holdMs(this.#longestMs), now };
    return standing && run !== undefined ? verdictOf(standing, { ...overview, run }) : undefined;
  }

  /** Nothing is known to be wrong with the list. */
  get #isSound(): boolean {
    return this.#problem === '';
  }

  /** The longest lease of any process, as far as is known. */
  get #longestMs(): number {
    return longestOf(this.#standings(), this.#longestLeaseMs);
  }

  /**
   * The servers of this process, for as long as a lease may last that they have voted for, and its settings. Reports
   * nothing before the list was checked: a process that is refused must not be in the way of processes that have the
   * right list.
   */
  #report(): readonly Argument[] {
    if (!this.#isAdmitted) {
      return [];
    }
    const holdsMs = holdMs(this.#longestLeaseMs);
    const now = performance.now();
    const own = this.#members.flatMap((member) => {
      const { run, standing, counts } = member;
      if (run === undefined || !standing) {
        return [];
      }
      const claim = counts || this.#claim?.counts.has(member) ? [`vote:${run}`, Math.ceil(holdsMs - (now - standing.at))] : [];
      return [...claim, ...(this.#claim?.wants.has(member) ? [`want:${run}`, WANT_MS.holds] : [])];
    });
    return [`servers:${this.#members.length}`, holdsMs, `lease:${this.#longestLeaseMs}`, 2 * holdsMs, ...own];
  }

  #consider(): Promise<void> {
    return (this.#considering ??= this.#admit().finally(() => (this.#considering = undefined)));
  }

  async #admit(): Promise<void> {
    if (!this.#isSound && this.#hasStarted) {
      this.#warnOnce(`${this.#problem} No votes count until then.`);
    }
    const there = this.#members.filter(({ standing }) => standing !== undefined);
    const waitedMs = this.#waitedMs();
    this.#majorityAt = there.length < this.#majority ? undefined : (this.#majorityAt ?? performance.now());
    if (this.#readOnly || (!this.#isAdmitted && !this.#isSound) || this.#majorityAt === undefined) {
      return;
    }
    this.#isAdmitted = true;
    this.#compareLeases();
    const others = this.#members.filter((member) => !there.includes(member) && !this.#refusing.has(member));
    if (others.length === 0 || waitedMs >= OTHERS_MS) {
      await this.#count();
    }
  }

  /**
   * For how long a majority has answered while this process ran, in milliseconds: other servers may have answered while
   * it stood still.
   */
  #waitedMs(): number {
    const now = performance.now();
    if (now - this.#ranAt > MOST_STILL_MS) {
      this.#majorityAt &&= now;
    }
    this.#ranAt = now;
    return now - (this.#majorityAt ?? now);
  }

  /**
   * Lets the votes count of those servers that have a right to, with fences above all that the other servers know.
   *
   * First it reports that it wants these servers to count. Where two processes want servers that must not both count,
   * each server tells the process that comes second of the other one: the answers to the report show whether there is a
   * right. Where a server does not answer that did a moment ago, it begins anew.
   */
  async #count(): Promise<void> {
    const wants = new Set<Member>();
    for (const member of this.#members) {
      if (!member.counts && this.#verdict(member, [...wants])?.counts) {
        wants.add(member);
      }
    }
    if (!this.#isSound || wants.size === 0) {
      return;
    }
    const endsAt = performance.now() + WANT_MS.within;
    this.#claim = { wants, counts: new Set() };
    const answered = await Promise.all(this.#members.map((member) => member.report().catch(() => false)));
    const waitedMs = this.#waitedMs();
    const isAway = (member: Member): boolean => this.#refusing.has(member) || Math.min(member.silentMs, waitedMs) >= OTHERS_MS;
    const rights = this.#members.map((member) => (wants.has(member) && !member.counts ? this.#verdict(member)?.counts : undefined));
    if (this.#isSound && this.#members.every((member, at) => answered[at] || isAway(member))) {
      const known = this.#standings().map((standing) => standing?.fence ?? 0);
      // Fences that are granted may be ahead of the servers' clocks by `MOST_AHEAD_US`.
      const least = Math.max(...known, Math.floor((clockOf(this.#members.map(({ server }) => server)) ?? 0) * 1_000) + MOST_AHEAD_US);
      this.#claim = { wants, counts: new Set(this.#members.filter((_, at) => rights[at])) };
      // A server that remembers that it counts has not lost its counter.
      const leastOf = ({ standing }: Member): number => (standing?.counts ? 0 : least);
      await Promise.all(
        this.#members.map((member, at) =>
          member.report({ counts: rights[at] ?? '', least: leastOf(member), endsAt }).catch(() => member.reportSoon()),
        ),
      );
    }
    this.#claim = undefined;
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
    if (this.#warned.isNew(message)) {
      this.#warn(message);
    }
  }
}

/**
 * The time of the servers' clocks, in ms since 1970, as far as their replies show: no later than the clocks of a
 * majority, so that a minority of clocks that are ahead has no effect.
 */
export function clockOf(servers: readonly QuorumServer[]): number | undefined {
  const clocks = servers.flatMap(({ clockMs }) => clockMs ?? []).toSorted((first, second) => second - first);
  return clocks[Math.min(majorityAmong(servers.length), clocks.length) - 1];
}
