import type { LockError } from '../../../lib/core/words/errors.js';
import type { Lock, Permit } from '../../../lib/core/words/lock.js';
import type { LockService } from '../../../lib/nest/lock.service.js';
import { QUEUE_MS } from '../../../lib/kit/protocol.js';
import { mayShare } from '../../explorer/sharing.js';
import type { Want } from '../../explorer/scope.js';
import { PlayedWorld } from '../properties/played-world.js';
import type { Process } from '../properties/process.js';
import type { Slot } from '../properties/world.js';
import type { SharedAction, SharedCall, SharingScenario } from './scenario.js';
import { KEY, SharingServer } from './server.js';

/** For how long a process lets its readers in without the server once a writer queues, and what its commands take. */
const MOST_BESIDE_MS = 25 + 10;

interface Inside {
  readonly call: SharedCall;
  readonly process: Process;
  readonly handle: Lock | Permit;
}

/** One run of a scenario: the real core of some processes, and the lock table, with a key that they share. */
export class SharingWorld extends PlayedWorld<SharedAction> {
  readonly server: SharingServer;
  /** Beliefs of processes are not kept here: their handles are asked. */
  readonly leases = { confirmed: () => undefined, gone: () => undefined, forced: () => undefined, troubled: () => undefined };
  readonly #inside = new Set<Inside>();

  constructor(slots: readonly Slot[], scenario: SharingScenario, trace?: string[]) {
    super(slots, scenario, trace);
    this.server = new SharingServer(this, (slots[0] as Slot).library.LockTable);
    this.begin();
  }

  protected calling(): readonly Process[] {
    return [];
  }

  protected whoIsLeft(): string {
    return this.server.room.holds.join();
  }

  protected act(index: number, action: SharedAction): void {
    const process = this.slots[index]?.running as Process;
    this.note(() => `${process.id}: ${JSON.stringify(action)}`);
    if (action.do !== 'calls') {
      return this.happen(index, action);
    }
    process.handle(() => action.calls.forEach((call) => this.follow(process, this.#call(process, call))));
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

  protected check(): void {
    this.attempt(() => this.server.room.look());
    this.#checkTrust();
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

  protected async probe(): Promise<void> {
    for (const { running } of this.slots) {
      await this.expectHad(KEY, haveAll((running as Process).service));
    }
  }

  protected checkEnd(): void {
    if (this.server.inspect(KEY)) {
      this.fail('The key is still taken, though everybody has left.');
    }
  }
}

/** As many come in as may. */
async function haveAll(service: LockService): Promise<void> {
  const wants: Want[] = ['write', 'read', 3];
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
}
