/** The statement would be committed with others that somebody else began: it was undone with the connection. */
export class NotCommitted extends Error {
  constructor() {
    super('the session does not commit by itself');
  }
}

/** Codes of errors of the server: https://mariadb.com/docs/server/reference/error-codes. */
const ERRORS = {
  /** Two transactions waited for each other, or one waited too long for a row. The procedure has rolled back. */
  conflict: [1205, 1213],
  /**
   * The last user of the connection left a transaction open, its own or one of XA, or locked tables, or lets it read
   * few rows: nothing was done.
   */
  unfit: [1099, 1100, 1104, 1192, 1223, 1397, 1398, 1399, 1400, 1401, 1402, 1440, 1568, 1613, 1614],
  /** The user, the password or the database is wrong. */
  access: [1045, 1049, 1698],
  /** The user lacks a right on the database, a table or a procedure. */
  right: [1044, 1142, 1143, 1227, 1370],
  /** There is no such table or procedure, or no such parameter. */
  missing: [1146, 1305, 1318, 1054],
  /** The server is read-only, as a replica is. */
  readOnly: [1290, 1836],
  /** Transactions of this session are read-only, unless they say otherwise, as the procedures do. */
  readOnlySession: [1792],
  /** The statement was ended, or its commit failed: it may have been committed before. */
  ended: [1053, 1077, 1180, 1317, 1927, 1969, 3024, 3169],
  /** The server, or the user, has no connection left. */
  connections: [1040, 1203, 1226],
  /** Statements are replicated by their text, which READ COMMITTED does not allow. */
  binlog: [1665],
  /** A key may not be as long as the keys of the tables. */
  pageSize: [1071],
  /** All connections of the server have prepared as many statements as they may together. */
  prepared: [1461],
} as const;

type Kind = keyof typeof ERRORS;

export function isA(error: unknown, kind: Kind): boolean {
  return (ERRORS[kind] as readonly unknown[]).includes(codeOf(error));
}

/** Whether the server answered with an error, and did nothing. */
export function isRefusal(error: unknown): boolean {
  const isAnswered = error instanceof Error && 'sqlState' in error && !('fatal' in error && error.fatal === true);
  return isAnswered && !isA(error, 'ended') && !isOfClient(codeOf(error));
}

/** Whether it is a code of clients, such as 2013: a proxy answers with those where it has lost the server. */
function isOfClient(code: unknown): boolean {
  return typeof code === 'number' && code >= 2_000 && code < 3_000;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'errno' in error ? error.errno : undefined;
}
