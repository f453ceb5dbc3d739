import { ACQUIRE, ACQUIRE_SHARED, CONTEND, IS_TURN_OF } from './functions/acquire.js';
import { EXCHANGE } from './functions/exchange.js';
import { COUNTABLE, GRANT, GRANT_SHARED } from './functions/grant.js';
import { JOIN, JOIN_SHARED } from './functions/join.js';
import { KEEP, LOCKED } from './functions/lease-row.js';
import { IS_PRESENT, NOTIFY, PRESENCE } from './functions/message.js';
import { FORCE_RELEASE, INSPECT, INSPECT_SHARED } from './functions/operator.js';
import { HAND_OVER, LEAVE, OFF_QUEUE } from './functions/queue.js';
import { IS_DONE, RELEASE, TAKE_OUT } from './functions/release.js';
import { AWAIT_ROW, RENEW, RENEW_SHARED } from './functions/renew.js';
import { CUT_SHARED, ENTER, HAS_ROOM, LENGTHEN, OTHER_KIND, RESERVE, SHARES_OF, SHARING, UNRESERVE } from './functions/shared-holds.js';
import type { SqlFunction } from './functions/sql-function.js';
import { NUMBERED, PURGE, TIDY } from './functions/upkeep.js';

/** The functions that operations are made of. Each function stands after those that it uses. */
const PARTS: readonly string[] = [
  SHARES_OF,
  SHARING,
  HAS_ROOM,
  ENTER,
  RESERVE,
  UNRESERVE,
  LENGTHEN,
  CUT_SHARED,
  OTHER_KIND,
  LOCKED,
  KEEP,
  IS_DONE,
  NOTIFY,
  PRESENCE,
  IS_PRESENT,
  OFF_QUEUE,
  HAND_OVER,
  COUNTABLE,
  GRANT,
  GRANT_SHARED,
  IS_TURN_OF,
  CONTEND,
  TAKE_OUT,
  AWAIT_ROW,
  RENEW_SHARED,
  INSPECT_SHARED,
];

/**
 * The operations of the store, as functions of the schema, as the scripts are the operations of the Redis store.
 * `LockOperations` describes each of them.
 *
 * Each operation locks the row of its key. Then it reads the clock and the done marks in statements of their own, which
 * see what was committed while it waited. Where the isolation level of a session is higher than READ COMMITTED they see
 * less, and the server refuses to write a row that has changed meanwhile. So each operation on a hold writes its row,
 * changed or not.
 */
export const OPERATIONS = {
  ACQUIRE,
  ACQUIRE_SHARED,
  EXCHANGE,
  JOIN,
  JOIN_SHARED,
  RENEW,
  RELEASE,
  LEAVE,
  INSPECT,
  FORCE_RELEASE,
  TIDY,
  PURGE,
  NUMBERED,
} as const;

/** The SQL of all functions. `SCHEMA` stands for the schema. */
export const FUNCTIONS: readonly string[] = [
  ...PARTS,
  ...Object.values<SqlFunction>(OPERATIONS).flatMap(({ source, batch }) => (batch ? [source, batch.source] : [source])),
];

/**
 * Drops functions that earlier sources of this version named otherwise, or gave other parameters. The types of the
 * parameters are named too, so that no function of the user is dropped. A released version that renames an operation
 * has to raise `SCHEMA_VERSION` instead, since older processes call the old name.
 */
export const FORMER = `DROP FUNCTION IF EXISTS SCHEMA.pass(text, text, text, text, bigint, text, text, boolean, text, boolean, bigint);
DROP FUNCTION IF EXISTS SCHEMA.give(SCHEMA.lease, text, text, text, bigint, text, text);
DROP FUNCTION IF EXISTS SCHEMA.let_go(SCHEMA.lease, text);
DROP FUNCTION IF EXISTS SCHEMA.release(text, text);
DROP FUNCTION IF EXISTS SCHEMA.exchange(text, text, text, text, bigint, text, text, boolean, text, boolean, bigint);
DROP FUNCTION IF EXISTS SCHEMA.take_out(SCHEMA.lease, text);
DROP FUNCTION IF EXISTS SCHEMA.take_out(SCHEMA.lease, text, text);
DROP FUNCTION IF EXISTS SCHEMA.release(text, text, text);
DROP FUNCTION IF EXISTS SCHEMA.release_batch(text[], text[], text[]);
DROP FUNCTION IF EXISTS SCHEMA.exchange(text, text, text, text, bigint, text, text, boolean, text, text, boolean, bigint);
DROP FUNCTION IF EXISTS SCHEMA.tell(text, text);
DROP FUNCTION IF EXISTS SCHEMA.renew(text[], text[], bigint[], text[], bigint[], boolean[], bigint);
DROP FUNCTION IF EXISTS SCHEMA.contend(SCHEMA.lease, text, text, text, bigint, text, text, boolean, bigint);`;
