/**
 * For how long an operation waits for a row that another transaction has locked, before the server refuses it. Without
 * a limit its backend would go on waiting after the process has given up.
 */
const LOCK_WAIT = '800ms';

/** What JavaScript passes for a parameter of each SQL type. */
interface SqlTypes {
  text: string | null;
  bigint: number;
  boolean: boolean;
  'text[]': readonly string[];
  'bigint[]': readonly number[];
  'boolean[]': readonly boolean[];
}

/** The parameters of an operation in their order, each with its SQL type. In SQL, `ttlMs` is called `_ttl_ms`. */
export type Parameters = Readonly<Record<string, keyof SqlTypes>>;

/** The arguments of one call of an operation. */
export type ArgumentsOf<P extends Parameters> = { readonly [Name in keyof P]: SqlTypes[P[Name]] };

/** A function of the schema that the store calls. It replies with JSON. */
export interface Operation<P extends Parameters = Parameters> {
  readonly name: string;
  readonly parameters: P;
  /** The SQL that makes it. */
  readonly source: string;
}

/** The SQL of a function in PL/pgSQL. `SCHEMA` stands for the schema. */
export function sqlFunction(declaration: string, returns: string, body: string, settings = ''): string {
  return `CREATE OR REPLACE FUNCTION SCHEMA.${declaration} RETURNS ${returns} LANGUAGE plpgsql ${settings}AS $body$${body}$body$;`;
}

/**
 * Declares an operation. Its settings last as long as the call, and apply to the functions that it calls. Sequential
 * scans are off because a session keeps its plans: one that was made while a table was small would go on scanning it
 * when it has grown.
 */
export function operation<const P extends Parameters>(name: string, parameters: P, body: string): Operation<P> {
  const declared = Object.entries(parameters).map(([parameter, type]) => `${sqlNameOf(parameter)} ${type}`);
  const settings = `SET lock_timeout = '${LOCK_WAIT}' SET enable_seqscan = off `;
  return { name, parameters, source: sqlFunction(`${name}(${declared.join(', ')})`, 'text', body, settings) };
}

/** The expression that calls an operation with the values of `valuesOf`. `SCHEMA` stands for the schema. */
export function callOf({ name, parameters }: Operation): string {
  const places = Object.keys(parameters).map((_, at) => `$${at + 1}`);
  return `SCHEMA.${name}(${places.join(', ')})`;
}

/** The values of a call, in the order of the parameters. */
export function valuesOf<P extends Parameters>({ parameters }: Operation<P>, args: ArgumentsOf<P>): unknown[] {
  return Object.keys(parameters).map((parameter) => args[parameter]);
}

function sqlNameOf(parameter: string): string {
  return `_${parameter.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}
