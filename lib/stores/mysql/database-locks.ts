import type { AcquireReply, FoundLock, HoldRecord, Place, StoredLock } from '../../core/seam/lock-store.js';
import type { ExchangeReply, LocksOfDatabase } from '../kit/database-store.js';
import { tooManyHolds } from '../kit/refusals.js';
import type { Call, Change } from './calls.js';
import type { Database } from './database.js';
import { tooLate } from './mysql-errors.js';
import type { MySqlKeys } from './mysql-keys.js';
import type { Row } from './mysql-pool.js';
import { ACQUIRE, type ATTEMPT } from './procedures/acquire.js';
import { JOIN } from './procedures/join.js';
import { FORCE_RELEASE } from './procedures/operator.js';
import type { ArgumentsOf } from './procedures/procedure.js';
import { LEAVE } from './procedures/queue.js';
import { EXCHANGE, RELEASE } from './procedures/release.js';
import { RENEW } from './procedures/renew.js';
import { PURGE } from './procedures/upkeep.js';
import { REFRESH_MS } from './queue-time.js';
import { grantingStatement, grantingValues, releasingStatement, releasingValues } from './short-cuts.js';
import { RefusedKeys } from './refused-keys.js';
import { flagOf, numberOf, oneOf, readOutcome, readShown, strangeAnswer, textOf } from './rows.js';

/** How many holds one statement renews: MariaDB goes through the whole list for each of them. */
const MOST_RENEWED = 50;

/** The longest that renewals wait for rows that others have locked, in milliseconds. */
const MOST_WAIT_MS = 250;
/** How long it may take to show a lock, and one step of a search, in milliseconds. */
const SHOW_MS = 1_000;
const SEARCH_MS = 2_000;

/** The locks of one database, operation by operation. */
export class DatabaseLocks implements LocksOfDatabase {
  readonly #database: Database;
  readonly #keys: MySqlKeys;
  readonly #process: string;
  readonly #granting: string;
  readonly #releasing: string;
  readonly #refused = new RefusedKeys();

  /** `process` is the name of the store instance. */
  constructor(database: Database, keys: MySqlKeys, process: string) {
    this.#database = database;
    this.#keys = keys;
    this.#process = process;
    this.#granting = grantingStatement(database.table);
    this.#releasing = releasingStatement(database.table);
  }

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const { calls } = this.#database;
    const { key, limitMs } = hold;
    const giveUpAt = performance.now() + limitMs;
    const change = await this.#tryShortCut(this.#granting, hold, (row, latest) => grantingValues(row, hold, this.#process, latest));
    const fence = Number(change?.insertId ?? 0);
    if (fence > 0) {
      return { fence };
    }
    const call = { key, limitMs: giveUpAt - performance.now() };
    return this.#read(await calls.grant(ACQUIRE, this.#attemptOf(hold, place), call), place, key);
  }

  async exchange(hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): Promise<ExchangeReply> {
    const { calls, tidying } = this.#database;
    const args = { ...this.#attemptOf(next, place), released: bytes(hold.id), releasedOwner: bytes(hold.owner), mayOvertake };
    const row = await calls.grantOnce(EXCHANGE, args, hold);
    tidying.marked();
    const released = flagOf(row, 'answer', hold.key);
    const reply = row['outcome'] === 'late' ? this.acquire(next, place) : this.#read(row, place, hold.key);
    return { released, reply };
  }

  async leave(key: string, name: string): Promise<void> {
    this.#database.watch?.remove(key, name);
    await this.#database.calls.call(LEAVE, { key: this.#keys.row(key), place: this.#placeOf(name) }, untimed(key));
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, owner, fence, id, ttlMs } = hold;
    const args = {
      key: this.#keys.row(key),
      owner: bytes(owner),
      fence,
      hold: bytes(id),
      process: bytes(this.#process),
      ttlMs: Math.ceil(ttlMs),
    };
    const row = await this.#database.calls.grant(JOIN, args, hold);
    const outcome = oneOf(row, 'outcome', ['joined', 'ended', 'full', 'late'], key);
    if (outcome === 'late') {
      throw tooLate(key);
    }
    if (outcome === 'full') {
      throw tooManyHolds(key);
    }
    return outcome === 'joined';
  }

  /** A hold whose row is locked is renewed by itself, so that the others do not wait for that row. What there is no time for stays unanswered. */
  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const giveUpAt = performance.now() + Math.min(...holds.map(({ limitMs }) => limitMs));
    const answers = new Map<HoldRecord, boolean | undefined>();
    const sorted = holds.toSorted((one, other) => Buffer.compare(this.#keys.row(one.key), this.#keys.row(other.key)));
    for (let at = 0; at < sorted.length && performance.now() < giveUpAt; at += MOST_RENEWED) {
      const some = sorted.slice(at, at + MOST_RENEWED);
      const renewed = await this.#renew(some, false, giveUpAt);
      some.forEach((hold, index) => answers.set(hold, renewed[index]));
    }
    const locked = performance.now() < giveUpAt ? holds.filter((hold) => answers.get(hold) === undefined) : [];
    const waitUntil = Math.min(giveUpAt, performance.now() + MOST_WAIT_MS);
    const alone = await Promise.allSettled(locked.map((hold) => this.#renew([hold], true, waitUntil)));
    alone.forEach((result, at) => {
      if (result.status === 'fulfilled') {
        answers.set(locked[at] as HoldRecord, result.value[0]);
      }
    });
    return holds.map((hold) => answers.get(hold));
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { calls, tidying } = this.#database;
    const { key, id, owner, limitMs } = hold;
    const giveUpAt = performance.now() + limitMs;
    const change = await this.#tryShortCut(this.#releasing, hold, (row) => releasingValues(row, hold, this.#process));
    if (change) {
      return true;
    }
    const args = { key: this.#keys.row(key), hold: bytes(id), owner: bytes(owner) };
    const reply = await calls.call(RELEASE, args, { key, limitMs: giveUpAt - performance.now() });
    tidying.marked();
    return flagOf(reply, 'answer', key);
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const [row] = await this.#database.shown('name = ?', [this.#keys.row(key)], { key, limitMs: SHOW_MS });
    return row ? readShown(row) : null;
  }

  /** Searches for locks of keys that begin with `prefix`, in pages. */
  async *search(prefix: string): AsyncGenerator<readonly FoundLock[], void, undefined> {
    const [first, before] = this.#keys.rangeOf(prefix);
    for (let after: Buffer | undefined = first; after !== undefined;) {
      const rows: readonly Row[] = await this.#database.shown('name > ? AND name < ?', [after, before], { key: '', limitMs: SEARCH_MS });
      yield rows.map((row) => ({ ...readShown(row), key: this.#keys.key(row['name'] as Buffer) }));
      after = rows.at(-1)?.['name'] as Buffer | undefined;
    }
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const row = await this.#database.calls.call(FORCE_RELEASE, { key: this.#keys.row(key), fence }, untimed(key));
    return flagOf(row, 'answer', key);
  }

  async purge(olderMs: number): Promise<number> {
    let count = 0;
    const [first, before] = this.#keys.rangeOf('');
    for (let after: Buffer | null = first; after !== null;) {
      const row: Row = await this.#database.calls.call(PURGE, { after, before, olderMs: Math.ceil(olderMs) }, untimed(''));
      count += numberOf(row, 'removed', '');
      after = row['last_name'] as Buffer | null;
    }
    return count;
  }

  /** What a plain statement did; undefined where it changed nothing, or is not worth a try. */
  async #tryShortCut(
    sql: string,
    { key, limitMs }: HoldRecord,
    values: (row: Buffer, latest: number) => readonly unknown[],
  ): Promise<Change | undefined> {
    if (this.#refused.has(key)) {
      return undefined;
    }
    const row = this.#keys.row(key);
    const change = await this.#database.calls.change(sql, (latest) => values(row, latest), { key, limitMs });
    if (change && change.affectedRows > 0 && (sql === this.#releasing || Number(change.insertId) > 0)) {
      return change;
    }
    this.#refused.add(key);
    return undefined;
  }

  /** In the order of the names. */
  async #renew(holds: readonly HoldRecord[], waits: boolean, giveUpAt: number): Promise<(boolean | undefined)[]> {
    const renewals = holds.map(({ key, owner, fence, id, ttlMs, by, lingering }) => ({
      name: this.#keys.row(key).toString('hex'),
      owner: bytes(owner).toString('hex'),
      hold: bytes(id).toString('hex'),
      by: bytes(by).toString('hex'),
      fence,
      ttlMs: Math.ceil(ttlMs),
      lingering: Number(lingering),
    }));
    const call = { key: holds[0]?.key ?? '', limitMs: giveUpAt - performance.now() };
    const row = await this.#database.calls.call(RENEW, { renewals: JSON.stringify(renewals), waits }, call);
    const answers = textOf(row['answers']);
    if (!/^[01-]*$/.test(answers) || answers.length !== holds.length) {
      throw strangeAnswer(row, 'answers', call.key);
    }
    return Array.from(answers, (answer) => (answer === '-' ? undefined : answer === '1'));
  }

  #placeOf(name: string): Buffer {
    return bytes(`${this.#process}:${name}`);
  }

  #attemptOf({ key, owner, id, ttlMs, by }: HoldRecord, place: Place | undefined): ArgumentsOf<typeof ATTEMPT> {
    return {
      key: this.#keys.row(key),
      owner: bytes(owner),
      hold: bytes(id),
      process: bytes(this.#process),
      ttlMs: Math.ceil(ttlMs),
      holder: bytes(by),
      place: place ? this.#placeOf(place.name) : null,
      polls: this.#database.watch?.acknowledged !== true,
    };
  }

  #read(row: Row, place: Place | undefined, key: string): AcquireReply {
    if (row['outcome'] === 'late') {
      throw tooLate(key);
    }
    const answer = readOutcome(row, key);
    if (answer.fence !== undefined) {
      if (place) {
        this.#database.watch?.remove(key, place.name);
      }
      return answer;
    }
    const { remainingMs, holder, rank } = answer;
    if (!place || rank < 0) {
      return { remainingMs, holder };
    }
    this.#database.watch?.add(key, place);
    return { remainingMs, holder, recheckMs: REFRESH_MS };
  }
}

/** Bytes go to the server unchanged, whatever character set its session has. */
function bytes(text: string): Buffer {
  return Buffer.from(text);
}

/** A call without a hold. */
function untimed(key: string): Call {
  return { key, limitMs: Infinity };
}
