import { setImmediate } from 'node:timers/promises';
import type { LockError } from '../../../lib/core/words/errors.js';
import type { Lock, Permit } from '../../../lib/core/words/lock.js';
import type { LockService } from '../../../lib/nest/lock.service.js';
import { CLAIM_MS, QUEUE_MS } from '../../../lib/kit/protocol.js';
import { mayShare } from '../../explorer/sharing.js';
import type { Want } from '../../explorer/scope.js';
import { Random } from '../../support/random.js';
import { watchRejections } from '../../support/watch-rejections.js';
import { Faults } from '../properties/faults.js';
import { Process } from '../properties/process.js';
import { FOR_EVER_MS, LONGEST_TTL_MS } from '../properties/scenario.js';
import { Timeline } from '../properties/timeline.js';
import type { Slot, World } from '../properties/world.js';
import type { SharedCall, SharingScenario } from './scenario.js';
import { KEY, SharingServer } from './server.js';

/** Until nothing is left of a process that went: its lease, a claim window, and the pause before a release. */
const REST_MS = LONGEST_TTL_MS + CLAIM_MS + 1_500;
const LONGEST_COMMAND_MS = 1_200;
/** For how long a process lets its readers in without the server once a writer queues, and what its commands take. */
const MOST_BESIDE_MS = 25 + 10;

interface Inside {
  readonly call: SharedCall;
  readonly process: Process;
  readonly handle: Lock | Permit;
}

/** One run of a scenario: the real core of some processes, and the lock table, with a key that they share. */
export class SharingWorld {
  readonly timeline = new Timeline();
  readonly faults = new Faults();
  readonly random: Random;
  readonly server: SharingServer;
  /** Beliefs of processes are not kept here: their handles are asked. */
  readonly leases = { confirmed: () => undefined, gone: () => undefined, forced: () => undefined, troubled: () => undefined };
  isHealed = false;
  readonly #slots: readonly Slot[];
  readonly #inside = new Set<Inside>();
  readonly #pending = new Map<Promise<void>, Process>();
  #processes = 0;
  #failure: string | undefined;

  constructor(
    slots: readonly Slot[],
    readonly scenario: SharingScenario,
    readonly trace?: string[],
  ) {
    this.#slots = slots.slice(0, scenario.processes.length);
    this.random = new Random(scenario.seed - 1);
    this.server = new SharingServer(this, (slots[0] as Slot).library.LockTable);
    this.#slots.forEach((slot, index) => {
      slot.random = new Random(scenario.seed + index);
      this.#start(index);
    });
  }

  get now(): number {
    return this.timeline.now;
  }

  get commandLimitMs(): number {
    return Math.min(this.scenario.commandTimeoutMs, LONGEST_COMMAND_MS);
  }

  note(text: () => string): void {
    this.trace?.push(`${this.now.toFixed(1)} ${text()}`);
  }

  fail(what: string): void {
    this.note(() => what);
    this.#failure ??= what;
  }

  attempt<R>(execute: () => R): { readonly result: R } | undefined {
    try {
      return { result: execute() };
    } catch (error) {
      this.fail(String(error));
      return undefined;
    }
  }

  /** Throws what went wrong. */
  async run(): Promise<void> {
    const unwatch = watchRejections((reason) => this.fail(`A rejection was unhandled: ${String(reason)}`));
    try {
      let at = 0;
      for (const { afterMs, process, action } of this.scenario.actions) {
        at += afterMs;
        this.timeline.after(at, () => this.#act(process % this.#slots.length, action));
      }
      this.timeline.after(at + 1, () => undefined);
      await this.#until(() => this.now > at && this.#isQuiet);
      this.isHealed = true;
      await this.#rest();
      for (const { running } of this.#slots) {
        await this.#probe((running as Process).service);
      }
      await this.#rest();
      if (this.server.inspect(KEY)) {
        this.fail('The key is still taken, though everybody has left.');
      }
      this.#throw();
    } finally {
      unwatch();
    }
  }

  get #isQuiet(): boolean {
    // Calls may also have been held back by a pause.
    const isPaused = this.#slots.some(({ running }) => (running?.pausedUntil ?? 0) >= this.now);
    return !isPaused && [...this.#pending.values()].every(({ isAlive }) => !isAlive);
  }

  #act(index: number, action: SharingScenario['actions'][number]['action']): void {
    const process = this.#slots[index]?.running as Process;
    this.note(() => `${process.id}: ${JSON.stringify(action)}`);
    switch (action.do) {
      case 'calls':
        return process.handle(() => action.calls.forEach((call) => this.#follow(process, this.#call(process, call))));
      case 'crash':
        this.faults.happened(this.now);
        process.crash(action.countedMs);
        return this.#start(index);
      case 'pause':
        return process.pause(action.ms);
      case 'cut off':
        return process.wire.connection.cutOff(action.ms);
      case 'subscriber breaks':
        this.faults.happened(this.now);
        return process.wire.subscriber.break(action.countedMs, action.noticedMs);
      case 'wall clock jumps':
        this.faults.happened(this.now);
        return process.clock.setWall(action.ms);
    }
  }

  #start(index: number): void {
    const slot = this.#slots[index] as Slot;
    const script = this.scenario.processes[index] as SharingScenario['processes'][number];
    slot.running = new Process(this as unknown as World, `p${index}.${this.#processes++}`, slot.library, script);
  }

  #follow(process: Process, work: Promise<void>): void {
    this.#pending.set(work, process);
    work.then(
      () => this.#pending.delete(work),
      (error: unknown) => this.fail(`A call failed otherwise: ${String(error)}`),
    );
  }

  async #call(process: Process, call: SharedCall): Promise<void> {
    const { want, how, ttl, wait, abortAfterMs } = call;
    const aborter = new AbortController();
    if (abortAfterMs !== undefined) {
      void process.sleep(abortAfterMs).then(() => aborter.abort());
    }
    const options = { ttl, wait, signal: aborter.signal };
    const { service } = process;
    const body = (handle: Lock | Permit): Promise<void> => this.#body(process, call, handle);
    try {
      if (how === 'with') {
        await (typeof want === 'number'
          ? service.withPermit(KEY, want, options, body)
          : service.withLock(KEY, { ...options, mode: want }, body));
        return;
      }
      const handle = await (typeof want === 'number'
        ? service.acquirePermit(KEY, want, options)
        : service.acquire(KEY, { ...options, mode: want }));
      await handle.run(() => body(handle)).finally(() => handle.release());
    } catch (error) {
      this.#checkRefusal(error as LockError & { reason?: string }, aborter.signal.aborted);
    }
  }

  #checkRefusal(error: LockError & { reason?: string }, isAborted: boolean): void {
    const { code, reason, detail } = error;
    const isMixed =
      new Set(this.scenario.actions.flatMap(({ action }) => (action.do === 'calls' ? action.calls : [])).map(({ want }) => typeof want))
        .size > 1;
    const mayBe =
      (code === 'LOCK_NOT_ACQUIRED' && (reason === 'busy' || (reason === 'aborted' && isAborted))) ||
      ((code === 'LOCK_STORE' || code === 'LOCK_LOST') && this.faults.count > 0) ||
      (isMixed && /is a (semaphore|lock) now/.test(detail));
    if (!mayBe) {
      this.fail(`A call ended with ${code} ${reason ?? ''}: ${detail}`);
    }
  }

  async #body(process: Process, call: SharedCall, handle: Lock | Permit): Promise<void> {
    const { writerSince = Infinity } = this.server.room;
    const grantedAt = this.server.grantedAt.get(process.id) ?? 0;
    if (call.want === 'read' && this.now - Math.max(writerSince, grantedAt) > MOST_BESIDE_MS && this.faults.count === 0) {
      this.fail(`A reader came in by a grant of ${grantedAt}, beside a writer that has queued since ${writerSince}.`);
    }
    const inside = { call, process, handle };
    this.#inside.add(inside);
    await process.sleep(call.bodyMs);
    if (call.nested !== undefined) {
      await this.#nested(process.service, call, call.nested, handle);
    }
    if (this.faults.count === 0 && !handle.isHeld()) {
      this.fail('A call lost its lease, and nothing had gone wrong.');
    }
    this.#inside.delete(inside);
  }

  /** A reader enters a lock at its fence, a writer is refused inside a reader, and a permit is entered again. */
  async #nested(service: LockService, { want }: SharedCall, mode: 'read' | 'write', handle: Lock | Permit): Promise<void> {
    let outcome = 'did not run';
    try {
      if (typeof want === 'number') {
        await service.withPermit(KEY, want, { wait: 0 }, () => void (outcome = 'ran'));
      } else {
        const { fence } = handle as Lock;
        await service.withLock(KEY, { mode }, (lock) => void (outcome = lock.fence === fence ? 'ran' : 'ran at another fence'));
      }
    } catch (error) {
      const { code, reason } = error as LockError & { reason?: string };
      outcome = code === 'LOCK_NOT_ACQUIRED' ? String(reason) : code;
    }
    if (outcome !== 'LOCK_LOST' && outcome !== (want === 'read' && mode === 'write' ? 'upgrade' : 'ran')) {
      this.fail(`A call of mode ${mode} inside one that wants ${want} ended so: ${outcome}.`);
    }
  }

  async #until(isDone: () => boolean): Promise<void> {
    for (;;) {
      await setImmediate();
      this.attempt(() => this.server.room.look());
      this.#checkTrust();
      this.#throw();
      if (isDone()) {
        return;
      }
      if (!this.timeline.runNext(FOR_EVER_MS)) {
        throw new Error(`A call never ended; ${this.server.room.holds.join()} are in.`);
      }
    }
  }

  /** Those that trust their leases may share the key, and readers have one fence. */
  #checkTrust(): void {
    const trusting = [...this.#inside].filter(({ process, handle }) => process.isAlive && handle.isHeld());
    const shares = trusting.map(({ call: { want } }) => (want === 'write' ? undefined : want));
    const [last, ...others] = shares;
    if (trusting.length > 1 && !(others.every((other) => other !== undefined) && mayShare(last, others))) {
      this.fail(`${shares.map((share) => share ?? 'write').join()} trust their leases at once.`);
    }
    const permits = shares.filter((share) => typeof share === 'number').length;
    if (this.server.room.holds.length < Math.max(permits, Math.min(1, trusting.length))) {
      this.fail(`${shares.map((share) => share ?? 'write').join()} trust their leases, which are over at the server.`);
    }
    const fences = new Set(trusting.flatMap(({ call, handle }) => (call.want === 'read' ? [(handle as Lock).fence] : [])));
    if (fences.size > 1) {
      this.fail(`Readers that are in have the fences ${[...fences].join()}.`);
    }
  }

  /** As many come in as may. */
  async #probe(service: LockService): Promise<void> {
    let outcome: unknown;
    const wants: Want[] = ['write', 'read', 3];
    const probe = async (): Promise<void> => {
      for (const want of wants) {
        const handles = await Promise.all(
          Array.from({ length: want === 'write' ? 1 : 3 }, () =>
            typeof want === 'number'
              ? service.acquirePermit(KEY, want, { wait: QUEUE_MS, ttl: 600 })
              : service.acquire(KEY, { mode: want, wait: QUEUE_MS, ttl: 600 }),
          ),
        );
        await Promise.all(handles.map((handle) => handle.release()));
      }
    };
    probe().then(
      () => (outcome = 'had'),
      (error: unknown) => (outcome = error),
    );
    await this.#until(() => outcome !== undefined);
    if (outcome !== 'had') {
      throw new Error(`The key cannot be had at the end: ${(outcome as LockError).detail}`);
    }
  }

  async #rest(): Promise<void> {
    const endOfRest = (): number => Math.max(...this.#slots.map(({ running }) => running?.disturbedUntil ?? 0)) + REST_MS;
    const until = Math.max(this.now + REST_MS, endOfRest());
    this.timeline.after(until - this.now + 1, () => undefined);
    await this.#until(() => this.now >= until);
    for (const { running } of this.#slots) {
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
