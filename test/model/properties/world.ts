import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event.js';
import type { LockTable } from '../../../lib/kit/lock-table.js';
import { QUEUE_MS } from '../../../lib/kit/protocol.js';
import { Random } from '../../support/random.js';
import { Leases } from './leases.js';
import type { Library, LoadLibrary } from './library.js';
import { Candidate } from './candidate.js';
import { featuresOf, type Meetings } from './features.js';
import { LockedCall, type Ticket } from './locked-call.js';
import { NOWHERE, playSteps, type Place } from './play-steps.js';
import { PlayedWorld } from './played-world.js';
import { Process, surroundingsOf } from './process.js';
import { KEYS, LONGEST_TTL_MS, MOST_PROCESSES, type Action, type Call, type Scenario, type TicketOf } from './scenario.js';
import { Server } from './server.js';

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
export class World extends PlayedWorld<Action> {
  readonly leases = new Leases(this);
  readonly server: Server;
  readonly Table: typeof LockTable;
  /** Calls whose body runs. */
  readonly inside = new Set<LockedCall>();
  /** Calls whose body has ended, while their transaction keeps their locks. */
  readonly kept = new Set<LockedCall>();
  readonly #calls = new Map<string, LockedCall>();
  readonly #pending = new Set<LockedCall>();
  readonly #ended: LockedCall[] = [];
  readonly #tickets: Ticket[] = [];
  readonly #fences = new Set<string>();

  constructor(
    slots: readonly Slot[],
    scenario: Scenario,
    trace?: string[],
    readonly meetings?: Meetings,
  ) {
    super(slots, scenario, trace);
    this.Table = (slots[0] as Slot).library.LockTable;
    this.server = new Server(this);
    this.begin();
  }

  override async run(): Promise<void> {
    subscribe(LOCK_CHANNEL, this.#listener);
    try {
      await super.run();
    } finally {
      unsubscribe(LOCK_CHANNEL, this.#listener);
    }
  }

  /** Listens to the events of calls that have a lock. */
  readonly #listener = (message: unknown): void => {
    const event = message as LockEvent;
    if (event.type === 'acquired') {
      this.leases.began(event.by, event.key, event.fence);
    }
  };

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

  protected calling(): readonly Process[] {
    return [...this.#pending].map(({ process }) => process);
  }

  protected whoIsLeft(): string {
    return [...this.#pending].map(({ by }) => by).join();
  }

  protected act(index: number, action: Action): void {
    const process = this.slots[index]?.running as Process;
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
      case 'sleep':
        return process.sleepThrough(action.ms, action.refusedMs);
      case 'clock of the store jumps':
        this.faults.happened(this.now);
        return this.server.jump(action.ms);
      case 'flush':
        return this.server.flush();
      case 'restart':
        this.server.flush();
        return this.processes.forEach(({ wire }) => wire.subscriber.break(0, 1));
      case 'force':
        this.#featuring(featuresOf('forced release'), ({ call }) => call.keys.includes(action.key));
        return this.server.force(action.key);
      default:
        return this.happen(index, action);
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

  protected override forget(process: Process): void {
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

  protected check(): void {
    this.server.look();
    this.leases.check(this.inside, this.kept);
    this.#checkOrphans();
    for (const call of this.#pending) {
      if (call.ignoresAbort && call.process.isAlive) {
        this.fail(`${call.by} was aborted, and goes on.`);
      }
    }
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

  protected async probe(): Promise<void> {
    for (const key of KEYS) {
      for (const { running } of this.slots) {
        if (running && !running.isClosing) {
          const probed = running.service.acquire(key, { ttl: 200, wait: QUEUE_MS, by: 'probe' });
          await this.expectHad(
            key,
            probed.then((lock) => lock.release()),
          );
        }
      }
    }
  }

  protected checkEnd(): void {
    for (const key of KEYS) {
      if (this.server.inspect(key)) {
        this.fail(`"${key}" is still locked, though everybody has left.`);
      }
    }
  }
}

/** The name in what the library knows a caller by. */
export function nameIn(by: string): string {
  return /call-\d+/.exec(by)?.[0] ?? by.slice(by.lastIndexOf(' ') + 1);
}
