import type { AcquireReply, HoldRecord, Place, Shares, StoredLock } from '../core/seam/lock-store.js';
import { leastLimitOf } from '../core/seam/time.js';
import { Rechecks } from '../kit/rechecks.js';
import { START_MS } from '../sql/database.js';
import { DatabaseLocks, MOST_WAIT_MS, untimed } from '../sql/database-locks.js';
import { OPERATIONS } from './functions.js';
import { channelOf } from './listening/listener.js';
import { partsOf } from './listening/message-parts.js';
import type { PostgresDatabase } from './postgres-database.js';
import type { PostgresKeys } from './postgres-keys.js';

/** The locks of one database, operation by operation. */
export class PostgresLocks extends DatabaseLocks<PostgresDatabase, PostgresKeys> {
  readonly #rechecks = new Rechecks();

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    if (hold.shares === undefined) {
      return super.acquire(hold, place);
    }
    const { calls, tidying } = this.database;
    const args = { ...this.attemptOf(hold, place), key: this.keys.row(hold.key), shares: countOf(hold.shares) };
    const answer = await calls.grant(OPERATIONS.ACQUIRE_SHARED, args, hold);
    // Its row stays where nobody visits the key again.
    tidying.marked();
    return this.read(answer, place, hold.key);
  }

  override async join(hold: HoldRecord): Promise<boolean> {
    if (hold.shares === undefined) {
      return super.join(hold);
    }
    const { key, owner, fence, id, ttlMs, by, shares } = hold;
    const args = { key: this.keys.row(key), owner, fence, hold: id, process: this.process, ttlMs: Math.ceil(ttlMs) };
    const outcome = await this.database.calls.grant(OPERATIONS.JOIN_SHARED, { ...args, by: storedBy(by), shares: countOf(shares) }, hold);
    return this.readJoined(outcome, key);
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const limitMs = leastLimitOf(holds);
    const args = {
      keys: holds.map(({ key }) => this.keys.row(key)),
      owners: holds.map(({ owner }) => owner),
      fences: holds.map(({ fence }) => fence),
      holds: holds.map(({ id }) => id),
      ttlsMs: holds.map(({ ttlMs }) => Math.ceil(ttlMs)),
      bys: holds.map(({ by }) => storedBy(by)),
      lingering: holds.map(({ lingering }) => lingering),
      // Half of the time that the process waits: its answer for the other holds has to come in time.
      waitMs: Math.floor(Math.min(limitMs / 2, MOST_WAIT_MS)),
    };
    return this.database.calls.call(OPERATIONS.RENEW, args, { key: holds[0]?.key ?? '', limitMs });
  }

  inspect(key: string): Promise<StoredLock | null> {
    return this.database.calls.call(OPERATIONS.INSPECT, { key: this.keys.row(key) }, untimed(key));
  }

  /** Sends a text to a process, or to all where there is none. */
  async send(text: string, process: string | undefined): Promise<void> {
    const channel = process === undefined ? this.keys.everybody(this.database.schema) : channelOf(process);
    const sql = 'SELECT pg_notify($1, part) FROM unnest($2::text[]) AS part';
    await this.database.calls.run({ sql, values: [channel, partsOf(text)] }, { key: '', limitMs: START_MS.query });
  }

  protected override attemptOf(hold: HoldRecord, place: Place | undefined) {
    return { ...super.attemptOf(hold, place), by: storedBy(hold.by) };
  }

  protected recheckMs(_key: string, place: Place, rank: number, joined: boolean): number {
    return this.#rechecks.recheckMs(place, rank, joined, this.database.notifier);
  }
}

/** The count of permits; 0 for a hold that reads. */
function countOf(shares: Shares): number {
  return shares === 'read' ? 0 : shares;
}

/** PostgreSQL stores every character but NUL. */
function storedBy(by: string): string {
  return by.replaceAll('\0', '');
}
