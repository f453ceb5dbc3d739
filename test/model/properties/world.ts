import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setImmediate } from 'node:timers/promises';
import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event.js';
import type { LockTable } from '../../../lib/kit/lock-table.js';
import { CLAIM_MS, QUEUE_MS } from '../../../lib/kit/protocol.js';
import { Random } from '../../support/random.js';
import { Faults } from './faults.js';
import { Leases } from './leases.js';
import type { Library, LoadLibrary } from './library.js';
import { Candidate } from './candidate.js';
import { featuresOf, type Meetings } from './features.js';
import { LockedCall, type Ticket } from './locked-call.js';
import { NOWHERE, playSteps, type Place } from './play-steps.js';
import { Process, surroundingsOf } from './process.js';
import { watchRejections } from '../../support/watch-rejections.js';
import { FOR_EVER_MS, KEYS, LONGEST_TTL_MS, MOST_PROCESSES, type Action, type Call, type Scenario, type TicketOf } from './scenario.js';
import { Server } from './server.js';
import { Timeline } from './timeline.js';

/**
 * How long it takes until nothing is left of a process that went: its lease, a claim window, and the pause before a
 * renewal or release.
 */
const REST_MS = LONGEST_TTL_MS + CLAIM_MS + 1_500;
/** The most that core waits for a command: the longest limit, what it waits beyond that, and its own grain. */
const LONGEST_COMMAND_MS = 1_000 + 100 + 100;

/** How long what a process has sent is on its way at most where no fault happens, in milliseconds. */
const LAST_MS = 10;

/** A place for one process at a time, with its copy of the library. */
export interface Slot {
  readonly library: Library;
  running: Process | undefined;
  random: Random;
}

/** Makes as many as a scenario has processes. */
export function makeSlots(load: LoadLibrary): Slot[] {
  return Array.from({ length: MOST_PROCESSES }, () => {
    const slot: { -readonly [K in keyof Slot]: Slot[K] } = { library: {} as Library, running: undefined, random: new Random(0) };
    slot.library = load(
      surroundingsOf(
        () => slot.running as Process,
        () => slot.random.next(),
      ),
    );
    return slot;
  });
}

/** One run of a scenario. */
export class World {
  readonly timeline = new Timeline();
  readonly faults = new Faults();
  readonly leases = new Leases(this);
  /** The chance of networks. */
  readonly random: Random;
  readonly server: Server;
  readonly Table: typeof LockTable;
  /** Calls whose body runs. */
  readonly inside = new Set<LockedCall>();
  /** Calls whose body has ended, while their transaction keeps their locks. */
  readonly kept = new Set<LockedCall>();
  readonly #slots: readonly Slot[];
  readonly #processes: Process[] = [];
  readonly #calls = new Map<string, LockedCall>();
  readonly #pending = new Set<LockedCall>();
  /** The other work that goes on in processes. */
  readonly #followed = new Map<Promise<void>, Process>();
  readonly #ended: LockedCall[] = [];
  readonly #tickets: Ticket[] = [];
  readonly #fences = new Set<string>();
  #isHealed = false;
  #failure: string | undefined;

  constructor(
    slots: readonly Slot[],
    readonly scenario: Scenario,
    readonly trace?: string[],
    readonly meetings?: Meetings,
  ) {
    this.#slots = slots.slice(0, scenario.processes.length);
    this.random = new Random(scenario.seed - 1);
    this.Table = (slots[0] as Slot).library.LockTable;
    this.server = new Server(this);
    this.#slots.forEach((slot, index) => {
      slot.random = new Random(scenario.seed + index);
      this.#start(index);
    });
  }

  get now(): number {
    return this.timeline.now;
  }

  /** How long a command may take until core takes its outcome for unknown, in milliseconds. */
  get commandLimitMs(): number {
    return Math.min(this.scenario.commandTimeoutMs, LONGEST_COMMAND_MS);
  }

  /** From here on, every command and message arrives. */
  get isHealed(): boolean {
    return this.#isHealed;
  }

  /** Throws what went wrong. */
  async run(): Promise<void> {
    const unwatch = watchRejections((reason) => this.fail(`A rejection was unhandled: ${String(reason)}`));
    // Stacks take a third of the time, and nobody reads them here.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    subscribe(LOCK_CHANNEL, this.#listener);
    try {
      await this.#run();
    } finally {
      unsubscribe(LOCK_CHANNEL, this.#listener);
      Error.stackTraceLimit = stackTraceLimit;
      unwatch();
    }
  }

  async #run(): Promise<void> {
    let at = 0;
    for (const { afterMs, process, action } of this.scenario.actions) {
      at += afterMs;
      this.timeline.after(at, () => this.#act(process % this.#slots.length, action));
    }
    this.timeline.after(at + 1, () => undefined);
    await this.#until(() => this.now > at && this.#isQuiet);
    this.#isHealed = true;
    await this.#rest();
    for (const key of KEYS) {
      for (const { running } of this.#slots) {
        await (running?.isClosing ? undefined : this.#probe(running as Process, key));
      }
    }
    await this.#rest();
    for (const key of KEYS) {
      if (this.server.inspect(key)) {
        this.fail(`"${key}" is still locked, though everybody has left.`);
      }
    }
    this.#throw();
  }

  /** Listens to the events of calls that have a lock. */
  readonly #listener = (message: unknown): void => {
    const event = message as LockEvent;
    if (event.type === 'acquired') {
      this.leases.began(event.by, event.key, event.fence);
    }
  };

  note(text: () => string): void {
    this.trace?.push(`${this.now.toFixed(1)} ${text()}`);
  }

  fail(what: string): void {
    this.note(() => what);
    this.#failure ??= what;
  }

  /** Runs what may show a failure in the middle of something that cannot throw it. */
  attempt<R>(execute: () => R): { readonly result: R } | undefined {
    try {
      return { result: execute() };
    } catch (error) {
      this.fail(String(error));
      return undefined;
    }
  }

  /** A new name, or that of a candidate, which means its newest term. */
  name(call: LockedCall, name = `call-${this.#calls.size}`): string {
    this.#calls.set(name, call);
    return name;
  }

  callNamed(by: string): LockedCall | undefined {
    return this.#calls.get(nameIn(by));
  }

  call(process: Process, call: Call, place: Place): Promise<void> {
    return new LockedCall(process, call, place).run();
  }

  begins(call: LockedCall): void {
    this.#pending.add(call);
  }

  ends(call: LockedCall): void {
    this.#pending.delete(call);
    this.inside.delete(call);
    this.#ended.push(call);
    this.#extendHolders(call);
  }

  /** Something goes on that is in no call. */
  follow(process: Process, work: Promise<void>): void {
    this.#followed.set(work, process);
    const end = (): void => void this.#followed.delete(work);
    work.then(end, (error: unknown) => {
      end();
      this.fail(`Code outside of calls failed: ${String(error)}`);
    });
  }

  keeps(call: LockedCall): void {
    this.kept.add(call);
  }

  /** The transaction of a call has ended. */
  keepsNoMore(call: LockedCall): void {
    this.kept.delete(call);
    call.endsWithTransaction();
    this.#extendHolders(call);
  }

  /** The lease that a call was in may have lasted until now. */
  #extendHolders(call: LockedCall): void {
    for (const other of this.#ended) {
      if (call.mayBeIn(other)) {
        other.endedAt = Math.max(other.endedAt, this.now);
      }
    }
  }

  /** Which features a call meets: its own, and those of the others that want one of its keys. */
  meets(call: LockedCall): void {
    if (this.meetings) {
      for (const other of [...this.#pending, ...this.kept]) {
        if (other.call.keys.some((key) => call.call.keys.includes(key))) {
          this.meetings.note(call.features, other.features);
        }
      }
    }
  }

  keepsTicket(made: Ticket | undefined): void {
    this.#tickets.push(...(made ? [made] : []));
  }

  /** A ticket of a call on such keys, the newest one. */
  ticketFor(keys: readonly string[], of: TicketOf): Ticket | undefined {
    const isOn = (those: { readonly keys: readonly string[] }): boolean => keys.every((key) => those.keys.includes(key));
    if (of === 'made before') {
      return this.#tickets.findLast(isOn);
    }
    const calls = of === 'ended' ? this.#ended.filter(({ lock, process }) => lock && process.isAlive) : [...this.inside];
    const call = calls.findLast((each) => isOn(each.call));
    call?.uses(featuresOf(of === 'ended' ? 'late ticket' : 'ticket'));
    return call?.ticket;
  }

  isNewFence(key: string, fence: number): boolean {
    const name = `${key} ${fence}`;
    const isNew = !this.#fences.has(name);
    this.#fences.add(name);
    return isNew;
  }

  /** Since when a call waits for the key whose process could be served. */
  waitingSince(key: string): number {
    let earliest = Infinity;
    for (const call of this.#pending) {
      if (call.isWaitingFor(key)) {
        earliest = Math.min(earliest, Math.max(call.startedAt, call.process.soundSince));
      }
    }
    return earliest;
  }

  get #isQuiet(): boolean {
    // A call may also have been held back by a pause.
    const isPaused = this.#processes.some(({ isAlive, pausedUntil }) => isAlive && pausedUntil >= this.now);
    const isOver = (process: Process): boolean => !process.isAlive;
    return !isPaused && [...this.#pending].every(({ process }) => isOver(process)) && [...this.#followed.values()].every(isOver);
  }

  #start(index: number): void {
    const slot = this.#slots[index] as Slot;
    const script = this.scenario.processes[index % this.scenario.processes.length];
    const id = `p${index}.${this.#processes.length}`;
    slot.running = new Process(this, id, slot.library, script ?? { rate: 1, fates: [], messages: [], loggerMs: 0 });
    this.#processes.push(slot.running);
  }

  #act(index: number, action: Action): void {
    const process = this.#slots[index]?.running as Process;
    this.note(() => `${process.id}: ${JSON.stringify({ ...action, call: undefined })}`);
    switch (action.do) {
      case 'call':
        return process.handle(() => void this.call(process, action.call, NOWHERE));
      case 'steps':
        return process.handle(() => this.follow(process, playSteps(process, action.steps, NOWHERE)));
      case 'lead':
        return process.handle(() => process.isClosing || this.follow(process, new Candidate(process, action.lead).run()));
      case 'shutdown':
        return process.handle(() => process.isClosing || this.follow(process, this.#shutdown(process)));
      case 'crash':
        this.faults.happened(this.now);
        process.crash(action.countedMs);
        this.#forget(process);
        return this.#start(index);
      case 'pause':
        return process.pause(action.ms);
      case 'sleep':
        return process.sleepThrough(action.ms, action.refusedMs);
      case 'cut off':
        return process.wire.connection.cutOff(action.ms);
      case 'subscriber breaks':
        this.faults.happened(this.now);
        return process.wire.subscriber.break(action.countedMs, action.noticedMs);
      case 'wall clock jumps':
        // A grant on its way is not trusted then.
        this.faults.happened(this.now);
        return process.clock.setWall(action.ms);
      case 'clock of the store jumps':
        this.faults.happened(this.now);
        return this.server.jump(action.ms);
      case 'flush':
        return this.server.flush();
      case 'restart':
        this.server.flush();
        return this.#processes.forEach(({ wire }) => wire.subscriber.break(0, 1));
      case 'force':
        this.#featuring(featuresOf('forced release'), ({ call }) => call.keys.includes(action.key));
        return this.server.force(action.key);
    }
  }

  /** Something is done to calls, whatever they use. */
  #featuring(features: number, to: (call: LockedCall) => boolean): void {
    [...this.#pending, ...this.kept].filter(to).forEach((call) => call.uses(features));
  }

  /** Shuts a process down: its locks are released, its waiting calls are refused, and nothing is left of it. */
  async #shutdown(process: Process): Promise<void> {
    this.#featuring(featuresOf('shutdown'), (call) => call.process === process);
    const callOf = ({ id, by }: HoldRecord): LockedCall | undefined => this.leases.holderOf(id) ?? this.callNamed(by);
    const held = this.server.holds.map(callOf);
    if (held.some((call) => call?.process === process && call.call.minHold > 0)) {
      // The lease that minHold keeps ends by itself, and notifies nobody: those who wait find it when they ask again.
      this.faults.happened(this.now);
    }
    await process.shutdown();
    // The last commands that it sent are on their way.
    await process.sleep(LAST_MS);
    this.note(() => `${process.id} has shut down.`);
    const left = this.server.holds.find(({ by }) => this.callNamed(by)?.process === process && !this.callNamed(by)?.call.minHold);
    if (left && this.faults.count === 0) {
      this.fail(`${process.id} has shut down, and left "${left.key}" locked for ${left.by}.`);
    }
  }

  #forget(process: Process): void {
    for (const call of this.inside) {
      if (call.process === process) {
        this.inside.delete(call);
      }
    }
    for (const call of this.kept) {
      if (call.process === process) {
        this.kept.delete(call);
      }
    }
  }

  async #until(isDone: () => boolean): Promise<void> {
    for (;;) {
      await setImmediate();
      this.#check();
      if (isDone()) {
        return;
      }
      if (!this.timeline.runNext(FOR_EVER_MS)) {
        throw new Error(`A call never ended: ${[...this.#pending].map(({ by }) => by).join()}.`);
      }
    }
  }

  #check(): void {
    this.server.look();
    this.leases.check(this.inside, this.kept);
    this.#checkOrphans();
    for (const call of this.#pending) {
      if (call.ignoresAbort && call.process.isAlive) {
        this.fail(`${call.by} was aborted, and goes on.`);
      }
    }
    this.#throw();
  }

  /**
   * The locks that a call leaves behind are released: at once, or when the network lets the release through. A store
   * may forget the release.
   */
  #checkOrphans(): void {
    if (this.server.isForgetful) {
      return;
    }
    for (const { by, key, id } of this.server.holds) {
      const call = this.leases.holderOf(id) ?? this.callNamed(by);
      if (!call?.process.isAlive || call.process.isClosing || call.call.minHold > 0 || call.isKept) {
        continue;
      }
      const since = Math.max(call.endedAt, call.process.disturbedUntil, call.process.lateLeaseUntil);
      // Core sends a release again until the lease is over by its own clock.
      const boundMs = LONGEST_TTL_MS / 10 + this.commandLimitMs + 50 + this.server.setBackMs;
      if (
        this.now > since + boundMs &&
        ![...this.#pending, ...this.kept].some((pending) => pending.isInsideOf(call) || pending.mayBeIn(call))
      ) {
        this.fail(`${call.by} has ended, and left "${key}" locked.`);
      }
    }
  }

  #throw(): void {
    if (this.#failure !== undefined) {
      throw new Error(this.#failure);
    }
  }

  /** Nothing happens for so long that nothing may be left to do. */
  async #rest(): Promise<void> {
    const endOfRest = (): number => Math.max(...this.#slots.map(({ running }) => running?.disturbedUntil ?? 0)) + REST_MS;
    // A logger that works meanwhile disturbs the rest.
    for (let end = this.now + REST_MS; end > this.now; end = endOfRest()) {
      const until = Math.max(end, endOfRest());
      this.timeline.after(until - this.now + 1, () => undefined);
      await this.#until(() => this.now >= until);
    }
    for (const { running } of this.#slots) {
      if (running && running.timers.size > 0) {
        throw new Error(`${running.id} has ${running.timers.size} timers, though it has nothing to do.`);
      }
    }
  }

  /**
   * A process has the key in turn with the places that were left behind: their processes are dead, or were not heard.
   */
  async #probe(process: Process, key: string): Promise<void> {
    let outcome: unknown;
    process.service
      .acquire(key, { ttl: 200, wait: QUEUE_MS, by: 'probe' })
      .then((lock) => lock.release())
      .then(
        () => (outcome = 'had'),
        (error: unknown) => (outcome = error),
      );
    await this.#until(() => outcome !== undefined);
    if (outcome !== 'had') {
      throw new Error(`"${key}" cannot be had at the end: ${String(outcome)}`);
    }
  }
}

/** The name in what the library knows a caller by. */
export function nameIn(by: string): string {
  return /call-\d+/.exec(by)?.[0] ?? by.slice(by.lastIndexOf(' ') + 1);
}
