/**
 * The SQL of the table that `withRowLock` needs, for the database of the connection. It may be run again. It commits an
 * open transaction, as all DDL does.
 *
 * A row is a key, in its bytes of UTF-8. `turn` is a random value that every holder replaces: a transaction that reads
 * an older one has a snapshot from before the last holder's commit.
 */
export function rowLockSql(): string {
  return `CREATE TABLE IF NOT EXISTS distributed_lock_row (
  name VARBINARY(2048) NOT NULL PRIMARY KEY,
  turn BINARY(8) NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
`;
}

/**
 * Locks the row, and makes it where it is missing; values: the key, a turn. Not `SELECT … FOR UPDATE`, which would lock
 * the gap of a missing row for two transactions at once, neither of which could then insert. Not `INSERT IGNORE`, which
 * locks for sharing only.
 */
export const LOCK = 'INSERT INTO distributed_lock_row (name, turn) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = name';

/** The turn of the row as the last holder left it, with the row locked; value: the key. */
export const CURRENT_TURN = 'SELECT HEX(turn) AS turn FROM distributed_lock_row WHERE name = ? FOR UPDATE';

/** The turn of a row, with the row locked, or an error at once where somebody else has locked the row. */
export const CURRENT_TURN_NOWAIT = `${CURRENT_TURN} NOWAIT`;

/** The turn of the row as this transaction's plain reads see it; value: the key. */
export const SEEN_TURN = 'SELECT HEX(turn) AS turn FROM distributed_lock_row WHERE name = ?';

/** Takes the turn; values: the turn, the key. One key in each statement, since a list could lock all rows by a scan. */
export const TAKE_TURN = 'UPDATE distributed_lock_row SET turn = ? WHERE name = ?';
