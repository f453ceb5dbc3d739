import { MOST_FENCES, type HoldRecord } from '../../core/seam/lock-store.js';
import { DONE_MS, MOST_FENCE } from '../kit/protocol.js';
import { NOW } from './procedures/time.js';

/*
 * The two operations of a lock that nobody else wants, each as one plain statement: they cost the server half of what the procedures do.
 * Where such a statement changes nothing, the procedure is called. They write what the procedures write, and have their times from the
 * beginning of the statement, which may wait for the row: a lease is never longer for that.
 */

/** Grants a lock that is free, and that nobody waits for. The fence is what the server calls the inserted id; 0 where it granted nothing. */
export function grantingStatement(table: string): string {
  const isFree = `ends <= ${NOW} AND queue IS NULL AND more_done_ends <= ${NOW} AND fence <= ${MOST_FENCE - 2 * MOST_FENCES}
      AND NOT (done_hold <=> ? AND done_ends > ${NOW})`;
  // The assignments are made from left to right: the first one decides, and tells the others by the inserted id.
  return `INSERT INTO ${table} (name, owner, fence, ttl_ms, since, holder, ends, holds)
SELECT ?, ?, last_insert_id(${NOW}), ?, ${NOW}, ?, ${NOW} + ? * 1000, ? FROM dual WHERE ? = 0 OR ${NOW} <= ? * 1000
ON DUPLICATE KEY UPDATE fence = CASE WHEN ${isFree} THEN last_insert_id(greatest(fence + ${MOST_FENCES}, ${NOW})) ELSE fence + last_insert_id(0) END,
  ${granted('owner', '?')}, ${granted('ttl_ms', '?')}, ${granted('since', NOW)}, ${granted('holder', '?')}, ${granted('ends', `${NOW} + ? * 1000`)},
  ${granted('holds', '?')}, ${granted('turn', 'NULL')}`;
}

/** An assignment that is made where the lock was granted. */
function granted(column: string, value: string): string {
  return `${column} = CASE WHEN last_insert_id() > 0 THEN ${value} ELSE ${column} END`;
}

/** The values of it. */
export function grantingValues(row: Buffer, { owner, id, ttlMs, by }: HoldRecord, process: string, latest: number): unknown[] {
  const lease = Math.ceil(ttlMs);
  const [ownerBytes, byBytes, holds] = [Buffer.from(owner), Buffer.from(by), holdsOf(id, process)];
  return [
    ...[row, ownerBytes, lease, byBytes, lease, holds, latest, latest],
    ...[Buffer.from(id), ownerBytes, lease, byBytes, lease, holds],
  ];
}

/** Releases the only hold of a lock that nobody waits for, and leaves its done mark in the row. */
export function releasingStatement(table: string): string {
  return `UPDATE ${table} SET owner = NULL, holds = NULL, turn = NULL, ends = ${NOW}, done_hold = ?, done_answer = 1, done_ends = ${NOW} + ${DONE_MS} * 1000
WHERE name = ? AND owner = ? AND holds = ? AND ends > ${NOW} AND queue IS NULL AND done_ends <= ${NOW}`;
}

/** The values of it. */
export function releasingValues(row: Buffer, { owner, id }: HoldRecord, process: string): unknown[] {
  return [Buffer.from(id), row, Buffer.from(owner), holdsOf(id, process)];
}

function holdsOf(id: string, process: string): Buffer {
  return Buffer.from(`;${id}=${process};`);
}
