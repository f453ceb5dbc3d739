import { setImmediate } from 'node:timers/promises';
import { CLAIM_MS } from '../../../lib/kit/protocol.js';
import { Random } from '../../support/random.js';
import { watchRejections } from '../../support/watch-rejections.js';
import { Faults } from './faults.js';
import { Process } from './process.js';
import { FOR_EVER_MS, LONGEST_TTL_MS, type Accident, type ProcessScript, type Scenario } from './scenario.js';
import { Timeline } from './timeline.js';
import type { Slot, World } from './world.js';

/**
 * How long it takes until nothing is left of a process that went: its lease, a claim window, and the pause before a
 * renewal or release.
 */
const REST_MS = LONGEST_TTL_MS + CLAIM_MS + 1_500;
/** The most that core waits for a command: the longest limit, what it waits beyond that, and its own grain. */
const LONGEST_COMMAND_MS = 1_000 + 100 + 100;

/** A scenario with actions of whichever kind. */
type Played<Kind> = Omit<Scenario, 'actions'> & {
  readonly actions: readonly { readonly afterMs: number; readonly process: number; readonly action: Kind }[];
};

/** Runs a scenario; a second time, for what led to it, where it goes wrong. */
export async function play(newWorld: (trace?: string[]) => { run(): Promise<void> }): Promise<void> {
  try {
    await newWorld().run();
  } catch (error) {
    const trace: string[] = [];
    await newWorld(trace)
      .run()
      .catch(() => undefined);
    throw new Error(`${String(error)}\n${trace.slice(-100).join('\n')}`, { cause: error });
  }
}

/** One run of a scenario: the real core of some processes on one timeline. */
export abstract class PlayedWorld<Kind> {
  readonly timeline = new Timeline();
  readonly faults = new Faults();
  /** The chance of networks. */
  readonly random: Random;
  protected readonly slots: readonly Slot[];
  readonly #processes: Process[] = [];
  /** The work that goes on in processes. */
  readonly #followed = new Map<Promise<void>, Process>();
  #isHealed = false;
  #failure: string | undefined;

  constructor(
    slots: readonly Slot[],
    readonly scenario: Played<Kind>,
    readonly trace?: string[],
  ) {
    this.slots = slots.slice(0, scenario.processes.length);
    this.random = new Random(scenario.seed - 1);
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
    try {
      let at = 0;
      for (const { afterMs, process, action } of this.scenario.actions) {
        at += afterMs;
        this.timeline.after(at, () => this.act(process % this.slots.length, action));
      }
      this.timeline.after(at + 1, () => undefined);
      await this.#until(() => this.now > at && this.#isQuiet);
      this.#isHealed = true;
      await this.#rest();
      await this.probe();
      await this.#rest();
      this.checkEnd();
      this.#throw();
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
      unwatch();
    }
  }

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

  /** Something goes on, which is to end well. */
  follow(process: Process, work: Promise<void>): void {
    this.#followed.set(work, process);
    const end = (): void => void this.#followed.delete(work);
    work.then(end, (error: unknown) => {
      end();
      this.fail(`What goes on in ${process.id} failed: ${String(error)}`);
    });
  }

  protected get processes(): readonly Process[] {
    return this.#processes;
  }

  /** The processes with calls that have not ended, beside those that are followed. */
  protected abstract calling(): readonly Process[];
  protected abstract act(index: number, action: Kind): void;
  /** Looks for what must not be. */
  protected abstract check(): void;
  /** Whoever never ended. */
  protected abstract whoIsLeft(): string;
  /** Has each process lock what it can. */
  protected abstract probe(): Promise<void>;
  /** Looks for what is left at the end. */
  protected abstract checkEnd(): void;

  /** Forgets the calls of a process that has crashed. */
  protected forget(_process: Process): void {
    // Some ask their handles.
  }

  /** Starts the first process of each slot. */
  protected begin(): void {
    this.slots.forEach((slot, index) => {
      slot.random = new Random(this.scenario.seed + index);
      this.#start(index);
    });
  }

  protected happen(index: number, accident: Accident): void {
    const process = this.slots[index]?.running as Process;
    switch (accident.do) {
      case 'crash':
        this.faults.happened(this.now);
        process.crash(accident.countedMs);
        this.forget(process);
        return this.#start(index);
      case 'pause':
        return process.pause(accident.ms);
      case 'cut off':
        return process.wire.connection.cutOff(accident.ms);
      case 'subscriber breaks':
        this.faults.happened(this.now);
        return process.wire.subscriber.break(accident.countedMs, accident.noticedMs);
      case 'wall clock jumps':
        // A grant on its way is not trusted then.
        this.faults.happened(this.now);
        return process.clock.setWall(accident.ms);
    }
  }

  /** Expects that a key is had in turn with what was left behind, by processes that are dead or were not heard. */
  protected async expectHad(key: string, had: Promise<unknown>): Promise<void> {
    let outcome: unknown;
    had.then(
      () => (outcome = 'had'),
      (error: unknown) => (outcome = error),
    );
    await this.#until(() => outcome !== undefined);
    if (outcome !== 'had') {
      throw new Error(`"${key}" cannot be had at the end: ${String(outcome)}`);
    }
  }

  get #isQuiet(): boolean {
    // A call may also have been held back by a pause.
    const isPaused = this.#processes.some(({ isAlive, pausedUntil }) => isAlive && pausedUntil >= this.now);
    return !isPaused && [...this.calling(), ...this.#followed.values()].every(({ isAlive }) => !isAlive);
  }

  #start(index: number): void {
    const slot = this.slots[index] as Slot;
    const script = this.scenario.processes[index] as ProcessScript;
    slot.running = new Process(this as unknown as World, `p${index}.${this.#processes.length}`, slot.library, script);
    this.#processes.push(slot.running);
  }

  async #until(isDone: () => boolean): Promise<void> {
    for (;;) {
      await setImmediate();
      this.check();
      this.#throw();
      if (isDone()) {
        return;
      }
      if (!this.timeline.runNext(FOR_EVER_MS)) {
        throw new Error(`A call never ended: ${this.whoIsLeft()}.`);
      }
    }
  }

  /** Nothing happens for so long that nothing may be left to do. */
  async #rest(): Promise<void> {
    const endOfRest = (): number => Math.max(...this.slots.map(({ running }) => running?.disturbedUntil ?? 0)) + REST_MS;
    // A logger that works meanwhile disturbs the rest.
    for (let end = this.now + REST_MS; end > this.now; end = endOfRest()) {
      const until = Math.max(end, endOfRest());
      this.timeline.after(until - this.now + 1, () => undefined);
      await this.#until(() => this.now >= until);
    }
    for (const { running } of this.slots) {
      if (running && running.timers.size > 0) {
        throw new Error(`${running.id} has ${running.timers.size} timers, though it has nothing to do.`);
      }
    }
  }

  #throw(): void {
    if (this.#failure !== undefined) {
      throw new Error(this.#failure);
    }
  }
}
