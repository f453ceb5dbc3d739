import type { AcquireReply, FoundLock, HoldRecord, Place, StoredLock } from '../../core/seam/lock-store.js';
import { tooManyHolds } from '../kit/refusals.js';
import type { AttemptReply } from '../kit/replies.js';
import type { Database, HeldRow, RowNames } from './database.js';
import type { ExchangeReply, LocksOfDatabase } from './database-store.js';
import { tooLate } from './errors.js';
import type { Operation, Parameters } from './operation.js';
import type { Call } from './statements.js';

/** The longest that renewals wait for rows that others have locked, in milliseconds. */
export const MOST_WAIT_MS = 250;
/** How long one step of a search may take, in milliseconds. */
const SEARCH_MS = 2_000;

type AttemptName = 'key' | 'owner' | 'hold' | 'process' | 'ttlMs' | 'place' | 'polls' | 'latest';

/** The operations that the databases have in common, by the names of their parameters. */
export interface LockOperations {
  readonly acquire: Operation<Parameters<AttemptName>>;
  readonly exchange: Operation<Parameters<AttemptName | 'released' | 'releasedOwner' | 'mayOvertake'>>;
  readonly leave: Operation<Parameters<'key' | 'place'>>;
  readonly join: Operation<Parameters<'key' | 'owner' | 'fence' | 'hold' | 'process' | 'ttlMs' | 'latest'>>;
  readonly release: Operation<Parameters<'key' | 'hold' | 'owner'>>;
  readonly forceRelease: Operation<Parameters<'key' | 'fence'>>;
  readonly purge: Operation<Parameters<'after' | 'olderMs'>>;
}

/** The locks of one database, operation by operation. */
export abstract class DatabaseLocks<Name extends string | Buffer, Keys extends RowNames<Name>, Reply> implements LocksOfDatabase {
  protected readonly keys: Keys;
  protected readonly process: string;
  readonly #database: Database<Name, Keys, Reply>;
  readonly #operations: LockOperations;

  /** `process` is the name of the store instance. */
  constructor(database: Database<Name, Keys, Reply>, keys: Keys, process: string, operations: LockOperations) {
    this.#database = database;
    this.keys = keys;
    this.process = process;
    this.#operations = operations;
  }

  abstract renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]>;
  abstract inspect(key: string): Promise<StoredLock | null>;

  /** The answer of an operation that did something or not. */
  protected abstract readFlag(reply: Reply, key: string): boolean;
  protected abstract readJoin(reply: Reply, key: string): 'joined' | 'ended' | 'full';
  /** Reads the reply to an attempt that is not late. */
  protected abstract readAttempt(reply: Reply, key: string): AttemptReply;
  protected abstract readExchange(reply: Reply, key: string): { readonly released: boolean; readonly attempt: Reply };
  /** How many rows were removed, and the last one that was looked at; null where there are no more. */
  protected abstract readPurge(reply: Reply): { readonly removed: number; readonly last: Name | null };
  /** In how many milliseconds a place asks again that is in the queue. */
  protected abstract recheckMs(key: string, place: Place, rank: number, joined: boolean): number;
  /** The place was in the queue, and was granted the lock. */
  protected granted(_key: string, _place: Place): void {}

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const reply = await this.#database.calls.grant(this.#operations.acquire, this.attemptOf(hold, place), hold);
    return this.#read(reply, place, hold.key);
  }

  async exchange(hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): Promise<ExchangeReply> {
    const { calls, tidying } = this.#database;
    const args = { ...this.attemptOf(next, place), released: hold.id, releasedOwner: hold.owner, mayOvertake };
    const answer = await calls.grantOnce(this.#operations.exchange, args, hold);
    tidying.marked();
    const { released, attempt } = this.readExchange(answer, hold.key);
    return { released, reply: calls.isLate(attempt) ? this.acquire(next, place) : this.#read(attempt, place, hold.key) };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.#database.calls.call(this.#operations.leave, { key: this.keys.row(key), place: this.#placeOf(name) }, untimed(key));
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, owner, fence, id, ttlMs } = hold;
    const { calls, dialect } = this.#database;
    const args = { key: this.keys.row(key), owner, fence, hold: id, process: this.process, ttlMs: Math.ceil(ttlMs) };
    const reply = await calls.grant(this.#operations.join, args, hold);
    if (calls.isLate(reply)) {
      throw tooLate(key, dialect);
    }
    const outcome = this.readJoin(reply, key);
    if (outcome === 'full') {
      throw tooManyHolds(key);
    }
    return outcome === 'joined';
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { calls, tidying } = this.#database;
    const args = { key: this.keys.row(hold.key), hold: hold.id, owner: hold.owner };
    const reply = await calls.call(this.#operations.release, args, hold);
    tidying.marked();
    return this.readFlag(reply, hold.key);
  }

  /** Searches for locks of keys that begin with `prefix`, in pages. */
  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    const [first, before] = this.keys.rangeOf(prefix);
    for (let after: Name | undefined = first; after !== undefined;) {
      const rows: readonly HeldRow<Name>[] = await this.#database.heldRows(after, before, { key: '', limitMs: SEARCH_MS });
      yield rows.map(({ row, stored }) => ({ ...stored, key: this.keys.key(row) }));
      after = rows.at(-1)?.row;
    }
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const reply = await this.#database.calls.call(this.#operations.forceRelease, { key: this.keys.row(key), fence }, untimed(key));
    return this.readFlag(reply, key);
  }

  async purge(olderMs: number): Promise<number> {
    let count = 0;
    const [prefix, before] = this.keys.rangeOf('');
    for (let after: Name | null = prefix; after !== null;) {
      const args = { prefix, after, before, olderMs: Math.ceil(olderMs) };
      const { removed, last } = this.readPurge(await this.#database.calls.call(this.#operations.purge, args, untimed('')));
      count += removed;
      after = last;
    }
    return count;
  }

  protected attemptOf({ key, owner, id, ttlMs }: HoldRecord, place: Place | undefined) {
    return {
      key: this.keys.row(key),
      owner,
      hold: id,
      process: this.process,
      ttlMs: Math.ceil(ttlMs),
      place: place ? this.#placeOf(place.name) : null,
      polls: !this.#database.isNotified,
    };
  }

  #placeOf(name: string): string {
    return `${this.process}:${name}`;
  }

  #read(reply: Reply, place: Place | undefined, key: string): AcquireReply {
    const { calls, dialect } = this.#database;
    if (calls.isLate(reply)) {
      throw tooLate(key, dialect);
    }
    const answer = this.readAttempt(reply, key);
    if (answer.fence !== undefined) {
      if (place) {
        this.granted(key, place);
      }
      return answer;
    }
    const { remainingMs, holder, rank, joined } = answer;
    return { remainingMs, holder, recheckMs: place && rank >= 0 ? this.recheckMs(key, place, rank, joined) : undefined };
  }
}

/** A call without a hold. */
export function untimed(key: string): Call {
  return { key, limitMs: Infinity };
}
