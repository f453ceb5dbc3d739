import { MOST_FENCES, type HoldRecord } from '../core/seam/lock-store.js';
import { MOST_FENCE } from '../kit/protocol.js';
import type { Sql } from '../sql/dialect.js';
import { toLockError } from '../sql/errors.js';
import type { MySqlDatabase } from './mysql-database.js';
import { isA, NotCommitted } from './mysql-errors.js';
import type { MySqlKeys } from './mysql-keys.js';
import { IS_HONEST, LATER, NOW } from './tables.js';

/** For how long no plain statement is tried on a key where one changed nothing, in milliseconds. */
const PAUSE_MS = 2_000;
/** How many such keys are remembered: others try in vain, which costs one statement. */
const MOST_REFUSED = 1_000;
/**
 * For how long no plain statement is sent after one did not commit by itself, in milliseconds: its connection was
 * ended.
 */
const UNCOMMITTED_MS = 60_000;
/**
 * How old the estimate of the server's clock, which refuses late grants, may be, in milliseconds; the procedure renews
 * the estimate.
 */
const CLOCK_MS = 10_000;

/** The effect of a plain statement. */
interface Change {
  readonly affectedRows: number;
  /** A text where the options of the pool say so. */
  readonly insertId: number | string;
}

/**
 * The two operations of a lock that nobody else wants, each as one plain statement: they cost the server half of the
 * procedures. Where such a statement changes nothing, the procedure is called. The statements write the same rows as
 * the procedures, and have their times from the beginning of the statement, which may wait for the row: a lease is
 * never longer than its ttl from the grant on. Where the clock of the session does not follow the clock of the server,
 * they change nothing.
 */
export class ShortCuts {
  readonly #database: MySqlDatabase;
  readonly #keys: MySqlKeys;
  readonly #process: string;
  readonly #granting: string;
  readonly #releasing: string;
  /** Until when none is tried on a key where one changed nothing: somebody else wants it. */
  readonly #refusedUntil = new Map<string, number>();
  /** Until when no plain statement is sent, since one did not commit by itself; 0 where none did not. */
  #uncommittedUntil = 0;

  constructor(database: MySqlDatabase, keys: MySqlKeys, process: string) {
    this.#database = database;
    this.#keys = keys;
    this.#process = process;
    this.#granting = grantingStatement(database.table);
    this.#releasing = releasingStatement(database.table);
  }

  /** The fence; 0 where nothing was granted. */
  async grant(hold: HoldRecord): Promise<number> {
    if (this.#database.calls.clock.isOlderThan(CLOCK_MS)) {
      return 0;
    }
    const change = await this.#try(this.#granting, hold, (row, latest) => grantingValues(row, hold, this.#process, latest));
    return Number(change?.insertId ?? 0);
  }

  /** Whether it was released. */
  async release(hold: HoldRecord): Promise<boolean> {
    return (await this.#try(this.#releasing, hold, (row) => releasingValues(row, hold, this.#process))) !== undefined;
  }

  /** The effect of a plain statement; undefined where it changed nothing, or is not worth a try. */
  async #try(
    sql: string,
    { key, limitMs }: HoldRecord,
    valuesFor: (row: Buffer, latest: number) => readonly unknown[],
  ): Promise<Change | undefined> {
    if (this.#isRefused(key) || performance.now() < this.#uncommittedUntil) {
      return undefined;
    }
    const row = this.#keys.row(key);
    const statementFor = (latest: number): Sql => ({ sql, values: valuesFor(row, latest) });
    try {
      const change = (await this.#database.calls.sendPlain(statementFor, { key, limitMs })) as Change;
      if (change.affectedRows > 0 && (sql === this.#releasing || Number(change.insertId) > 0)) {
        return change;
      }
    } catch (error) {
      // Otherwise it did nothing: the server refused it because of a concurrent one, or a session does not commit by
      // itself, or only reads.
      if (error instanceof NotCommitted) {
        this.#uncommittedUntil = performance.now() + UNCOMMITTED_MS;
      } else if (!isA(error, 'conflict') && !isA(error, 'readOnlySession')) {
        throw toLockError(error, key, this.#database.dialect);
      }
    }
    this.#refuse(key);
    return undefined;
  }

  #isRefused(key: string): boolean {
    const until = this.#refusedUntil.get(key);
    if (until !== undefined && until <= performance.now()) {
      this.#refusedUntil.delete(key);
      return false;
    }
    return until !== undefined;
  }

  #refuse(key: string): void {
    if (this.#refusedUntil.size >= MOST_REFUSED) {
      this.#refusedUntil.clear();
    }
    this.#refusedUntil.set(key, performance.now() + PAUSE_MS);
  }
}

/**
 * Grants a lock that is free, and that nobody waits for. The fence comes back as the server's inserted id; 0 where
 * nothing was granted.
 */
export function grantingStatement(table: string): string {
  const isFree = `ends <= ${NOW} AND queue IS NULL AND done_ends <= ${NOW} AND fence <= ${MOST_FENCE - 2 * MOST_FENCES}`;
  // The assignments are made from left to right: the first one decides, and tells the others by the inserted id.
  return `INSERT INTO ${table} (name, owner, fence, ttl_ms, since, holder, ends, holds)
SELECT ?, ?, last_insert_id(${NOW}), ?, ${NOW}, ?, ${LATER} + ? * 1000, ? FROM dual WHERE ${IS_HONEST} AND (? = 0 OR ${LATER} <= ? * 1000)
ON DUPLICATE KEY UPDATE fence = CASE WHEN ${isFree} THEN last_insert_id(greatest(fence + ${MOST_FENCES}, ${NOW})) ELSE fence + last_insert_id(0) END,
  ${granted('owner', '?')}, ${granted('ttl_ms', '?')}, ${granted('since', NOW)}, ${granted('holder', '?')}, ${granted('ends', `${LATER} + ? * 1000`)},
  ${granted('holds', '?')}, ${granted('turn', 'NULL')}`;
}

/** An assignment that is made where the lock was granted. */
function granted(column: string, value: string): string {
  return `${column} = CASE WHEN last_insert_id() > 0 THEN ${value} ELSE ${column} END`;
}

/** The values of it. */
export function grantingValues(row: Buffer, { owner, id, ttlMs, by }: HoldRecord, process: string, latest: number): unknown[] {
  const lease = Math.ceil(ttlMs);
  const [ownerBytes, byBytes, holds] = [Buffer.from(owner), Buffer.from(by), holdsOf(id, process)];
  return [...[row, ownerBytes, lease, byBytes, lease, holds, latest, latest], ...[ownerBytes, lease, byBytes, lease, holds]];
}

/** Releases the only hold of a lock that nobody waits for, and leaves no done mark. */
export function releasingStatement(table: string): string {
  return `UPDATE ${table} SET owner = NULL, holds = NULL, turn = NULL, ends = ${NOW}
WHERE ${IS_HONEST} AND name = ? AND owner = ? AND holds = ? AND ends > ${LATER} AND queue IS NULL`;
}

/** The values of it. */
export function releasingValues(row: Buffer, { owner, id }: HoldRecord, process: string): unknown[] {
  return [row, Buffer.from(owner), holdsOf(id, process)];
}

function holdsOf(id: string, process: string): Buffer {
  return Buffer.from(`;${id}=${process};`);
}
