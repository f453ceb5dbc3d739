import type { AcquireReply, FoundLock, HoldRecord, Place, StoredLock } from '../core/seam/lock-store.js';
import type { JoinReply } from '../kit/lock-table.js';
import { otherKindOfKey, tooManyHolds } from '../kit/refusals.js';
import type { Database, HeldRow, RowName, RowNames } from './database.js';
import { tooLate } from './errors.js';
import type { Attempt } from './lock-operations.js';
import { LATE } from './operation.js';
import type { StatementLimit } from './statements.js';

/** The longest that renewals wait for rows that others have locked, in milliseconds. */
export const MOST_WAIT_MS = 250;
/** How long one step of a search may take, in milliseconds. */
const SEARCH_MS = 2_000;

/** The answer to an exchange. */
export type ExchangeReply = { readonly released: boolean; readonly reply: AcquireReply | Promise<AcquireReply> };

/** The locks of one database, operation by operation. */
export abstract class DatabaseLocks<D extends Database = Database, Names extends RowNames = RowNames> {
  protected readonly database: D;
  protected readonly keys: Names;
  protected readonly process: string;

  /** `process` is the name of the store instance. */
  constructor(database: D, keys: Names, process: string) {
    this.database = database;
    this.keys = keys;
    this.process = process;
  }

  abstract renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]>;
  abstract inspect(key: string): Promise<StoredLock | null>;
  /** In how many milliseconds a place asks again that is in the queue. */
  protected abstract recheckMs(key: string, place: Place, rank: number, joined: boolean): number;

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.read(await this.database.calls.grant(this.database.operations.ACQUIRE, this.attemptOf(hold, place), hold), place, hold.key);
  }

  async exchange(hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): Promise<ExchangeReply> {
    const { calls, tidying } = this.database;
    const args = { ...this.attemptOf(next, place), released: hold.id, releasedOwner: hold.owner, unanswered: hold.unanswered, mayOvertake };
    const { released, attempt } = await calls.grantOnce(this.database.operations.EXCHANGE, args, hold);
    if (hold.unanswered) {
      tidying.marked();
    }
    // The release was carried out, whatever became of the acquire.
    const isRefused = attempt === LATE || (attempt.fence === undefined && attempt.otherKind);
    return { released, reply: isRefused ? this.acquire(next, place) : this.read(attempt, place, hold.key) };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.database.calls.call(this.database.operations.LEAVE, { key: this.keys.row(key), place: this.#placeOf(name) }, untimed(key));
  }

  async join({ key, owner, fence, id, ttlMs, limitMs }: HoldRecord): Promise<boolean> {
    const args = { key: this.keys.row(key), owner, fence, hold: id, process: this.process, ttlMs: Math.ceil(ttlMs) };
    return this.readJoined(await this.database.calls.grant(this.database.operations.JOIN, args, { key, limitMs }), key);
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { calls, tidying } = this.database;
    const args = { key: this.keys.row(hold.key), hold: hold.id, owner: hold.owner, unanswered: hold.unanswered };
    const released = await calls.call(this.database.operations.RELEASE, args, hold);
    if (hold.unanswered) {
      tidying.marked();
    }
    return released;
  }

  /** Searches for locks of keys that begin with `prefix`, in pages. */
  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    const [first, before] = this.keys.rangeOf(prefix);
    for (let after: RowName | undefined = first; after !== undefined;) {
      const rows: readonly HeldRow[] = await this.database.heldRows(after, before, { key: '', limitMs: SEARCH_MS });
      yield rows.map(({ row, stored }) => ({ ...stored, key: this.keys.key(row) }));
      after = rows.at(-1)?.row;
    }
  }

  forceRelease(key: string, fence: number): Promise<boolean> {
    return this.database.calls.call(this.database.operations.FORCE_RELEASE, { key: this.keys.row(key), fence }, untimed(key));
  }

  async purge(olderMs: number): Promise<number> {
    let count = 0;
    const [prefix, before] = this.keys.rangeOf('');
    for (let after: RowName | null = prefix; after !== null;) {
      const args = { prefix, after, before, olderMs: Math.ceil(olderMs) };
      const reply: { removed: number; last: RowName | null } = await this.database.calls.call(
        this.database.operations.PURGE,
        args,
        untimed(''),
      );
      count += reply.removed;
      after = reply.last;
    }
    return count;
  }

  /** Without `by`, which the procedures of MySQL call `holder`. */
  protected attemptOf({ key, owner, id, ttlMs }: HoldRecord, place: Place | undefined) {
    return {
      key: this.keys.row(key),
      owner,
      hold: id,
      process: this.process,
      ttlMs: Math.ceil(ttlMs),
      place: place ? this.#placeOf(place.name) : null,
      polls: this.database.notifier?.acknowledged !== true,
    };
  }

  protected readJoined(outcome: JoinReply, key: string): boolean {
    if (outcome === LATE) {
      throw tooLate(key, this.database.dialect);
    }
    if (outcome === 'full') {
      throw tooManyHolds(key);
    }
    return outcome === 'joined';
  }

  protected read(answer: Attempt, place: Place | undefined, key: string): AcquireReply {
    if (answer === LATE) {
      throw tooLate(key, this.database.dialect);
    }
    if (answer.fence !== undefined) {
      return answer;
    }
    const { remainingMs, holder, permits, rank, joined, otherKind } = answer;
    if (otherKind) {
      throw otherKindOfKey(key, otherKind);
    }
    return { remainingMs, holder, permits, recheckMs: place && rank >= 0 ? this.recheckMs(key, place, rank, joined) : undefined };
  }

  #placeOf(name: string): string {
    return `${this.process}:${name}`;
  }
}

/** The limit of a statement without a hold. */
export function untimed(key: string): StatementLimit {
  return { key, limitMs: Infinity };
}
