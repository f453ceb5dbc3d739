import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { LockStoreError } from '../../lib/core/words/errors.js';
import type { AcquireReply, HoldRecord, LockStore, OpenOptions, Operator, Place, Tickets, Turns } from '../../lib/core/seam/lock-store.js';
import { now } from './history.js';
import type { Asked, Operation } from './operation.js';

/** The request of an operation. */
export type Invoked = Omit<Operation, 'process' | 'store' | 'invoke' | 'return' | 'outcome'>;
/** How it ended. */
export type Returned = Pick<Operation, 'outcome' | 'answer' | 'granted' | 'reply' | 'remaining'>;

/**
 * A process's own file of the operations of its stores, and their answers: a line when an operation begins, and one
 * when it ends, so that a process that is killed loses neither. `operationsOf` makes one line of both.
 */
export class OperationFile {
  readonly #file: number;
  readonly #process: string;
  #last = 0;
  #stores = 0;

  constructor(folder: string, process: string) {
    this.#process = process;
    this.#file = openSync(join(folder, `${process}.operations`), 'a');
  }

  newStore(): string {
    return `${this.#process}#${++this.#stores}`;
  }

  begin(store: string, asked: Invoked): number {
    const id = ++this.#last;
    this.#write({ id, process: this.#process, store, invoke: now(), ...asked });
    return id;
  }

  end(id: number, returned: Returned): void {
    this.#write({ id, return: now(), ...returned });
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(line: object): void {
    try {
      writeSync(this.#file, `${JSON.stringify(line)}\n`);
    } catch {
      // The file is closed: what is released after the run is of no interest.
    }
  }
}

/**
 * A store that writes down its operations, and their answers. It has the capabilities of the store that it stands
 * before.
 */
export class RecordingStore implements LockStore {
  readonly turns?: Turns | undefined;
  readonly tickets?: Tickets | undefined;
  readonly operator?: Operator | undefined;
  readonly #store: LockStore;
  readonly #file: OperationFile;
  readonly #name: string;

  constructor(store: LockStore, file: OperationFile) {
    this.#store = store;
    this.#file = file;
    this.#name = file.newStore();
    const { turns, tickets, operator } = store;
    this.turns = turns && {
      exchange: (hold, next, place, mayOvertake) => this.#exchange(turns, hold, next, place, mayOvertake),
      leave: (key, name) =>
        this.#record(
          { op: 'leave', key, place: name },
          () => turns.leave(key, name),
          () => ({}),
        ),
      onTurn: (listener, until) => turns.onTurn(listener, until),
    };
    this.tickets = tickets && {
      join: (hold) =>
        this.#record(
          { op: 'join', ...named(hold) },
          () => tickets.join(hold),
          (answer) => ({ answer }),
        ),
    };
    this.operator = operator && {
      inspect: (key) => operator.inspect(key),
      forceRelease: (key, fence) =>
        this.#record(
          { op: 'force', key, fence },
          () => operator.forceRelease(key, fence),
          (answer) => ({ answer }),
        ),
      ...(operator.search && { search: (prefix: string) => (operator.search as NonNullable<typeof operator.search>)(prefix) }),
      ...(operator.onForced && {
        onForced: (...args: Parameters<NonNullable<Operator['onForced']>>) =>
          (operator.onForced as NonNullable<typeof operator.onForced>)(...args),
      }),
    };
  }

  get expires(): boolean {
    return this.#store.expires;
  }

  get reservesFences(): boolean {
    return this.#store.reservesFences === true;
  }

  get longestLeaseMs(): number | undefined {
    return this.#store.longestLeaseMs;
  }

  get messages(): LockStore['messages'] {
    return this.#store.messages;
  }

  async open(options: OpenOptions): Promise<void> {
    await this.#store.open?.(options);
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.#record({ op: 'acquire', ...named(hold), place: place?.name }, () => this.#store.acquire(hold, place), granted);
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const ids = holds.map((hold) => this.#file.begin(this.#name, { op: 'renew', ...named(hold), lingers: hold.lingering || undefined }));
    try {
      const answers = await this.#store.renew(holds);
      ids.forEach((id, at) =>
        this.#file.end(id, answers[at] === undefined ? { outcome: 'unknown' } : { outcome: 'ok', answer: answers[at] }),
      );
      return answers;
    } catch (error) {
      ids.forEach((id) => this.#file.end(id, failed(error)));
      throw error;
    }
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#record(
      { op: 'release', ...named(hold) },
      () => this.#store.release(hold),
      (answer) => ({ answer }),
    );
  }

  health(): ReturnType<NonNullable<LockStore['health']>> {
    return this.#store.health?.() ?? Promise.resolve({});
  }

  async close(): Promise<void> {
    this.#file.end(this.#file.begin(this.#name, { op: 'close' }), { outcome: 'ok' });
    await this.#store.close();
  }

  async #exchange(...[turns, hold, next, place, mayOvertake]: [Turns, ...Parameters<Turns['exchange']>]): ReturnType<Turns['exchange']> {
    const { owner, hold: asks, fences, ttl } = named(next);
    const asked: Asked = { owner, hold: asks, fences, ttl };
    const begun = this.#file.begin(this.#name, { op: 'exchange', ...named(hold), place: place.name, next: asked, overtakes: mayOvertake });
    try {
      const { released, reply } = await turns.exchange(hold, next, place, mayOvertake);
      if (!(reply instanceof Promise)) {
        this.#file.end(begun, { outcome: 'ok', answer: released, reply: 'ok', ...granted(reply) });
        return { released, reply };
      }
      const later = reply.then(
        (answer) => {
          this.#file.end(begun, { outcome: 'ok', answer: released, reply: 'ok', ...granted(answer) });
          return answer;
        },
        (error: unknown) => {
          this.#file.end(begun, { outcome: 'ok', answer: released, reply: failed(error).outcome });
          throw error;
        },
      );
      // Whoever asked may have given it up.
      later.catch(() => undefined);
      return { released, reply: later };
    } catch (error) {
      this.#file.end(begun, failed(error));
      throw error;
    }
  }

  async #record<T>(asked: Invoked, run: () => Promise<T>, read: (answer: T) => Omit<Returned, 'outcome'>): Promise<T> {
    const id = this.#file.begin(this.#name, asked);
    try {
      const value = await run();
      this.#file.end(id, { outcome: 'ok', ...read(value) });
      return value;
    } catch (error) {
      this.#file.end(id, failed(error));
      throw error;
    }
  }
}

function named({
  key,
  owner,
  id,
  fence,
  fences,
  ttlMs,
  unanswered,
}: HoldRecord): Asked & Pick<Operation, 'unanswered'> & { readonly key: string; readonly fence: number } {
  return { key, owner, hold: id, fence, fences, ttl: ttlMs, unanswered };
}

function granted(reply: AcquireReply): Pick<Returned, 'granted' | 'remaining'> {
  return reply.fence === undefined ? { remaining: Math.round(reply.remainingMs) } : { granted: reply.fence };
}

function failed(error: unknown): Returned {
  const { unknown = true } = error as Partial<LockStoreError>;
  return { outcome: unknown ? 'unknown' : 'failed' };
}
