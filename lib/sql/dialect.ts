import type { Operation } from './operation.js';

/** A row of a reply, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement. On PostgreSQL it may be a script where it has no values; on MySQL it is prepared where it has some. */
export interface Sql {
  readonly sql: string;
  readonly values?: readonly unknown[] | undefined;
}

/** Is given the reply to a statement as its driver has it, or its error. */
export type Answered = (error: Error | null | undefined, reply?: unknown) => void;

/** A connection of a pool. */
export interface PooledConnection {
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/**
 * How a driver sends a statement, and the meaning of its errors and replies. The SQL of the operations is in
 * `OPERATIONS` of each store.
 */
export interface Dialect<Connection extends PooledConnection = PooledConnection> {
  /** The name of the database in messages. */
  readonly name: string;
  /** The class of the store, as messages name it: code may be minified. */
  readonly store: string;
  /** The table of locks, as messages name it. */
  readonly table: string;

  /** Asks the pool for a connection. */
  connect(connected: (error: Error | null | undefined, connection: Connection | undefined) => void): void;
  /** Why the pool gave none within the limit. */
  whyNone(limitMs: number): string;
  send(connection: Connection, statement: Sql, answered: Answered): void;
  /** Gives a connection back to the pool, or ends it. */
  release(connection: Connection, end: Error | boolean): void;
  /** Asks the server to end the statement of a connection: one that is only closed would live on in the server. */
  cancel(connection: Connection, isAnswered: () => boolean): Promise<void> | void;

  /** Whether nothing was done because the last user of the connection left a transaction open. */
  isInTransaction(error: Error): boolean;
  /** Whether the connection is in order after the error of a statement. */
  mayStay(error: Error, statement: Sql): boolean;
  /** Whether the server answered with an error, and did nothing. */
  isRefusal(error: Error): boolean;
  /** Whether nothing was done because of a concurrent statement, and it may be sent again at once. */
  isConflict(error: unknown): boolean;
  /** How to mend an error that no repetition changes. */
  cureOf(error: Error): string | undefined;
  /** Whether such an error is about the name of one key, and no refusal of all calls. */
  isOfKey(error: Error): boolean;
  /** The next step after any other error that the server answered: the end of a message. */
  nextStep(error: Error): string;

  /** The SQL that calls an operation. */
  callOf(operation: Operation): string;
  /** The answer of an operation in a reply, and the time of the server's clock, in ms since 1970. */
  answerIn(reply: unknown, key: string): { readonly answer: unknown; readonly serverMs: number };
}
