import Database from 'libsql';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError, LockConfigurationError, LockStoreError } from 'nestjs-distributed-lock';
import type { AcquireReply, HoldRecord, LockStore, OpenOptions, Tickets } from 'nestjs-distributed-lock';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS fences (id INTEGER PRIMARY KEY CHECK (id = 0), last INTEGER NOT NULL);
  INSERT OR IGNORE INTO fences VALUES (0, 0);
  CREATE TABLE IF NOT EXISTS holds (id TEXT, name TEXT, owner TEXT, fence INTEGER, held_by TEXT, since REAL, ends REAL, PRIMARY KEY (name, id));
  CREATE TABLE IF NOT EXISTS done (id TEXT PRIMARY KEY, answer INTEGER, ends REAL);
`;
/** How long a released hold is remembered, in milliseconds. */
const DONE_MS = 10_000;
/** How long the store waits while another process writes, in milliseconds. */
const RETRY_MS = 5;

/** A hold in a lock. All holds of a lock have the same owner, fence and lease. */
type HoldRow = { owner: string; fence: number; held_by: string; since: number; ends: number };

/** Locks in an SQLite file, for the processes of one machine. Leases end by the wall clock of the machine. */
export class SqliteLockStore implements LockStore, Tickets {
  readonly expires = true;
  readonly tickets: Tickets = this;
  readonly #path: string;
  #prefix = '';
  #database: Database.Database | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async open({ prefix }: OpenOptions): Promise<void> {
    this.#prefix = prefix;
  }

  async close(): Promise<void> {
    this.#database?.close();
    this.#database = undefined;
  }

  acquire(hold: HoldRecord): Promise<AcquireReply> {
    return this.#write(hold, (now) => {
      if (this.#firstAnswer(hold) !== undefined) {
        return { remainingMs: 0, holder: { by: '', heldMs: 0 } };
      }
      const lock = this.#lockOf(hold);
      if (lock && !this.#extend({ ...hold, fence: lock.fence }, now)) {
        return { remainingMs: lock.ends - now, holder: { by: lock.held_by, heldMs: now - lock.since } };
      }
      const { fence } = lock ?? this.#query<HoldRow>('UPDATE fences SET last = max(last + 1, ?) RETURNING last AS fence', now * 1_000)[0]!;
      if (!lock) {
        this.#add(hold, { owner: hold.owner, fence, held_by: hold.by, since: now, ends: now + hold.ttlMs }, now);
      }
      return { fence };
    });
  }

  renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    const limitMs = Math.min(...holds.map((hold) => hold.limitMs));
    return this.#write({ ...holds[0]!, limitMs }, (now) => holds.map((hold) => this.#extend(hold, now)));
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#write(hold, (now) => {
      const sql = 'DELETE FROM holds WHERE id = ? AND name = ? AND owner = ? RETURNING id';
      const answer = this.#firstAnswer(hold) ?? this.#query(sql, hold.id, this.#name(hold), hold.owner).length > 0;
      this.#query('INSERT OR IGNORE INTO done VALUES (?, ?, ?)', hold.id, Number(answer), now + DONE_MS);
      return answer;
    });
  }

  join(hold: HoldRecord): Promise<boolean> {
    return this.#write(hold, (now) => {
      const lock = this.#lockOf(hold);
      if (lock?.owner !== hold.owner || lock.fence !== hold.fence || this.#firstAnswer(hold) !== undefined) {
        return false;
      }
      return this.#extend(hold, now) || this.#add(hold, lock, now);
    });
  }

  /** Lengthens the lease of a hold that is in its lock; sets it where the hold lingers alone. False for other holds. */
  #extend({ id, key, owner, fence, ttlMs, lingering }: HoldRecord, now: number): boolean {
    const name = this.#name({ key });
    const holds = this.#query('SELECT id FROM holds WHERE name = ? AND owner = ? AND fence = ?', name, owner, fence) as { id: string }[];
    const isIn = holds.some((hold) => hold.id === id);
    const kept = lingering && holds.length === 1 ? 0 : 1;
    this.#query('UPDATE holds SET ends = max(?, ends * ?) WHERE name = ? AND ?', now + ttlMs, kept, name, Number(isIn));
    return isIn;
  }

  #add(hold: HoldRecord, { owner, fence, held_by, since, ends }: HoldRow, now: number): boolean {
    const name = this.#name(hold);
    if (this.#query('SELECT id FROM holds WHERE name = ?', name).length >= 1_000) {
      throw new LockConfigurationError(`Lock "${hold.key}": 1,000 holds are in it, as many as a lock may have.`, hold.key);
    }
    this.#query('INSERT INTO holds VALUES (?, ?, ?, ?, ?, ?, ?)', hold.id, name, owner, fence, held_by, since, ends);
    return this.#extend({ ...hold, fence }, now);
  }

  #lockOf(hold: HoldRecord): HoldRow | undefined {
    return this.#query<HoldRow>('SELECT * FROM holds WHERE name = ? LIMIT 1', this.#name(hold))[0];
  }

  /** The answer of the first release of this hold. */
  #firstAnswer({ id }: HoldRecord): boolean | undefined {
    return this.#query<{ answer: number }>('SELECT answer FROM done WHERE id = ?', id).map(({ answer }) => answer === 1)[0];
  }

  /** JSON escapes the characters that SQLite does not keep, and separates prefix and key. */
  #name({ key }: { readonly key: string }): string {
    return JSON.stringify([this.#prefix, key]);
  }

  #query<Row>(sql: string, ...values: readonly (string | number)[]): Row[] {
    return this.#database?.prepare(sql).all(...values) as Row[];
  }

  /** One transaction, without expired locks. Tries again where it was refused, since another process writes. */
  async #write<T>({ key, limitMs }: HoldRecord, work: (now: number) => T): Promise<T> {
    const giveUpAt = performance.now() + limitMs - RETRY_MS;
    for (;;) {
      try {
        return this.#connected()
          .transaction(() => {
            const now = Date.now();
            ['holds', 'done'].forEach((table) => this.#query(`DELETE FROM ${table} WHERE ends <= ?`, now));
            return work(now);
          })
          .immediate();
      } catch (error) {
        const isBusy = error instanceof Database.SqliteError && error.code === 'SQLITE_BUSY';
        if (isLockError(error) || !isBusy || performance.now() > giveUpAt) {
          throw isLockError(error) ? error : new LockStoreError(`Lock "${key}": SQLite failed.`, key, { cause: error, unknown: !isBusy });
        }
      }
      await sleep(RETRY_MS);
    }
  }

  /** Connects with the first command: another process may write while the store is opened. */
  #connected(): Database.Database {
    if (!this.#database) {
      const database = new Database(this.#path, { timeout: 0 });
      try {
        database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${SCHEMA}`);
      } catch (error) {
        database.close();
        throw error;
      }
      this.#database = database;
    }
    return this.#database;
  }
}
