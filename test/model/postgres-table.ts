import { randomUUID } from 'node:crypto';
import type { Client, QueryResult, QueryResultRow } from 'pg';
import type { Shares } from '../../lib/core/seam/lock-store.js';
import type { HoldRecord, StoredLock } from '../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../lib/kit/key-state.js';
import type { JoinReply, TableReply } from '../../lib/kit/lock-table.js';
import { readBusy } from '../../lib/kit/replies.js';
import { FUNCTIONS } from '../../lib/postgres/functions.js';
import { ACQUIRE, ACQUIRE_SHARED, type ATTEMPT } from '../../lib/postgres/functions/acquire.js';
import { EXCHANGE } from '../../lib/postgres/functions/exchange.js';
import { JOIN, JOIN_SHARED } from '../../lib/postgres/functions/join.js';
import { FORCE_RELEASE, INSPECT, readLock } from '../../lib/postgres/functions/operator.js';
import { LEAVE } from '../../lib/postgres/functions/queue.js';
import { RELEASE } from '../../lib/postgres/functions/release.js';
import { RENEW } from '../../lib/postgres/functions/renew.js';
import { callOf } from '../../lib/postgres/functions/sql-function.js';
import { PostgresKeys } from '../../lib/postgres/postgres-keys.js';
import { qualified } from '../../lib/postgres/schema-name.js';
import type { KeyKind } from '../../lib/core/seam/shares.js';
import { LATE, valuesOf, type ArgumentsOf, type Operation, type Parameters } from '../../lib/sql/operation.js';
import type { OtherSide, Stored, StoredShare } from './steps.js';

const KEYS = new PostgresKeys('lock');
const SCHEMA = 'distributed_lock';
/** The row of a key that another transaction has locked. */
const LOCKED_ROW = KEYS.row('locked');
/** A clock that stands still until it is set. */
const CLOCK = `
CREATE OR REPLACE FUNCTION SCHEMA.test_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT to_timestamp(current_setting('test.now_ms')::float8 / 1000) $$;
`;

const EMPTY = 'DELETE FROM SCHEMA.lease; DELETE FROM SCHEMA.done; DELETE FROM SCHEMA.shared;';

const EXPIRE = `
SELECT SCHEMA.keep(SCHEMA.locked(key)) FROM SCHEMA.lease WHERE key <> '${LOCKED_ROW}';
DELETE FROM SCHEMA.done WHERE ends <= SCHEMA.test_clock();
`;

/** The functions that a session has made last: the server plans anew whatever is made anew. */
const MADE = new WeakMap<Client, string>();

/** The functions of the PostgreSQL store with the operations of a lock table, and with a clock of the test's own. */
export class PostgresTable implements OtherSide {
  readonly #client: Client;
  /** Where each call is one of a batch: others are before and after it, and the row of one is locked elsewhere. */
  readonly #isBatched: boolean;
  #now: number;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(client: Client, isBatched: boolean, now: number) {
    this.#client = client;
    this.#isBatched = isBatched;
    this.#now = now;
  }

  /**
   * With nothing stored; `edit` puts a defect into the functions. Where `another` session is passed, each call is one
   * of a batch.
   */
  static async begin(client: Client, now: number, edit: (source: string) => string, another?: Client): Promise<PostgresTable> {
    const functions = FUNCTIONS.map((source) => edit(source).replaceAll('clock_timestamp()', 'SCHEMA.test_clock()')).join('\n');
    const table = new PostgresTable(client, another !== undefined, now);
    await another?.query('ROLLBACK');
    const isMade = MADE.get(client) === functions;
    await client.query(qualified(isMade ? EMPTY : [EMPTY, CLOCK, functions].join('\n'), SCHEMA));
    MADE.set(client, functions);
    await table.elapse(0);
    if (another) {
      await client.query(`INSERT INTO "${SCHEMA}".lease (key, ends) VALUES ($1, 'epoch')`, [LOCKED_ROW]);
      await another.query(`BEGIN; SELECT FROM "${SCHEMA}".lease WHERE key = '${LOCKED_ROW}' FOR UPDATE`);
    }
    return table;
  }

  async acquire(hold: HoldRecord, process: string, place?: QueuedPlace, latest = 0): Promise<TableReply> {
    const args = { ...attemptOf(hold, process, place), latest };
    return readReply(
      hold.shares === undefined
        ? await this.#call(ACQUIRE, args)
        : await this.#call(ACQUIRE_SHARED, { ...args, shares: countOf(hold.shares) }),
    );
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
    latest = 0,
  ): Promise<{ released: boolean; reply: TableReply }> {
    const args = {
      ...attemptOf(next, process, place),
      released: hold.id,
      releasedOwner: hold.owner,
      unanswered: hold.unanswered,
      mayOvertake,
      latest,
    };
    const [released, reply] = (await this.#call(EXCHANGE, args)) as unknown[];
    return { released: released === 1, reply: readReply(reply) };
  }

  async join({ key, owner, fence, id, ttlMs, by, shares }: HoldRecord, process: string, latest = 0): Promise<JoinReply> {
    const args = { key: KEYS.row(key), owner, fence, hold: id, process, ttlMs, latest };
    const reply =
      shares === undefined ? await this.#call(JOIN, args) : await this.#call(JOIN_SHARED, { ...args, by, shares: countOf(shares) });
    if (reply === LATE) {
      return LATE;
    }
    return reply === 1 ? 'joined' : reply === -1 ? 'full' : 'ended';
  }

  async renew({ key, owner, fence, id, by, ttlMs, lingering }: HoldRecord): Promise<boolean> {
    const hold = {
      keys: [KEYS.row(key)],
      owners: [owner],
      fences: [fence],
      holds: [id],
      ttlsMs: [ttlMs],
      bys: [by],
      lingering: [lingering],
    };
    const [reply] = (await this.#call(RENEW, { ...hold, waitMs: 0 })) as unknown[];
    return reply === 1;
  }

  async release({ key, id, owner, unanswered }: HoldRecord): Promise<boolean> {
    return (await this.#call(RELEASE, { key: KEYS.row(key), hold: id, owner, unanswered })) === 1;
  }

  async leave(key: string, name: string, process: string): Promise<void> {
    await this.#call(LEAVE, { key: KEYS.row(key), place: `${process}:${name}` });
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return (await this.#call(FORCE_RELEASE, { key: KEYS.row(key), fence })) === 1;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const stored = readLock(await this.#reply(INSPECT, [KEYS.row(key)]));
    if (!stored) {
      return null;
    }
    const { fence, holds, shares, ...others } = stored;
    // In the order of the table, as they are compared as text.
    return { fence, holds, shares, ...others };
  }

  async elapse(ms: number): Promise<void> {
    this.#now += ms;
    // A lease or mark that has run out stays in its row, where a clock that is set back gives it some of its time
    // again; elsewhere it is gone.
    await this.#query(`${ms < 0 ? qualified(EXPIRE, SCHEMA) : ''} SELECT set_config('test.now_ms', '${this.#now}', false)`);
  }

  async stored(key: string): Promise<Stored> {
    const { rows } = await this.#query<Record<string, string | string[] | null>>(
      `SELECT *, greatest(0, extract(epoch FROM ends - "${SCHEMA}".test_clock()) * 1000) AS left_ms FROM "${SCHEMA}".locked($1)`,
      [KEYS.row(key)],
    );
    const { owner, fence, ttl_ms: ttlMs, holds, turn, queue, polling, left_ms: leftMs } = rows[0] ?? {};
    const shared = owner === '' ? await this.#storedShares(key) : undefined;
    const sharing = (shared ?? []).flatMap((one) => (one.owner === '' ? [] : [one.name]));
    return {
      owner: String(owner ?? ''),
      fence: owner || sharing.length > 0 ? Number(fence) : 0,
      ttlMs: owner ? Number(ttlMs) : 0,
      holds: [...(holds ?? sharing)].toSorted(),
      turn: String(turn ?? ''),
      queue: [...(queue ?? [])].map((place) => place + (polling?.includes(place) ? ' polls' : '')),
      leftMs: owner || turn ? Number(leftMs) : 0,
      shared,
    };
  }

  async #storedShares(key: string): Promise<StoredShare[]> {
    const { rows } = await this.#query<Record<string, string | null>>(
      `SELECT *, extract(epoch FROM ends - "${SCHEMA}".test_clock()) * 1000 AS left_ms FROM "${SCHEMA}".shared WHERE key = $1 ORDER BY name`,
      [KEYS.row(key)],
    );
    return rows.map(({ name, shares, owner, holder, ttl_ms: ttlMs, left_ms: leftMs }) => ({
      name: String(name),
      shares: shares === '0' ? 'read' : Number(shares),
      owner: owner ?? '',
      by: holder ?? '',
      ttlMs: owner === null ? 0 : Number(ttlMs),
      leftMs: Number(leftMs),
    }));
  }

  #call<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>): Promise<unknown> {
    return this.#isBatched && operation.batch
      ? this.#callInBatch(operation, operation.batch, args)
      : this.#reply(operation, valuesOf(operation, args));
  }

  async #callInBatch<P extends Parameters>(operation: Operation<P>, batch: Operation, args: ArgumentsOf<P>): Promise<unknown> {
    const other = (key: string): typeof args => ({
      ...args,
      key,
      hold: randomUUID(),
      owner: randomUUID(),
      ...('place' in args && { place: null }),
    });
    const calls = [other(LOCKED_ROW), other('z'), args, other('a')].map((each) => valuesOf(operation, each));
    const lists = Object.keys(operation.parameters).map((_, at) => calls.map((values) => values[at]));
    const replies = (await this.#reply(batch, lists)) as readonly unknown[];
    const [none, z, reply, a, ...more] = replies;
    if (z === null || none !== null || a === null || more.length > 0) {
      throw new Error(`The batch was answered ${JSON.stringify(replies)}.`);
    }
    return reply;
  }

  async #reply(operation: Operation, values: unknown[]): Promise<unknown> {
    const text = qualified(`SELECT ${callOf(operation)} AS reply`, SCHEMA);
    const { rows } = await this.#query<{ reply: string }>(text, values);
    return JSON.parse(rows[0]?.reply ?? 'null');
  }

  /** One after the other. */
  #query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<Row>> {
    const answer = this.#last.then(() => this.#client.query<Row>(text, values));
    this.#last = answer.catch(() => undefined);
    return answer;
  }
}

function attemptOf(
  { key, owner, id, ttlMs, by }: HoldRecord,
  process: string,
  place: QueuedPlace | undefined,
): ArgumentsOf<typeof ATTEMPT> {
  const { name, polls = false } = place ?? {};
  return { key: KEYS.row(key), owner, hold: id, process, ttlMs, by, place: name === undefined ? null : `${process}:${name}`, polls };
}

function readReply(reply: unknown): TableReply {
  if (reply === LATE) {
    return { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false, late: true };
  }
  if (!Array.isArray(reply)) {
    return { fence: Number(reply) };
  }
  const [, by, heldMs, , , turn, otherKind] = reply as unknown[];
  const holder = { by: String(by) || String(turn).replace(/:[^:]*$/, ''), heldMs: Number(heldMs) };
  const busy = { ...readBusy(reply), holder };
  return otherKind ? { ...busy, otherKind: otherKind as KeyKind } : busy;
}

function countOf(shares: Shares): number {
  return shares === 'read' ? 0 : shares;
}
