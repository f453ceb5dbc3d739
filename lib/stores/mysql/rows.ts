import type { StoredLock } from '../../core/lock-store.js';
import { readAttempt, readStored, type AttemptReply } from '../kit/replies.js';
import type { Row } from './mysql-pool.js';
import { NOW } from './procedures/time.js';
import { LEASE, qualified } from './tables.js';

/** The columns that a lock is shown by. */
export const SHOWN = `name, fence, holds, ends, since, holder, CASE WHEN queue_ends > ${NOW} THEN queue END AS queue, ${NOW} AS now_us`;

/** What a row has to be, to be a lock that is held. */
export const IS_HELD = `owner IS NOT NULL AND ends > ${NOW}`;

/** The statement that shows locks, for a condition on their names. */
export function showing(condition: string, database: string): string {
  return `SELECT ${SHOWN} FROM ${qualified(LEASE, database)} WHERE ${condition} AND ${IS_HELD} ORDER BY name LIMIT 1000`;
}

/** Reads the row of an attempt that is not late. */
export function readOutcome(row: Row): AttemptReply {
  return row['outcome'] === 'fence'
    ? { fence: Number(row['fence']) }
    : readAttempt([
        Number(row['remaining_ms']),
        textOf(row['shown_by']),
        Number(row['held_ms']),
        Number(row['place_rank']),
        Number(row['is_new']),
        textOf(row['shown_turn']),
      ]);
}

/** Reads a row of `showing`. */
export function readShown(row: Row): StoredLock {
  const holds = entriesOf(row['holds']);
  return readStored([
    row['fence'],
    holds.length,
    Math.ceil((Number(row['ends']) - Number(row['now_us'])) / 1_000),
    Math.floor(Number(row['since']) / 1_000),
    textOf(row['holder']),
    entriesOf(row['queue']).map((place) => place.replace(/~$/, '')),
    [...new Set(holds.map((hold) => hold.slice(hold.indexOf('=') + 1)))],
  ]) as StoredLock;
}

/** The text of a column of bytes; '' where it is NULL. */
export function textOf(column: unknown): string {
  return Buffer.isBuffer(column) || typeof column === 'string' ? column.toString() : '';
}

/** The elements of `;one;two;`. */
function entriesOf(column: unknown): readonly string[] {
  return textOf(column).split(';').filter(Boolean);
}
