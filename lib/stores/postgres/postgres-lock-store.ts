import { parseDuration, type Duration } from '../../core/duration.js';
import type {
  AcquireReply,
  ForcedListener,
  FoundLock,
  HoldRecord,
  LockStore,
  Messages,
  Operator,
  OpenOptions,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../../core/lock-store.js';
import type { StoreHealth } from '../../core/store-health.js';
import { throwIfAllFailed } from '../kit/all-failed.js';
import { Listeners } from '../kit/listeners.js';
import { checkPrefix } from '../kit/prefix.js';
import { worstOf } from '../kit/probe.js';
import { processName } from '../kit/process-name.js';
import { Database } from './database.js';
import { DatabaseLocks } from './database-locks.js';
import { databaseOf, PostgresKeys } from './postgres-keys.js';
import { checkOptions, checkPools, type PostgresLockStoreOptions } from './postgres-lock-store.options.js';
import type { PostgresPool } from './postgres-pool.js';

/** The age of the rows that `purge` deletes, in milliseconds: no timer waits for it, so it may be long. */
const AGE_MS = { least: 60_000, most: 36_525 * 86_400_000 } as const;

/**
 * Locks in a PostgreSQL database, or in several: a key lives in one of them, chosen by a hash of its name and the order
 * of the pools. So every process has to pass the same databases in the same order; each of several databases remembers
 * its number. Waiters are notified of their turn, first come first served.
 *
 * The pools are of `pg`, and are never closed. Each operation is one statement outside of any transaction. The tables
 * are made by `ensureSchema()`, or by hand with what `schemaSql()` returns. Throws `LockConfigurationError` where
 * something else than a pool is passed.
 */
export class PostgresLockStore implements LockStore, Turns, Tickets, Operator, Messages {
  readonly expires = true;
  readonly reservesFences = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  /** Undefined where no database is listened to. */
  readonly messages: Messages | undefined;
  /** The name of this store instance, which shows where it runs. */
  readonly process = processName();
  readonly #listeners = new Listeners();
  readonly #databases: readonly Database[];
  /** In the order of the databases. */
  #locks: readonly DatabaseLocks[];

  constructor(source: PostgresPool | readonly PostgresPool[], options: PostgresLockStoreOptions = {}) {
    const pools = checkPools(source);
    const { schema, listen } = checkOptions(options, pools);
    this.#databases = pools.map((pool, at) => new Database(pool, schema, listen[at]));
    this.#locks = this.#locksCalled(new PostgresKeys('lock'));
    this.messages = listen.every((address) => address === false) && listen.length > 0 ? undefined : this;
  }

  async open({ prefix, warn, readOnly = false }: OpenOptions): Promise<void> {
    const keys = new PostgresKeys(checkPrefix(prefix));
    this.#locks = this.#locksCalled(keys);
    const options = { process: this.process, keys, listeners: this.#listeners, warn, readOnly };
    const count = this.#databases.length;
    const opening = this.#databases.map((database, at) => database.open({ ...options, number: `${at + 1} of ${count}` }));
    // All of them: one that is still on its way would begin to listen after the close.
    const failed = (await Promise.allSettled(opening)).find((result) => result.status === 'rejected');
    if (failed) {
      await this.close();
      throw failed.reason;
    }
  }

  /**
   * Creates the tables and functions in each database, or updates them; drops no data. Does nothing where they are
   * there already, for which the rights of the locks are enough. Many processes may call it at once, before or after
   * they have opened the store. Rejects with a `LockConfigurationError` where the user may not, or a later version
   * has made them.
   */
  async ensureSchema(): Promise<void> {
    await Promise.all(this.#databases.map((database) => database.ensureSchema()));
  }

  /**
   * Deletes the rows of locks that nobody has held or waited for since `olderThan` (one minute to 100 years), and
   * resolves to their number. A row keeps the last fence of its key. Without it the next fence comes from the server's
   * clock alone, and is higher all the same, unless that clock was set back by more than `olderThan`.
   */
  async purge(options: { olderThan: Duration }): Promise<number> {
    const olderMs = parseDuration(options.olderThan, 'olderThan', AGE_MS.least, 'PostgresLockStore.purge', AGE_MS.most);
    const counts = await Promise.all(this.#locks.map((locks) => locks.purge(olderMs)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.#of(hold.key).acquire(hold, place);
  }

  exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
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
    const groups = new Map<DatabaseLocks, number[]>(this.#locks.map((locks) => [locks, []]));
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
    const answers = await Promise.allSettled(this.#databases.map((database) => database.probe()));
    throwIfAllFailed(answers);
    const hears = this.#databases.flatMap(({ hearsTurns }) => hearsTurns ?? []);
    return {
      ...worstOf(answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))),
      hearsTurns: hears.length > 0 ? hears.every(Boolean) : undefined,
      members: answers.length > 1 ? answers.map(({ status }) => ({ reachable: status === 'fulfilled' })) : undefined,
    };
  }

  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    for (const locks of this.#locks) {
      yield* locks.search(prefix);
    }
  }

  /** By the first database whose messages arrive here: every process listens to all of them. */
  async send(text: string, process?: string): Promise<void> {
    const at = this.#databases.findIndex(({ hearsTurns }) => hearsTurns === true);
    await (this.#locks[Math.max(0, at)] as DatabaseLocks).send(text, process);
  }

  onMessage(listener: (text: string) => void): void {
    this.#listeners.onMessage(listener);
  }

  onForced(listener: ForcedListener): void {
    this.#listeners.onForced(listener);
  }

  onTurn(listener: TurnListener): void {
    this.#listeners.onTurn(listener);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    for (const database of this.#databases) {
      database.close();
    }
  }

  #locksCalled(keys: PostgresKeys): readonly DatabaseLocks[] {
    return this.#databases.map((database) => new DatabaseLocks(database, keys, this.process));
  }

  #of(key: string): DatabaseLocks {
    return this.#locks[databaseOf(key, this.#locks.length)] as DatabaseLocks;
  }
}
