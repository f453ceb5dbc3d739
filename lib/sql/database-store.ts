import { createHash } from 'node:crypto';
import { parseDuration, type Duration } from '../core/words/duration.js';
import type {
  AcquireReply,
  FoundLock,
  HoldRecord,
  OpenOptions,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../core/seam/lock-store.js';
import { checkPrefix } from '../core/words/lock-key.js';
import type { StoreHealth } from '../core/words/lock-health.js';
import { throwIfAllFailed } from '../kit/all-failed.js';
import { Listeners } from '../kit/listeners.js';
import { answeredOf, membersOf, worstOf } from '../kit/probe.js';
import { processName } from '../kit/process-name.js';
import type { Database, RowNames } from './database.js';
import type { DatabaseLocks, ExchangeReply } from './database-locks.js';

/** The age of the rows that `purge` deletes, in milliseconds: no timer waits for it, so it may be long. */
const AGE_MS = { least: 60_000, most: 36_525 * 86_400_000 } as const;

/** The part of one of its databases that a store uses. */
export type OneDatabase<Names extends RowNames> = Pick<Database<Names>, 'dialect' | 'open' | 'probe' | 'hearsTurns' | 'close'>;

/**
 * Locks in a database, or in several: a key lives in one of them, chosen by a hash of its name and the order of the
 * databases. So every process has to name the same databases in the same order.
 */
export abstract class DatabaseStore<Names extends RowNames> implements Turns, Tickets, Operator {
  readonly expires = true;
  readonly reservesFences = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  /** The name of this store instance, which shows where it runs. */
  readonly process: string = processName();
  protected readonly listeners: Listeners = new Listeners();
  /** In the order of the databases. */
  protected locks: readonly DatabaseLocks[] = [];
  protected abstract get databases(): readonly OneDatabase<Names>[];
  /** Makes the locks of all databases, with names of this prefix. */
  protected abstract nameRows(prefix: string): Names;

  async open({ prefix, warn, readOnly = false }: OpenOptions): Promise<void> {
    const keys = this.nameRows(checkPrefix(prefix));
    const options = { process: this.process, keys, listeners: this.listeners, warn, readOnly };
    const count = this.databases.length;
    const opening = this.databases.map((database, at) => database.open({ ...options, number: `${at + 1} of ${count}` }));
    // Waits for all, also where one failed: a later one would begin to listen after the close.
    const failed = (await Promise.allSettled(opening)).find((result) => result.status === 'rejected');
    if (failed) {
      await this.close();
      throw failed.reason;
    }
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.#of(hold.key).acquire(hold, place);
  }

  exchange(hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): Promise<ExchangeReply> {
    return this.#of(hold.key).exchange(hold, next, place, mayOvertake);
  }

  leave(key: string, name: string): Promise<void> {
    return this.#of(key).leave(key, name);
  }

  join(hold: HoldRecord): Promise<boolean> {
    return this.#of(hold.key).join(hold);
  }

  /** A database that is away fails only the renewals of its own locks. */
  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const answers: (boolean | undefined)[] = holds.map(() => undefined);
    const groups = new Map<DatabaseLocks, number[]>(this.locks.map((locks) => [locks, []]));
    holds.forEach(({ key }, at) => groups.get(this.#of(key))?.push(at));
    const renewals = await Promise.allSettled(
      [...groups]
        .filter(([, members]) => members.length > 0)
        .map(async ([locks, members]) => {
          const renewed = await locks.renew(members.map((at) => holds[at] as HoldRecord));
          members.forEach((at, index) => (answers[at] = renewed[index]));
        }),
    );
    throwIfAllFailed(renewals);
    return answers;
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#of(hold.key).release(hold);
  }

  inspect(key: string): Promise<StoredLock | null> {
    return this.#of(key).inspect(key);
  }

  forceRelease(key: string, fence: number): Promise<boolean> {
    return this.#of(key).forceRelease(key, fence);
  }

  async health(): Promise<StoreHealth> {
    const answers = await Promise.allSettled(this.databases.map((database) => database.probe()));
    throwIfAllFailed(answers);
    const hears = this.databases.flatMap(({ hearsTurns }) => hearsTurns ?? []);
    return {
      ...worstOf(answeredOf(answers)),
      hearsTurns: hears.length > 0 ? hears.every(Boolean) : undefined,
      members: membersOf(answers),
    };
  }

  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    for (const locks of this.locks) {
      yield* locks.search(prefix);
    }
  }

  /**
   * Deletes the rows of locks that nobody has held or waited for since `olderThan` (one minute to 100 years), and
   * resolves to their number. A row keeps the last fence of its key. Without it the next fence comes from the server's
   * clock alone, and is higher all the same, unless that clock was set back by more than `olderThan`.
   */
  async purge(options: { olderThan: Duration }): Promise<number> {
    const olderMs = parseDuration(options.olderThan, 'olderThan', AGE_MS.least, `${this.databases[0]?.dialect.store}.purge`, AGE_MS.most);
    const counts = await Promise.all(this.locks.map((locks) => locks.purge(olderMs)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  onTurn(listener: TurnListener, until?: AbortSignal): void {
    this.listeners.onTurn(listener, until);
  }

  async close(): Promise<void> {
    for (const database of this.databases) {
      database.close();
    }
  }

  #of(key: string): DatabaseLocks {
    return this.locks[databaseOf(key, this.locks.length)] as DatabaseLocks;
  }
}

/**
 * The index of the database that a key lives in. It must never change, since processes of all versions have to agree.
 */
function databaseOf(key: string, count: number): number {
  return count === 1 ? 0 : createHash('sha256').update(key).digest().readUInt32BE() % count;
}
