import type { Row } from '../../sql/dialect.js';
import { sqlNameOf, type Operation, type Parameters } from '../../sql/operation.js';
import { ROLLBACK } from '../tables.js';

/** The type of names. Texts are bytes of UTF-8, which are compared byte by byte. */
export const NAME = 'VARBINARY(2048)';

/** Has the session follow the server's clock again. */
const SET_CLOCK = 'SET timestamp = DEFAULT;';

/** A stored procedure that the store calls. It answers one row. */
export interface Procedure<P extends Parameters = Parameters, Reply = unknown> extends Operation<P, Reply> {
  /** The SQL between BEGIN and END. */
  readonly body: string;
}

/**
 * Declares an operation that commits by itself, and reads the committed data at each of its statements. `read` reads
 * the row.
 */
export function procedure<const P extends Parameters, Reply>(
  name: string,
  parameters: P,
  variables: string,
  body: string,
  reply: string,
  read: (row: Row, key: string) => Reply,
): Procedure<P, Reply> {
  return { name, parameters, body: transaction(variables, body, reply), read: (row, key) => read(row as Row, key) };
}

/**
 * One transaction. It is READ COMMITTED whatever the session has, so that each statement sees what was committed while
 * the one before it waited for a row, and no gap is locked. MySQL refuses READ COMMITTED where the last user of the
 * connection left a transaction open. Other settings of that user change neither the clock nor the effect of a commit.
 */
function transaction(variables: string, body: string, reply: string): string {
  return `
  ${variables}
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ${ROLLBACK}; RESIGNAL; END;
  ${SET_CLOCK}
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  ${body}
  COMMIT AND NO CHAIN NO RELEASE;
  ${reply}
`;
}

/** Comes before a query that reads the clock: the query then sees the data that is committed by now. */
export const REFRESH: Procedure = {
  name: 'refresh',
  parameters: {},
  body: `
  ${ROLLBACK};
  ${SET_CLOCK}
`,
  read: () => undefined,
};

/** The statement that creates a procedure, which is called `name` there. */
export function creationOf({ parameters, body }: Procedure, name: string): string {
  const declared = Object.entries(parameters).map(([parameter, type]) => `IN ${sqlNameOf(parameter)} ${type}`);
  return `CREATE PROCEDURE ${name}(${declared.join(', ')})
SQL SECURITY INVOKER
BEGIN${body}END`;
}
