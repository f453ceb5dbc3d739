import { parseDuration, type Duration } from '../../core/duration.js';
import { LockStoreError } from '../../core/errors.js';
import type {
  AcquireReply,
  ForcedListener,
  HoldRecord,
  LockStore,
  Operator,
  OpenOptions,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../../core/lock-store.js';
import { tooManyHolds } from '../kit/refusals.js';
import { checkPrefix } from '../kit/prefix.js';
import { processName } from '../kit/process-name.js';
import { Database } from './database.js';
import { LATE } from './functions.js';
import { tooLate } from './postgres-errors.js';
import { databaseOf, PostgresKeys } from './postgres-keys.js';
import { checkOptions, checkPools, type PostgresLockStoreOptions } from './postgres-lock-store.options.js';
import type { PostgresPool } from './postgres-pool.js';
import { readAttempt, readStored } from './replies.js';
import { Wakeups } from './wakeups.js';

/** The longest that renewals wait for rows that others have locked, in milliseconds. */
const MOST_WAIT_MS = 250;
/** The least age of what a purge takes away, in milliseconds. */
const LEAST_AGE_MS = 60_000;

/**
 * Locks in a PostgreSQL database, or in several: a key lives in one of them, chosen by a hash of its name and the order of the pools, so every
 * process has to pass the same databases in the same order; each of several databases remembers its number. Whoever
 * waits is told of its turn, first come first served.
 *
 * The pools are of `pg`, and are never closed. Each operation is one statement outside of any transaction. The tables are made by
 * `ensureSchema()`, or by hand with what `schemaSql()` returns. Throws `LockConfigurationError` for what is no pool.
 */
export class PostgresLockStore implements LockStore, Turns, Tickets, Operator {
  readonly expires = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  /** Which store instance this is; shows where it runs. */
  readonly #process = processName();
  readonly #databases: readonly Database[];
  readonly #wakeups = new Wakeups((row) => this.#keys.key(row));
  #keys = new PostgresKeys('lock');

  constructor(source: PostgresPool | readonly PostgresPool[], options: PostgresLockStoreOptions = {}) {
    const pools = checkPools(source);
    const { schema, listen } = checkOptions(options, pools);
    this.#databases = pools.map((pool, at) => new Database(pool, schema, listen[at]));
  }

  async open({ prefix, warn }: OpenOptions): Promise<void> {
    this.#keys = new PostgresKeys(checkPrefix(prefix));
    try {
      await Promise.all(this.#databases.map((database) => this.#openOne(database, warn)));
    } catch (error) {
      await this.close();
      throw error;
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
   * Takes the rows of locks away that nobody has held or waited for since `olderThan` (at least one minute), and answers how many. A
   * row keeps the last fence of its key. Without it the next fence comes from the server's clock alone, and is higher all the
   * same, unless that clock was set back by more than `olderThan`.
   */
  async purge(options: { olderThan: Duration }): Promise<number> {
    const olderMs = parseDuration(options.olderThan, 'olderThan', LEAST_AGE_MS, 'PostgresLockStore.purge');
    const counts = await Promise.all(this.#databases.map((database) => this.#purgeOne(database, olderMs)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const database = this.#of(hold.key);
    const reply = await database.callInTime('acquire', this.#attemptOf(hold, place, database), hold.key, hold.limitMs);
    return this.#read(reply, place, database, hold.key);
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
    const database = this.#of(hold.key);
    const args = [...this.#attemptOf(next, place, database), hold.id, mayOvertake];
    const record = { ...next };
    const [answer, nextAnswer] = (await database.callOnceInTime('pass', args, hold.key, hold.limitMs)) as readonly unknown[];
    database.tidyLater();
    const reply = nextAnswer === LATE ? this.acquire(record, place) : this.#read(nextAnswer, place, database, hold.key);
    return { released: answer === 1, reply };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.#of(key).call('leave', [this.#keys.row(key), `${this.#process}:${name}`], key, Infinity);
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, owner, fence, id, ttlMs } = hold;
    const args = [this.#keys.row(key), owner, fence, id, this.#process, Math.ceil(ttlMs)];
    const reply = await this.#of(key).callInTime('join', args, key, hold.limitMs);
    if (reply === LATE) {
      throw tooLate(key);
    }
    if (reply === -1) {
      throw tooManyHolds(key);
    }
    return reply === 1;
  }

  /** A database that is away takes only its own locks along. */
  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const answers: (boolean | undefined)[] = holds.map(() => undefined);
    const groups = this.#databases.map((database) => {
      const members = holds.flatMap((hold, at) => (this.#of(hold.key) === database ? [at] : []));
      return { database, members, of: (at: number) => holds[at] as HoldRecord };
    });
    const renewals = await Promise.allSettled(
      groups
        .filter(({ members }) => members.length > 0)
        .map(async ({ database, members, of }) => {
          const renewed = await this.#renewIn(database, members.map(of));
          members.forEach((at, index) => (answers[at] = renewed[index]));
        }),
    );
    const failed = renewals.filter((renewal) => renewal.status === 'rejected');
    if (failed.length > 0 && failed.length === renewals.length) {
      throw failed[0]?.reason;
    }
    return answers;
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { key, id } = hold;
    const database = this.#of(key);
    const released = await database.call('release', [this.#keys.row(key), id], key, hold.limitMs);
    database.tidyLater();
    return released === 1;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    return readStored(await this.#of(key).call('inspect', [this.#keys.row(key)], key, Infinity));
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return (await this.#of(key).call('force_release', [this.#keys.row(key), fence], key, Infinity)) === 1;
  }

  onForced(listener: ForcedListener): void {
    this.#wakeups.onForced(listener);
  }

  onTurn(listener: TurnListener): void {
    this.#wakeups.onTurn(listener);
  }

  async close(): Promise<void> {
    this.#wakeups.close();
    for (const database of this.#databases) {
      database.close();
    }
  }

  async #openOne(database: Database, warn: (message: string) => void): Promise<void> {
    try {
      await database.check(warn);
      await database.checkNumber(this.#keys.numberRow, `${this.#databases.indexOf(database) + 1} of ${this.#databases.length}`);
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        throw error;
      }
      warn(`${error.detail} Locked calls fail until then.`);
    }
    await database.listen(this.#process, this.#wakeups, warn);
  }

  #of(key: string): Database {
    return this.#databases[databaseOf(key, this.#databases.length)] as Database;
  }

  /** What `acquire` is told of a hold and its place. */
  #attemptOf({ key, owner, id, ttlMs, by }: HoldRecord, place: Place | undefined, database: Database): unknown[] {
    const member = place ? `${this.#process}:${place.name}` : null;
    return [this.#keys.row(key), owner, id, this.#process, Math.ceil(ttlMs), by.replaceAll('\0', ''), member, !database.hears];
  }

  async #renewIn(database: Database, holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const rows = holds.map(({ key }) => this.#keys.row(key));
    const ttls = holds.map(({ ttlMs }) => Math.ceil(ttlMs));
    const limitMs = Math.min(...holds.map((hold) => hold.limitMs));
    const args = [
      rows,
      holds.map(({ owner }) => owner),
      holds.map(({ fence }) => fence),
      holds.map(({ id }) => id),
      ttls,
      holds.map(({ lingering }) => lingering),
      // Half of what the process waits: its answer for the others has to come in time.
      Math.floor(Math.min(limitMs / 2, MOST_WAIT_MS)),
    ];
    const replies = await database.call('renew', args, holds[0]?.key ?? '', limitMs);
    return (replies as readonly unknown[]).map((reply) => (reply === -1 ? undefined : reply === 1));
  }

  #read(reply: unknown, place: Place | undefined, database: Database, key: string): AcquireReply {
    if (reply === LATE) {
      throw tooLate(key);
    }
    const answer = readAttempt(reply);
    if (answer.fence !== undefined) {
      return answer;
    }
    const { remainingMs, holder, rank, joined } = answer;
    const recheckMs = place && rank >= 0 ? this.#wakeups.recheckMs(database.listener, place, rank, joined) : undefined;
    return { remainingMs, holder, recheckMs };
  }

  async #purgeOne(database: Database, olderMs: number): Promise<number> {
    let count = 0;
    for (let after: string | null = ''; after !== null;) {
      const args = [this.#keys.prefix, after, olderMs];
      const [removed, last] = (await database.call('purge', args, '', Infinity)) as readonly [number, string | null];
      count += removed;
      after = last;
    }
    return count;
  }
}
