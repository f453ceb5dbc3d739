/** The SQL types of parameters, and what they take. Texts are bytes of UTF-8, which are compared byte by byte. */
interface SqlTypes {
  'VARBINARY(2048)': Buffer;
  MEDIUMBLOB: Buffer | null;
  /** That of the database could have two bytes for each letter. */
  'LONGTEXT CHARACTER SET utf8mb4': string;
  BIGINT: number;
  BOOLEAN: boolean;
}

/** The parameters of an operation in their order, each with its SQL type. In SQL, `ttlMs` is called `_ttl_ms`. */
export type Parameters = Readonly<Record<string, keyof SqlTypes>>;

/** The arguments of one call of an operation. */
export type ArgumentsOf<P extends Parameters> = { readonly [Name in keyof P]: SqlTypes[P[Name]] };

/** A stored procedure that the store calls. It answers one row. */
export interface Procedure<P extends Parameters = Parameters> {
  readonly name: string;
  readonly parameters: P;
  /** What stands between BEGIN and END. */
  readonly body: string;
}

/** Declares an operation that commits by itself, and reads what is committed at each of its statements. */
export function procedure<const P extends Parameters>(
  name: string,
  parameters: P,
  variables: string,
  body: string,
  reply: string,
): Procedure<P> {
  return { name, parameters, body: transaction(variables, body, reply) };
}

/**
 * One transaction. It is READ COMMITTED whatever the session has, so that each statement sees what was committed while the one before it
 * waited for a row, and no gap is locked. MySQL refuses that where the last user of the connection left a transaction open.
 */
function transaction(variables: string, body: string, reply: string): string {
  return `
  ${variables}
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  ${body}
  COMMIT;
  ${reply}
`;
}

/** The statement that creates a procedure, which is called `name` there. */
export function creationOf({ parameters, body }: Procedure, name: string): string {
  const declared = Object.entries(parameters).map(([parameter, type]) => `IN ${sqlNameOf(parameter)} ${type}`);
  return `CREATE PROCEDURE ${name}(${declared.join(', ')})
SQL SECURITY INVOKER
operation: BEGIN${body}END`;
}

/** The values of a call, in the order of the parameters. */
export function valuesOf<P extends Parameters>({ parameters }: Procedure<P>, args: ArgumentsOf<P>): unknown[] {
  return Object.keys(parameters).map((parameter) => args[parameter]);
}

function sqlNameOf(parameter: string): string {
  return `_${parameter.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}
