import type { AcquireReply, FoundLock, HoldRecord, Place, StoredLock } from '../../core/seam/lock-store.js';
import { Rechecks } from '../kit/rechecks.js';
import { tooManyHolds } from '../kit/refusals.js';
import { readAttempt, readStored } from '../kit/replies.js';
import type { Call } from './statements.js';
import type { Database } from './database.js';
import { ACQUIRE, type ATTEMPT } from './functions/acquire.js';
import { EXCHANGE } from './functions/exchange.js';
import { JOIN } from './functions/join.js';
import { FORCE_RELEASE, INSPECT } from './functions/operator.js';
import { LEAVE } from './functions/queue.js';
import { RELEASE } from './functions/release.js';
import { RENEW } from './functions/renew.js';
import type { ArgumentsOf } from './functions/sql-function.js';
import { LATE } from './functions/sql-time.js';
import { PURGE } from './functions/upkeep.js';
import { tooLate } from './postgres-errors.js';
import type { PostgresKeys } from './postgres-keys.js';

/** The longest that renewals wait for rows that others have locked, in milliseconds. */
const MOST_WAIT_MS = 250;

/** The locks of one database, operation by operation. */
export class DatabaseLocks {
  readonly #database: Database;
  readonly #keys: PostgresKeys;
  readonly #process: string;
  readonly #rechecks = new Rechecks();

  /** `process` is the name of the store instance. */
  constructor(database: Database, keys: PostgresKeys, process: string) {
    this.#database = database;
    this.#keys = keys;
    this.#process = process;
  }

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const reply = await this.#database.calls.grant(ACQUIRE, this.#attemptOf(hold, place), hold);
    return this.#read(reply, place, hold.key);
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
    const { calls, tidying } = this.#database;
    const args = { ...this.#attemptOf(next, place), released: hold.id, releasedOwner: hold.owner, mayOvertake };
    const [released, nextReply] = (await calls.grantOnce(EXCHANGE, args, hold)) as readonly unknown[];
    tidying.marked();
    const reply = nextReply === LATE ? this.acquire(next, place) : this.#read(nextReply, place, hold.key);
    return { released: released === 1, reply };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.#database.calls.call(LEAVE, { key: this.#keys.row(key), place: this.#placeOf(name) }, untimed(key));
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, owner, fence, id, ttlMs } = hold;
    const args = { key: this.#keys.row(key), owner, fence, hold: id, process: this.#process, ttlMs: Math.ceil(ttlMs) };
    const reply = await this.#database.calls.grant(JOIN, args, hold);
    if (reply === LATE) {
      throw tooLate(key);
    }
    if (reply === -1) {
      throw tooManyHolds(key);
    }
    return reply === 1;
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const limitMs = Math.min(...holds.map((hold) => hold.limitMs));
    const args = {
      keys: holds.map(({ key }) => this.#keys.row(key)),
      owners: holds.map(({ owner }) => owner),
      fences: holds.map(({ fence }) => fence),
      holds: holds.map(({ id }) => id),
      ttlsMs: holds.map(({ ttlMs }) => Math.ceil(ttlMs)),
      bys: holds.map(({ by }) => by),
      lingering: holds.map(({ lingering }) => lingering),
      // Half of what the process waits: its answer for the others has to come in time.
      waitMs: Math.floor(Math.min(limitMs / 2, MOST_WAIT_MS)),
    };
    const replies = await this.#database.calls.call(RENEW, args, { key: holds[0]?.key ?? '', limitMs });
    return (replies as readonly unknown[]).map((reply) => (reply === -1 ? undefined : reply === 1));
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { calls, tidying } = this.#database;
    const released = await calls.call(RELEASE, { key: this.#keys.row(hold.key), hold: hold.id, owner: hold.owner }, hold);
    tidying.marked();
    return released === 1;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    return readStored(await this.#database.calls.call(INSPECT, { key: this.#keys.row(key) }, untimed(key)));
  }

  /** Searches for locks of keys that begin with `prefix`, in pages. */
  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    const first = this.#keys.rowsOf(prefix);
    for (let after: string | undefined = first; after !== undefined;) {
      const rows: Awaited<ReturnType<Database['heldRows']>> = await this.#database.heldRows(after, `${first}\u{10FFFF}`);
      yield rows.map(({ row, stored }) => ({ ...stored, key: this.#keys.key(row) }));
      after = rows.at(-1)?.row;
    }
  }

  send(text: string, process: string | undefined): Promise<void> {
    return this.#database.send(text, this.#keys, process);
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return (await this.#database.calls.call(FORCE_RELEASE, { key: this.#keys.row(key), fence }, untimed(key))) === 1;
  }

  async purge(olderMs: number): Promise<number> {
    let count = 0;
    for (let after: string | null = ''; after !== null;) {
      const args = { prefix: this.#keys.prefix, after, olderMs: Math.ceil(olderMs) };
      const reply = await this.#database.calls.call(PURGE, args, untimed(''));
      const [removed, last] = reply as readonly [number, string | null];
      count += removed;
      after = last;
    }
    return count;
  }

  #placeOf(name: string): string {
    return `${this.#process}:${name}`;
  }

  #attemptOf({ key, owner, id, ttlMs, by }: HoldRecord, place: Place | undefined): ArgumentsOf<typeof ATTEMPT> {
    return {
      key: this.#keys.row(key),
      owner,
      hold: id,
      process: this.#process,
      ttlMs: Math.ceil(ttlMs),
      by: by.replaceAll('\0', ''),
      place: place ? this.#placeOf(place.name) : null,
      polls: this.#database.listener?.acknowledged !== true,
    };
  }

  #read(reply: unknown, place: Place | undefined, key: string): AcquireReply {
    if (reply === LATE) {
      throw tooLate(key);
    }
    const answer = readAttempt(reply);
    if (answer.fence !== undefined) {
      return answer;
    }
    const { remainingMs, holder, rank, joined } = answer;
    const recheckMs = place && rank >= 0 ? this.#rechecks.recheckMs(place, rank, joined, this.#database.listener) : undefined;
    return { remainingMs, holder, recheckMs };
  }
}

/** A call without a hold. */
function untimed(key: string): Call {
  return { key, limitMs: Infinity };
}
