import { LockStoreError } from '../core/words/errors.js';
import type { StoredLock } from '../core/seam/lock-store.js';
import { shown } from '../core/words/shown.js';
import { shownProcess } from '../kit/process-name.js';
import { readBusy, type AttemptReply } from '../kit/replies.js';
import type { Row } from '../sql/dialect.js';
import { LATE } from '../sql/operation.js';
import { NOW } from './tables.js';

/** The statement that shows locks of a table that are held, for a condition on their names. */
export function showing(condition: string, table: string): string {
  const columns = `name, fence, holds, ends, since, holder, CASE WHEN queue_ends > ${NOW} THEN queue END AS queue, ${NOW} AS now_us`;
  const isHeld = `owner IS NOT NULL AND ends > ${NOW}`;
  return `SELECT ${columns} FROM ${table} WHERE ${condition} AND ${isHeld} ORDER BY name LIMIT 1000`;
}

/**
 * A column of an answer that has one of a few values. Throws a `LockStoreError` for any other value: a caller that
 * takes it for the last of `answers` may end a lock that is held.
 */
export function oneOf<const Answer extends string>(row: Row | undefined, column: string, answers: readonly Answer[], key: string): Answer {
  const found = answers.find((answer) => answer === String(row?.[column]));
  if (found === undefined) {
    throw strangeAnswer(row, column, key);
  }
  return found;
}

/** Reads the answer of an operation that did something or not. Throws a `LockStoreError` for any other value. */
export function readFlag(row: Row, key: string): boolean {
  return oneOf(row, 'answer', ['0', '1'], key) === '1';
}

/** A column that is a whole number. Throws a `LockStoreError` for any other value. */
export function numberOf(row: Row | undefined, column: string, key: string): number {
  const text = String(row?.[column]);
  if (!/^-?\d+$/.test(text)) {
    throw strangeAnswer(row, column, key);
  }
  return Number(text);
}

/** The error of an answer that the operation never gives. */
export function strangeAnswer(row: Row | undefined, column: string, key: string): LockStoreError {
  return new LockStoreError(
    `${key === '' ? '' : `Lock "${key}": `}MySQL answered what the operation never does: ${column} is ${shown(row?.[column])}. Compare its ` +
      'procedures with what schemaSql() returns, and find out what changes replies on their way.',
    key,
    { unknown: true },
  );
}

/** Reads the row of an attempt. */
export function readOutcome(row: Row, key: string): AttemptReply | typeof LATE {
  const outcome = oneOf(row, 'outcome', ['fence', 'busy', LATE], key);
  if (outcome === LATE) {
    return LATE;
  }
  return outcome === 'fence'
    ? { fence: numberOf(row, 'fence', key) }
    : readBusy([
        numberOf(row, 'remaining_ms', key),
        textOf(row['shown_by']),
        numberOf(row, 'held_ms', key),
        numberOf(row, 'place_rank', key),
        numberOf(row, 'is_new', key),
        textOf(row['shown_turn']),
      ]);
}

/** Reads a row of `showing`. */
export function readShown(row: Row): StoredLock {
  const holds = entriesOf(row['holds']);
  return {
    fence: Number(row['fence']),
    holds: holds.length,
    remainingMs: Math.ceil((Number(row['ends']) - Number(row['now_us'])) / 1_000),
    since: new Date(Number(row['since']) / 1_000),
    by: textOf(row['holder']),
    waiters: entriesOf(row['queue']).map(shownProcess),
    processes: [...new Set(holds.map((hold) => hold.slice(hold.indexOf('=') + 1)))],
  };
}

/** The text of a column of bytes; '' where it is NULL. */
export function textOf(column: unknown): string {
  return Buffer.isBuffer(column) || typeof column === 'string' ? column.toString() : '';
}

/** The elements of `;one;two;`. */
function entriesOf(column: unknown): readonly string[] {
  return textOf(column).split(';').filter(Boolean);
}
