import { setImmediate } from 'node:timers/promises';
import { Random } from '../../support/random.js';
import { Timeline } from '../properties/timeline.js';
import { Host } from './host.js';
import type { Link } from './link.js';
import { Participant } from './participant.js';
import type { LoadLibrary } from './simulated-library.js';

/** One history: what its servers, processes and network are like. */
export interface Conditions {
  readonly servers: number;
  readonly processes: number;
  readonly longestLeaseMs: number;
  /** The longest that most messages take. */
  readonly latencyMs: number;
  /** For how long there are faults, in milliseconds. */
  readonly forMs: number;
  /** Between two faults, in milliseconds, on average. */
  readonly everyMs: number;
  /** Whether servers are replaced meanwhile. */
  readonly replaces: boolean;
}

/** For how long a link is cut at most, in longest leases. */
const LONGEST_CUT = 4;
/** For how long all that was reported holds at most, and a little longer. */
const settledMs = ({ longestLeaseMs }: Conditions): number => 2 * longestLeaseMs + 10_000;

/** Plays one history of a quorum, and checks that no two processes trust the lock at the same time. */
export class QuorumWorld {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly conditions: Conditions;
  readonly #load: LoadLibrary;
  readonly #hosts: Host[] = [];
  readonly #participants: Participant[] = [];
  /** Who trusts the lock, and until when. */
  readonly #trusted = new Map<Participant, number>();
  readonly #trace: string[] = [];
  readonly failures: string[] = [];
  /** Whether no message takes long any more. */
  isQuiet = false;
  #list: readonly Host[];
  /** A replacement that goes on: the list of before, and since when nobody uses it. */
  #before: { readonly list: readonly Host[]; endedAt: number } | undefined;
  #dividedUntil = 0;
  #fence = 0;
  #grants = 0;
  #made = 0;

  constructor(load: LoadLibrary, conditions: Conditions, seed: number) {
    this.#load = load;
    this.conditions = conditions;
    this.random = new Random(seed);
    this.#list = Array.from({ length: conditions.servers }, () => this.newHost());
  }

  get grants(): number {
    return this.#grants;
  }

  get trace(): readonly string[] {
    return this.#trace;
  }

  granted(participant: Participant, fence: number, deadline: number): void {
    this.#say(`${participant.name} is granted ${fence} until ${Math.round(deadline)}`);
    this.#grants++;
    if (fence <= this.#fence) {
      this.failures.push(`${participant.name} has the fence ${fence} after ${this.#fence}`);
    }
    this.#fence = Math.max(this.#fence, fence);
    this.#trusts(participant, deadline);
  }

  renewed(participant: Participant, deadline: number): void {
    this.#trusts(participant, deadline);
  }

  ended(participant: Participant): void {
    if (this.#trusted.delete(participant)) {
      this.#say(`${participant.name} ends`);
    }
  }

  /** Its list was refused. */
  refused(participant: Participant): void {
    this.#say(`${participant.name} is refused`);
    participant.crash();
  }

  /** Throws what went wrong. */
  async run(): Promise<void> {
    const { conditions, random, timeline } = this;
    for (let count = 0; count < conditions.processes; count++) {
      this.#start(this.#list);
    }
    const faultsFrom = 15_000;
    const next = (): void => {
      if (timeline.now < faultsFrom + conditions.forMs) {
        this.#fault();
        timeline.after(-Math.log(1 - random.next()) * conditions.everyMs, next);
      }
    };
    timeline.after(faultsFrom, next);
    await this.play(faultsFrom + conditions.forMs);
    if (this.failures.length > 0) {
      throw new Error([...this.failures, ...this.#trace.slice(-60)].join('\n'));
    }
  }

  /**
   * Lets everything come to rest, and checks that each server counts for each process again: with any minority away,
   * locks go on.
   */
  async settle(): Promise<void> {
    const { timeline, conditions } = this;
    this.isQuiet = true;
    this.#finishReplacement();
    this.#hosts.filter((host) => !host.isUp).forEach((host) => host.start());
    // The last link that was cut is whole again by then.
    const quiet = timeline.now + 30_000 + LONGEST_CUT * conditions.longestLeaseMs + settledMs(conditions);
    await this.play(quiet);
    for (const participant of this.#alive) {
      let without = Infinity;
      // An answer may take too long.
      for (let tries = 0; tries < 10 && without > 0; tries++) {
        const health = await this.#await(participant.store.health());
        without = health?.members?.filter(({ voting }) => voting !== true).length ?? Infinity;
      }
      if (without > 0) {
        this.failures.push(
          `${without} servers do not count for ${participant.name}: ${this.#list.map(({ remembers }) => remembers).join('; ')}`,
        );
      }
    }
    if (this.failures.length > 0) {
      throw new Error([...this.failures, ...this.#trace.slice(-60)].join('\n'));
    }
  }

  /** Lets time pass until then, unless something goes wrong before. */
  async play(end: number): Promise<void> {
    while (this.failures.length === 0 && this.timeline.runNext(end)) {
      await setImmediate();
    }
    this.timeline.now = Math.max(this.timeline.now, end);
  }

  /** The result of `work` within half a minute; undefined where there is none. */
  async #await<T>(work: Promise<T>): Promise<T | undefined> {
    const results: T[] = [];
    work.then(
      (result) => results.push(result),
      () => undefined,
    );
    for (const end = this.timeline.now + 30_000; results.length === 0 && this.timeline.runNext(end);) {
      await setImmediate();
    }
    return results[0];
  }

  #trusts(participant: Participant, deadline: number): void {
    const { now } = this.timeline;
    for (const [other, until] of this.#trusted) {
      if (other !== participant && until > now) {
        this.failures.push(`At ${Math.round(now)} ${participant.name} has the lock, and so has ${other.name} until ${Math.round(until)}`);
      }
    }
    this.#trusted.set(participant, deadline);
  }

  newHost(): Host {
    const host = new Host(this.timeline, `h${this.#hosts.length}`, Math.round(this.random.between(-400, 400)));
    this.#hosts.push(host);
    return host;
  }

  /** A process with that list, which does nothing by itself. */
  newParticipant(list: readonly Host[]): Participant {
    const participant = new Participant(this, `p${this.#made++}`, this.random.chance(0.5) ? list : list.toReversed(), this.#load);
    this.#say(`${participant.name} starts with ${list.map(({ name }) => name).join(' ')}`);
    this.#participants.push(participant);
    return participant;
  }

  #start(list: readonly Host[]): void {
    void this.newParticipant(list).run();
  }

  get #alive(): Participant[] {
    return this.#participants.filter(({ isAlive }) => isAlive);
  }

  #fault(): void {
    const { random } = this;
    if (this.#alive.length === 0) {
      return;
    }
    const kinds = ['break', 'pause', 'crash', 'restart', 'cut', 'freeze', ...(this.conditions.replaces ? ['replace', 'replace'] : [])];
    switch (random.pick(kinds)) {
      case 'break':
        random.pick(this.#alive)?.links.forEach((link) => random.chance(0.7) && link.break());
        break;
      case 'pause': {
        const ms = random.between(50, 2 * this.conditions.longestLeaseMs);
        const participant = random.pick(this.#alive);
        this.#say(`${participant.name} stands still for ${Math.round(ms)}`);
        participant.pause(ms);
        break;
      }
      case 'crash': {
        const participant = random.pick(this.#alive);
        this.#say(`${participant.name} crashes`);
        participant.crash();
        this.timeline.after(random.between(0, 3_000), () =>
          this.#start(this.#before && random.chance(0.3) ? this.#before.list : this.#list),
        );
        break;
      }
      case 'restart':
        this.#restart();
        break;
      case 'cut':
        this.#divide((link, ms) => link.refuse(ms), 'is cut off from');
        break;
      case 'freeze':
        this.#divide((link, ms) => link.freeze(ms), 'gets nothing through to');
        break;
      case 'replace':
        this.#replace();
        break;
    }
  }

  /** A minority of each list may have forgotten its votes at a time. */
  #restart(): void {
    const { random, timeline, conditions } = this;
    const host = random.pick(this.#list);
    const isSettled = ({ isUp, startedAt }: Host): boolean => isUp && timeline.now - startedAt > settledMs(conditions);
    const lists = [this.#list, ...(this.#before ? [this.#before.list] : [])];
    if (lists.every((list) => list.filter((each) => each === host || !isSettled(each)).length < list.length / 2)) {
      this.#say(`${host.name} loses its memory`);
      host.kill();
      timeline.after(random.between(10, 6_000), () => !host.isUp && host.start());
    }
  }

  /** While servers are replaced, one link at a time; else any of a process. */
  #divide(fault: (link: Link, ms: number) => void, what: string): void {
    const { random, timeline, conditions } = this;
    if (this.#before && timeline.now < this.#dividedUntil) {
      return;
    }
    const { name, links } = random.pick(this.#alive);
    if (links.length === 0) {
      return;
    }
    const ms = random.between(100, LONGEST_CUT * conditions.longestLeaseMs);
    const cut = this.#before ? [random.pick(links)] : links.filter(() => random.chance(0.5));
    this.#dividedUntil = Math.max(this.#dividedUntil, timeline.now + ms);
    this.#say(`${name} ${what} ${cut.map(({ host }) => host.name).join(' ')} for ${Math.round(ms)}`);
    cut.forEach((link) => fault(link, ms));
  }

  /** All processes are restarted one after the other with a list that has a new server in the place of another. */
  #replace(): void {
    const { random, timeline, conditions } = this;
    const before = this.#before;
    if (before && this.#alive.some(({ hosts }) => !sameHosts(hosts, this.#list))) {
      this.#restartOne();
      return;
    }
    if (before && before.endedAt === 0) {
      before.endedAt = timeline.now;
    }
    const isOver = !before || timeline.now - before.endedAt > settledMs(conditions);
    if (isOver && timeline.now >= this.#dividedUntil) {
      const host = this.newHost();
      const at = random.whole(0, this.#list.length - 1);
      this.#before = { list: this.#list, endedAt: 0 };
      this.#say(`${host.name} replaces ${this.#list[at]?.name}`);
      this.#list = this.#list.with(at, host);
    }
  }

  #restartOne(): void {
    const old = this.random.pick(this.#alive.filter(({ hosts }) => !sameHosts(hosts, this.#list)));
    this.#say(`${old.name} ends for the new list`);
    old.crash();
    this.#start(this.#list);
  }

  #finishReplacement(): void {
    this.#before = undefined;
    while (this.#alive.some(({ hosts }) => !sameHosts(hosts, this.#list))) {
      this.#restartOne();
    }
  }

  #say(what: string): void {
    this.#trace.push(`${Math.round(this.timeline.now)} ${what}`);
  }
}

function sameHosts(one: readonly Host[], other: readonly Host[]): boolean {
  return one.every((host) => other.includes(host));
}
