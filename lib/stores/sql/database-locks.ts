import type { AcquireReply, FoundLock, HoldRecord, Place, StoredLock } from '../../core/seam/lock-store.js';
import { tooManyHolds } from '../kit/refusals.js';
import type { AttemptReply } from '../kit/replies.js';
import type { Database, RowName, RowNames } from './database.js';
import { tooLate } from './errors.js';
import { LATE, type Operation, type Parameters } from './operation.js';
import type { Call } from './statements.js';

/** The longest that renewals wait for rows that others have locked, in milliseconds. */
export const MOST_WAIT_MS = 250;
/** How long one step of a search may take, in milliseconds. */
const SEARCH_MS = 2_000;

export type Attempt = AttemptReply | typeof LATE;
type AttemptParameters = Parameters<'key' | 'owner' | 'hold' | 'process' | 'ttlMs' | 'place' | 'polls' | 'latest'>;
type JoinParameters = Parameters<'key' | 'owner' | 'fence' | 'hold' | 'process' | 'ttlMs' | 'latest'>;

/** The operations that the databases have in common, by the names of their parameters, and what they reply. */
export interface LockOperations {
  readonly ACQUIRE: Operation<AttemptParameters, Attempt>;
  readonly EXCHANGE: Operation<
    AttemptParameters & Parameters<'released' | 'releasedOwner' | 'mayOvertake'>,
    { readonly released: boolean; readonly attempt: Attempt }
  >;
  readonly LEAVE: Operation<Parameters<'key' | 'place'>>;
  readonly JOIN: Operation<JoinParameters, 'joined' | 'ended' | 'full' | typeof LATE>;
  readonly RELEASE: Operation<Parameters<'key' | 'hold' | 'owner'>, boolean>;
  readonly FORCE_RELEASE: Operation<Parameters<'key' | 'fence'>, boolean>;
  /** Replies how many rows were removed, and the last one that was looked at; null where there are no more. */
  readonly PURGE: Operation<Parameters<'after' | 'olderMs'>, { readonly removed: number; readonly last: RowName | null }>;
}

/** The answer to an exchange. */
export type ExchangeReply = { readonly released: boolean; readonly reply: AcquireReply | Promise<AcquireReply> };

/** The locks of one database, operation by operation. */
export abstract class DatabaseLocks<Names extends RowNames = RowNames> {
  protected readonly keys: Names;
  protected readonly process: string;
  readonly #database: Database;
  readonly #operations: LockOperations;

  /** `process` is the name of the store instance. */
  constructor(database: Database, operations: LockOperations, keys: Names, process: string) {
    this.#database = database;
    this.#operations = operations;
    this.keys = keys;
    this.process = process;
  }

  abstract renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]>;
  abstract inspect(key: string): Promise<StoredLock | null>;
  /** In how many milliseconds a place asks again that is in the queue. */
  protected abstract recheckMs(key: string, place: Place, rank: number, joined: boolean): number;

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.read(await this.#database.calls.grant(this.#operations.ACQUIRE, this.attemptOf(hold, place), hold), place, hold.key);
  }

  async exchange(hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): Promise<ExchangeReply> {
    const { calls, tidying } = this.#database;
    const args = { ...this.attemptOf(next, place), released: hold.id, releasedOwner: hold.owner, mayOvertake };
    const { released, attempt } = await calls.grantOnce(this.#operations.EXCHANGE, args, hold);
    tidying.marked();
    return { released, reply: attempt === LATE ? this.acquire(next, place) : this.read(attempt, place, hold.key) };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.#database.calls.call(this.#operations.LEAVE, { key: this.keys.row(key), place: this.#placeOf(name) }, untimed(key));
  }

  async join({ key, owner, fence, id, ttlMs, limitMs }: HoldRecord): Promise<boolean> {
    const { calls, dialect } = this.#database;
    const args = { key: this.keys.row(key), owner, fence, hold: id, process: this.process, ttlMs: Math.ceil(ttlMs) };
    const outcome = await calls.grant(this.#operations.JOIN, args, { key, limitMs });
    if (outcome === LATE) {
      throw tooLate(key, dialect);
    }
    if (outcome === 'full') {
      throw tooManyHolds(key);
    }
    return outcome === 'joined';
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { calls, tidying } = this.#database;
    const args = { key: this.keys.row(hold.key), hold: hold.id, owner: hold.owner };
    const released = await calls.call(this.#operations.RELEASE, args, hold);
    tidying.marked();
    return released;
  }

  /** Searches for locks of keys that begin with `prefix`, in pages. */
  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    const [first, before] = this.keys.rangeOf(prefix);
    for (let after: RowName | undefined = first; after !== undefined;) {
      const rows: Awaited<ReturnType<Database['heldRows']>> = await this.#database.heldRows(after, before, { key: '', limitMs: SEARCH_MS });
      yield rows.map(({ row, stored }) => ({ ...stored, key: this.keys.key(row) }));
      after = rows.at(-1)?.row;
    }
  }

  forceRelease(key: string, fence: number): Promise<boolean> {
    return this.#database.calls.call(this.#operations.FORCE_RELEASE, { key: this.keys.row(key), fence }, untimed(key));
  }

  async purge(olderMs: number): Promise<number> {
    let count = 0;
    const [prefix, before] = this.keys.rangeOf('');
    for (let after: RowName | null = prefix; after !== null;) {
      const args = { prefix, after, before, olderMs: Math.ceil(olderMs) };
      const reply: { removed: number; last: RowName | null } = await this.#database.calls.call(this.#operations.PURGE, args, untimed(''));
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
      polls: this.#database.notifier?.acknowledged !== true,
    };
  }

  protected read(answer: Attempt, place: Place | undefined, key: string): AcquireReply {
    if (answer === LATE) {
      throw tooLate(key, this.#database.dialect);
    }
    if (answer.fence !== undefined) {
      return answer;
    }
    const { remainingMs, holder, rank, joined } = answer;
    return { remainingMs, holder, recheckMs: place && rank >= 0 ? this.recheckMs(key, place, rank, joined) : undefined };
  }

  #placeOf(name: string): string {
    return `${this.process}:${name}`;
  }
}

/** A call without a hold. */
export function untimed(key: string): Call {
  return { key, limitMs: Infinity };
}
