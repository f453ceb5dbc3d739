import type { AcquireReply, HoldRecord, Place, StoredLock } from '../core/seam/lock-store.js';
import { DatabaseLocks, MOST_WAIT_MS } from '../sql/database-locks.js';
import type { Attempt } from '../sql/lock-operations.js';
import { leastLimitOf } from '../core/seam/time.js';
import type { MySqlDatabase } from './mysql-database.js';
import type { MySqlKeys } from './mysql-keys.js';
import { readShown, strangeAnswer, textOf } from './rows.js';
import { OPERATIONS } from './schema.js';
import { ShortCuts } from './short-cuts.js';
import { REFRESH_MS } from './tables.js';

/** How many holds one statement renews: MariaDB goes through the whole list for each of them. */
const MOST_RENEWED = 50;
/**
 * How many holds whose rows are locked are renewed by themselves at a time: each may wait on a connection of the pool.
 */
const MOST_ALONE = 2;
/** How long it may take to show a lock, in milliseconds. */
const SHOW_MS = 1_000;

/** The locks of one database, operation by operation. */
export class MySqlLocks extends DatabaseLocks<MySqlDatabase, MySqlKeys> {
  readonly #shortCuts = new ShortCuts(this.database, this.keys, this.process);

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const giveUpAt = performance.now() + hold.limitMs;
    const fence = await this.#shortCuts.grant(hold);
    if (fence > 0) {
      this.#forget(hold.key, place);
      return { fence };
    }
    return super.acquire({ ...hold, limitMs: giveUpAt - performance.now() }, place);
  }

  /** Until the server knows, a look would find the turn of a place that this process seems to have forgotten. */
  override async leave(key: string, name: string): Promise<void> {
    try {
      await super.leave(key, name);
    } finally {
      this.database.notifier?.remove(key, name);
    }
  }

  /**
   * Renews holds. A hold whose row is locked is renewed by itself, so that the others do not wait for that row. A hold
   * stays unanswered where no time is left, or where its statement failed. Rejects where all statements failed.
   */
  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const giveUpAt = performance.now() + leastLimitOf(holds);
    const answers = new Map<HoldRecord, boolean | undefined>();
    let failure: unknown;
    const sorted = holds.toSorted((one, other) => Buffer.compare(this.keys.row(one.key), this.keys.row(other.key)));
    for (let at = 0; at < sorted.length && performance.now() < giveUpAt; at += MOST_RENEWED) {
      const some = sorted.slice(at, at + MOST_RENEWED);
      try {
        const renewed = await this.#renew(some, false, giveUpAt);
        some.forEach((hold, index) => answers.set(hold, renewed[index]));
      } catch (error) {
        failure = error;
      }
    }
    if (failure !== undefined && answers.size === 0) {
      throw failure;
    }
    const waitUntil = Math.min(giveUpAt, performance.now() + MOST_WAIT_MS);
    const locked = holds.filter((hold) => answers.has(hold) && answers.get(hold) === undefined);
    const renewLocked = async (): Promise<void> => {
      for (let hold = locked.shift(); hold && performance.now() < waitUntil; hold = locked.shift()) {
        const [answer] = await this.#renew([hold], true, waitUntil).catch(() => []);
        answers.set(hold, answer);
      }
    };
    await Promise.all(Array.from({ length: MOST_ALONE }, renewLocked));
    return holds.map((hold) => answers.get(hold));
  }

  override async release(hold: HoldRecord): Promise<boolean> {
    const giveUpAt = performance.now() + hold.limitMs;
    return (!hold.unanswered && (await this.#shortCuts.release(hold))) || super.release({ ...hold, limitMs: giveUpAt - performance.now() });
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const [row] = await this.database.shown('name = ?', [this.keys.row(key)], { key, limitMs: SHOW_MS });
    return row ? readShown(row) : null;
  }

  protected override attemptOf(hold: HoldRecord, place: Place | undefined) {
    return { ...super.attemptOf(hold, place), holder: hold.by };
  }

  protected override read(answer: Attempt, place: Place | undefined, key: string): AcquireReply {
    const reply = super.read(answer, place, key);
    if (reply.fence !== undefined) {
      this.#forget(key, place);
    }
    return reply;
  }

  protected recheckMs(key: string, place: Place): number {
    this.database.notifier?.add(key, place);
    return REFRESH_MS;
  }

  /** A place that was granted the lock is in no queue any more. */
  #forget(key: string, place: Place | undefined): void {
    if (place) {
      this.database.notifier?.remove(key, place.name);
    }
  }

  /** In the order of the names. */
  async #renew(holds: readonly HoldRecord[], waits: boolean, giveUpAt: number): Promise<(boolean | undefined)[]> {
    const renewals = holds.map(({ key, owner, fence, id, ttlMs, by, lingering }) => ({
      name: hex(this.keys.row(key)),
      owner: hex(owner),
      hold: hex(id),
      by: hex(by),
      fence,
      ttlMs: Math.ceil(ttlMs),
      lingering: Number(lingering),
    }));
    const limit = { key: holds[0]?.key ?? '', limitMs: giveUpAt - performance.now() };
    const row = await this.database.calls.call(OPERATIONS.RENEW, { renewals: JSON.stringify(renewals), waits }, limit);
    const answers = textOf(row['answers']);
    if (!/^[01-]*$/.test(answers) || answers.length !== holds.length) {
      throw strangeAnswer(row, 'answers', limit.key);
    }
    return Array.from(answers, (answer) => (answer === '-' ? undefined : answer === '1'));
  }
}

function hex(text: string | Buffer): string {
  return Buffer.from(text as string).toString('hex');
}
