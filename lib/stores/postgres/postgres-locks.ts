import type { HoldRecord, Place, StoredLock } from '../../core/seam/lock-store.js';
import { Rechecks } from '../kit/rechecks.js';
import { readAttempt, readStored, type AttemptReply } from '../kit/replies.js';
import { DatabaseLocks, MOST_WAIT_MS, untimed } from '../sql/database-locks.js';
import { ACQUIRE } from './functions/acquire.js';
import { EXCHANGE } from './functions/exchange.js';
import { JOIN } from './functions/join.js';
import { FORCE_RELEASE, INSPECT } from './functions/operator.js';
import { LEAVE } from './functions/queue.js';
import { RELEASE } from './functions/release.js';
import { RENEW } from './functions/renew.js';
import { PURGE } from './functions/upkeep.js';
import type { PostgresDatabase } from './postgres-database.js';
import type { PostgresKeys } from './postgres-keys.js';

const OPERATIONS = {
  acquire: ACQUIRE,
  exchange: EXCHANGE,
  leave: LEAVE,
  join: JOIN,
  release: RELEASE,
  forceRelease: FORCE_RELEASE,
  purge: PURGE,
} as const;

/** The locks of one database, operation by operation. */
export class PostgresLocks extends DatabaseLocks<string, PostgresKeys, unknown> {
  readonly #database: PostgresDatabase;
  readonly #rechecks = new Rechecks();

  constructor(database: PostgresDatabase, keys: PostgresKeys, process: string) {
    super(database, keys, process, OPERATIONS);
    this.#database = database;
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const limitMs = Math.min(...holds.map((hold) => hold.limitMs));
    const args = {
      keys: holds.map(({ key }) => this.keys.row(key)),
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

  async inspect(key: string): Promise<StoredLock | null> {
    return readStored(await this.#database.calls.call(INSPECT, { key: this.keys.row(key) }, untimed(key)));
  }

  send(text: string, process: string | undefined): Promise<void> {
    return this.#database.send(text, this.keys, process);
  }

  protected override attemptOf(hold: HoldRecord, place: Place | undefined) {
    return { ...super.attemptOf(hold, place), by: hold.by.replaceAll('\0', '') };
  }

  protected readFlag(reply: unknown): boolean {
    return reply === 1;
  }

  protected readJoin(reply: unknown): 'joined' | 'ended' | 'full' {
    return reply === -1 ? 'full' : reply === 1 ? 'joined' : 'ended';
  }

  protected readAttempt(reply: unknown): AttemptReply {
    return readAttempt(reply);
  }

  protected readExchange(reply: unknown): { readonly released: boolean; readonly attempt: unknown } {
    const [released, attempt] = reply as readonly unknown[];
    return { released: released === 1, attempt };
  }

  protected readPurge(reply: unknown): { readonly removed: number; readonly last: string | null } {
    const [removed, last] = reply as readonly [number, string | null];
    return { removed, last };
  }

  protected recheckMs(_key: string, place: Place, rank: number, joined: boolean): number {
    return this.#rechecks.recheckMs(place, rank, joined, this.#database.listener);
  }
}
