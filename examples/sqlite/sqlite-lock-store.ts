import Database from 'libsql';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError, LockConfigurationError, LockStoreError } from 'nestjs-distributed-lock';
import type { AcquireReply, HoldRecord, LockStore, OpenOptions, Tickets } from 'nestjs-distributed-lock';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS fences (id INTEGER PRIMARY KEY CHECK (id = 0), last INTEGER NOT NULL);
  INSERT OR IGNORE INTO fences VALUES (0, 0);
  CREATE TABLE IF NOT EXISTS holds (id TEXT PRIMARY KEY, name TEXT, owner TEXT, fence INTEGER, held_by TEXT, since REAL, ends REAL);
  CREATE INDEX IF NOT EXISTS holds_of_a_lock ON holds (name);
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
  #hasTables = false;

  constructor(path: string) {
    this.#path = path;
  }

  async open({ prefix, warn }: OpenOptions): Promise<void> {
    this.#prefix = prefix;
    this.#hasTables = false;
    try {
      this.#database = new Database(this.#path, { timeout: 0 });
    } catch (cause) {
      const detail = `SqliteLockStore: ${this.#path} cannot be opened: ${String(cause)}. Make sure that its folder is there.`;
      throw new LockConfigurationError(detail, '', { cause });
    }
    await this.#retry('', 1_000, () => undefined).catch((error: LockStoreError) => {
      if (error.unknown) {
        throw error;
      }
      warn(`${error.detail} Locked calls fail while another process writes.`);
    });
  }

  async close(): Promise<void> {
    this.#database?.close();
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
      return { fence: lock?.fence ?? this.#grant(hold, now) };
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
      if (!this.#extend(hold, now)) {
        this.#add(hold, lock);
        this.#extend(hold, now);
      }
      return true;
    });
  }

  #grant(hold: HoldRecord, now: number): number {
    const { fence } = this.#query<HoldRow>('UPDATE fences SET last = max(last + 1, ?) RETURNING last AS fence', now * 1_000)[0]!;
    this.#add(hold, { owner: hold.owner, fence, held_by: hold.by, since: now, ends: now + hold.ttlMs });
    return fence;
  }

  /** Makes the lease longer for a hold that is in; sets it for one that lingers alone. False where the hold is not in. */
  #extend({ id, key, owner, fence, ttlMs, lingering }: HoldRecord, now: number): boolean {
    const name = this.#name({ key });
    const sql = 'SELECT id FROM holds WHERE id = ? AND name = ? AND owner = ? AND fence = ?';
    const isIn = this.#query(sql, id, name, owner, fence).length > 0;
    if (isIn) {
      const isSet = lingering && this.#countOf(name) === 1;
      this.#query('UPDATE holds SET ends = max(?, ends * ?) WHERE name = ?', now + ttlMs, isSet ? 0 : 1, name);
    }
    return isIn;
  }

  #add({ id, key }: HoldRecord, { owner, fence, held_by, since, ends }: HoldRow): void {
    if (this.#countOf(this.#name({ key })) >= 1_000) {
      throw new LockConfigurationError(`Lock "${key}": 1,000 holds are in it, as many as a lock may have.`, key);
    }
    this.#query('INSERT INTO holds VALUES (?, ?, ?, ?, ?, ?, ?)', id, this.#name({ key }), owner, fence, held_by, since, ends);
  }

  #countOf(name: string): number {
    return this.#query<{ holds: number }>('SELECT count(*) AS holds FROM holds WHERE name = ?', name)[0]!.holds;
  }

  #lockOf(hold: HoldRecord): HoldRow | undefined {
    return this.#query<HoldRow>('SELECT * FROM holds WHERE name = ? LIMIT 1', this.#name(hold))[0];
  }

  /** What the first release of this hold answered. */
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

  /** One transaction, in which nothing is left of what has ended. */
  #write<T>({ key, limitMs }: HoldRecord, work: (now: number) => T): Promise<T> {
    return this.#retry(key, limitMs, (database) =>
      database
        .transaction(() => {
          const now = Date.now();
          this.#query('DELETE FROM holds WHERE ends <= ?', now);
          this.#query('DELETE FROM done WHERE ends <= ?', now);
          return work(now);
        })
        .immediate(),
    );
  }

  /** Once for each connection. Another process that writes may have kept `open` from it. */
  #makeTables(database: Database.Database): void {
    if (!this.#hasTables) {
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${SCHEMA}`);
      this.#hasTables = true;
    }
  }

  /** Tries again while another process writes. A write that is refused was not carried out. */
  async #retry<T>(key: string, limitMs: number, work: (database: Database.Database) => T): Promise<T> {
    const giveUpAt = performance.now() + limitMs - RETRY_MS;
    for (;;) {
      try {
        const database = this.#database as Database.Database;
        this.#makeTables(database);
        return work(database);
      } catch (error) {
        const isBusy = error instanceof Database.SqliteError && error.code === 'SQLITE_BUSY';
        const subject = key === '' ? '' : `Lock "${key}": `;
        if (isLockError(error)) {
          throw error;
        } else if (!isBusy || performance.now() > giveUpAt) {
          throw new LockStoreError(`${subject}SQLite failed: ${String(error)}.`, key, { cause: error, unknown: !isBusy });
        }
      }
      await sleep(RETRY_MS);
    }
  }
}
