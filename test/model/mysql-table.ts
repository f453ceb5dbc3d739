import type { Connection, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import type { HoldRecord } from '../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../lib/kit/key-state.js';
import type { JoinReply, TableReply } from '../../lib/kit/lock-table.js';
import { QUEUE_MS } from '../../lib/kit/protocol.js';
import { MySqlKeys } from '../../lib/mysql/mysql-keys.js';
import { ACQUIRE, type ATTEMPT } from '../../lib/mysql/procedures/acquire.js';
import { JOIN } from '../../lib/mysql/procedures/join.js';
import { creationOf, type Procedure } from '../../lib/mysql/procedures/procedure.js';
import { IS_HERE, LEAVE } from '../../lib/mysql/procedures/queue.js';
import { EXCHANGE, FORCE_RELEASE, RELEASE } from '../../lib/mysql/procedures/release.js';
import { RENEW } from '../../lib/mysql/procedures/renew.js';
import { textOf } from '../../lib/mysql/rows.js';
import { grantingStatement, grantingValues, releasingStatement, releasingValues } from '../../lib/mysql/short-cuts.js';
import { DONE, IS_HONEST, LATER, LEASE, NOW, QUEUE_MS as LONGER_QUEUE_MS } from '../../lib/mysql/tables.js';
import type { Row } from '../../lib/sql/dialect.js';
import { valuesOf, type ArgumentsOf, type Parameters } from '../../lib/sql/operation.js';
import { Random } from '../support/random.js';
import type { OtherSide, Stored } from './steps.js';

const KEYS = new MySqlKeys('lock');
const PROCEDURES = [ACQUIRE, EXCHANGE, JOIN, RENEW, RELEASE, LEAVE, FORCE_RELEASE] as unknown as readonly Procedure[];
/** A clock that stands still until it is set. */
const CLOCK = '@test_now_us';
const EXPIRE = [
  `UPDATE ${LEASE} SET owner = NULL, holds = NULL, turn = NULL WHERE ends <= ${CLOCK}`,
  `UPDATE ${LEASE} SET queue = NULL WHERE queue_ends <= ${CLOCK}`,
  `UPDATE ${LEASE} SET done_ends = 0 WHERE done_ends <= ${CLOCK}`,
  `DELETE FROM ${DONE} WHERE ends <= ${CLOCK}`,
];
const STORED = `SELECT fence, ttl_ms, ends, CASE WHEN ends > ${CLOCK} THEN owner END AS owner, CASE WHEN ends > ${CLOCK} THEN holds END AS holds,
  CASE WHEN ends > ${CLOCK} THEN turn END AS turn, CASE WHEN queue_ends > ${CLOCK} THEN queue END AS queue, ${CLOCK} AS now_us
FROM ${LEASE} WHERE name = ?`;

/** The plain statements that are tried before a procedure. */
interface ShortCuts {
  readonly granting: string;
  readonly releasing: string;
  /** Not always: the store does without for a while where one was in vain. */
  readonly random: Random;
}

/** The stored procedures of the MySQL store with the operations of a lock table, and with a clock of the test's own. */
export class MySqlTable implements OtherSide {
  /** The procedures that the server has, made by a test before. */
  static #made = '';
  readonly #connection: Connection;
  readonly #shortCuts: ShortCuts | undefined;
  #now: number;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(connection: Connection, now: number, shortCuts: ShortCuts | undefined) {
    this.#connection = connection;
    this.#now = now;
    this.#shortCuts = shortCuts;
  }

  /** With nothing stored; `edit` puts a defect into the sources. */
  static async begin(connection: Connection, now: number, edit: (source: string) => string, hasShortCuts: boolean): Promise<MySqlTable> {
    const prepared = (source: string): string =>
      edit(source)
        .replaceAll(LATER, CLOCK)
        .replaceAll(IS_HONEST, 'TRUE')
        .replaceAll(NOW, CLOCK)
        // The queue of the lock table is forgotten sooner.
        .replaceAll(`${LONGER_QUEUE_MS} * 1000`, `${QUEUE_MS} * 1000`)
        // Who asks is there, and may be gone later.
        .replaceAll(IS_HERE, 'TRUE')
        .replaceAll('KILL QUERY sleeper;', 'KILL QUERY sleeper; SET @test_woken = first_place;');
    const sources = PROCEDURES.map((procedure) => prepared(creationOf(procedure, `${procedure.name}_test`)));
    if (MySqlTable.#made !== sources.join()) {
      for (const [index, source] of sources.entries()) {
        await connection.query(`DROP PROCEDURE IF EXISTS ${(PROCEDURES[index] as Procedure).name}_test`);
        await connection.query(source);
      }
      MySqlTable.#made = sources.join();
    }
    const shortCuts = hasShortCuts && {
      granting: prepared(grantingStatement(LEASE)),
      releasing: prepared(releasingStatement(LEASE)),
      random: new Random(1),
    };
    const table = new MySqlTable(connection, now, shortCuts || undefined);
    await connection.query(`DELETE FROM ${LEASE}`);
    await connection.query(`DELETE FROM ${DONE}`);
    await connection.query('SET @test_woken = NULL');
    await table.elapse(0);
    return table;
  }

  acquire(hold: HoldRecord, process: string, place?: QueuedPlace, latest = 0): Promise<TableReply> {
    return this.#inTurn(async () => {
      const row = KEYS.row(hold.key);
      const change = await this.#tryShortCut('granting', grantingValues(row, hold, process, latest));
      const fence = change && change.affectedRows > 0 ? change.insertId : 0;
      return fence > 0 ? { fence } : readReply(await this.#call(ACQUIRE, { ...attemptOf(hold, process, place), latest }));
    });
  }

  exchange(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
    latest = 0,
  ): Promise<{ released: boolean; reply: TableReply }> {
    const released = { released: bytes(hold.id), releasedOwner: bytes(hold.owner), unanswered: hold.unanswered };
    return this.#inTurn(async () => {
      const row = await this.#call(EXCHANGE, { ...attemptOf(next, process, place), ...released, mayOvertake, latest });
      return { released: Number(row['answer']) === 1, reply: readReply(row) };
    });
  }

  join({ key, owner, fence, id, ttlMs }: HoldRecord, process: string, latest = 0): Promise<JoinReply> {
    const args = { key: KEYS.row(key), owner: bytes(owner), fence, hold: bytes(id), process: bytes(process), ttlMs, latest };
    return this.#inTurn(async () => (await this.#call(JOIN, args))['outcome'] as JoinReply);
  }

  renew({ key, owner, fence, id, by, ttlMs, lingering }: HoldRecord): Promise<boolean> {
    const [name, ownerBytes, hold, byBytes] = [KEYS.row(key), owner, id, by].map((text) => Buffer.from(text).toString('hex'));
    const renewal = { name, owner: ownerBytes, hold, by: byBytes, fence, ttlMs, lingering: Number(lingering) };
    const args = { renewals: JSON.stringify([renewal]), waits: fence % 2 === 0 };
    return this.#inTurn(async () => (await this.#call(RENEW, args))['answers'] === '1');
  }

  release(hold: HoldRecord): Promise<boolean> {
    const { key, id, owner, unanswered } = hold;
    const row = KEYS.row(key);
    return this.#inTurn(async () => {
      // Holds are called after the processes that acquire first with them.
      const change = unanswered ? undefined : await this.#tryShortCut('releasing', releasingValues(row, hold, id.replace(/-.*/, '')));
      if (change && change.affectedRows > 0) {
        return true;
      }
      return Number((await this.#call(RELEASE, { key: row, hold: bytes(id), owner: bytes(owner), unanswered }))['answer']) === 1;
    });
  }

  leave(key: string, name: string, process: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#call(LEAVE, { key: KEYS.row(key), place: bytes(`${process}:${name}`) });
    });
  }

  forceRelease(key: string, fence: number): Promise<boolean> {
    return this.#inTurn(async () => Number((await this.#call(FORCE_RELEASE, { key: KEYS.row(key), fence }))['answer']) === 1);
  }

  elapse(ms: number): Promise<void> {
    return this.#inTurn(async () => {
      // A lease or mark that has run out stays in its row, where a clock that is set back gives it some of its time
      // again; elsewhere it is gone.
      for (const sql of ms < 0 ? EXPIRE : []) {
        await this.#connection.query(sql);
      }
      this.#now += ms;
      await this.#connection.query(`SET ${CLOCK} = ${this.#now * 1_000}`);
    });
  }

  stored(key: string): Promise<Stored> {
    return this.#inTurn(async () => {
      const [[row]] = await this.#connection.execute<RowDataPacket[]>(STORED, [KEYS.row(key)]);
      const [owner, turn] = [textOf(row?.['owner']), textOf(row?.['turn'])];
      const entries = (column: string): string[] => textOf(row?.[column]).split(';').filter(Boolean);
      return {
        owner,
        fence: owner ? Number(row?.['fence']) : 0,
        ttlMs: owner ? Number(row?.['ttl_ms']) : 0,
        holds: entries('holds')
          .map((hold) => hold.replace(/=.*/, ''))
          .toSorted(),
        turn,
        queue: entries('queue').map((place) => place.replace(/~$/, ' polls')),
        leftMs: owner || turn ? (Number(row?.['ends']) - Number(row?.['now_us'])) / 1_000 : 0,
      };
    });
  }

  async #tryShortCut(which: 'granting' | 'releasing', values: unknown[]): Promise<ResultSetHeader | undefined> {
    if (!this.#shortCuts?.random.chance(0.8)) {
      return undefined;
    }
    const [change] = await this.#connection.execute<ResultSetHeader>(this.#shortCuts[which], values as Buffer[]);
    return change;
  }

  async #call<P extends Parameters>(operation: Procedure<P>, args: ArgumentsOf<P>): Promise<Row> {
    const values = valuesOf(operation, args);
    const sql = `CALL ${operation.name}_test(${values.map(() => '?').join(', ')})`;
    const [[[row]]] = await this.#connection.execute<[RowDataPacket[], ResultSetHeader]>(sql, values as Buffer[]);
    return row as Row;
  }

  /** One operation after the other. */
  #inTurn<Result>(operation: () => Promise<Result>): Promise<Result> {
    const answer = this.#last.then(operation);
    this.#last = answer.catch(() => undefined);
    return answer;
  }
}

/** The name of the place that was woken since the last time, if there is one. */
export async function wokenPlace(connection: Connection): Promise<string | undefined> {
  const [[row]] = await connection.query<RowDataPacket[]>('SELECT @test_woken AS place');
  if (row?.['place'] === null) {
    return undefined;
  }
  await connection.query('SET @test_woken = NULL');
  return textOf(row?.['place']).replace(/.*:/, '');
}

function attemptOf({ key, owner, id, ttlMs, by }: HoldRecord, process: string, place?: QueuedPlace): ArgumentsOf<typeof ATTEMPT> {
  const { name, polls = false } = place ?? {};
  const texts = { owner: bytes(owner), hold: bytes(id), process: bytes(process), holder: bytes(by) };
  return { ...texts, key: KEYS.row(key), ttlMs, place: name === undefined ? null : bytes(`${process}:${name}`), polls };
}

function readReply(row: Row): TableReply {
  if (row['outcome'] === 'fence') {
    return { fence: Number(row['fence']) };
  }
  const by = textOf(row['shown_by']) || textOf(row['shown_turn']).replace(/:[^:]*$/, '');
  const reply = { holder: { by, heldMs: Number(row['held_ms']) }, rank: Number(row['place_rank']), joined: Number(row['is_new']) === 1 };
  return { remainingMs: Number(row['remaining_ms']), ...reply, ...(row['outcome'] === 'late' && { late: true as const }) };
}

function bytes(text: string): Buffer {
  return Buffer.from(text);
}
