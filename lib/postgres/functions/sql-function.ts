import { LATE, sqlNameOf, type Operation, type Parameters } from '../../sql/operation.js';

/**
 * For how long an operation waits for a row that another transaction has locked, before the server refuses it. Without
 * a limit its backend would go on waiting after the process has given up.
 */
const LOCK_WAIT = '800ms';

/** A function of the schema that the store calls. It replies with JSON. */
export interface SqlFunction<P extends Parameters = Parameters, Reply = unknown> extends Operation<P, Reply> {
  /** The SQL that makes it. */
  readonly source: string;
  readonly batch?: SqlFunction;
}

/** The SQL of a function in PL/pgSQL. `SCHEMA` stands for the schema. */
export function sqlFunction(declaration: string, returns: string, body: string, settings = ''): string {
  return `CREATE OR REPLACE FUNCTION SCHEMA.${declaration} RETURNS ${returns} LANGUAGE plpgsql ${settings}AS $body$${body}$body$;`;
}

/**
 * Declares an operation. Its settings last as long as the call, and apply to the functions that it calls. Sequential
 * scans are off because a session keeps its plans: one that was made while a table was small would go on scanning it
 * when it has grown. The search path leaves out functions and operators that a user has made under names of the
 * server. `read` reads its reply.
 */
export function operation<const P extends Parameters, Reply = unknown>(
  name: string,
  parameters: P,
  body: string,
  read: (reply: unknown) => Reply,
): SqlFunction<P, Reply> {
  const declared = Object.entries(parameters).map(([parameter, type]) => `${sqlNameOf(parameter)} ${type}`);
  const settings = `SET lock_timeout = '${LOCK_WAIT}' SET enable_seqscan = off SET search_path = pg_catalog, pg_temp `;
  return { name, parameters, read, source: sqlFunction(`${name}(${declared.join(', ')})`, 'text', body, settings) };
}

/**
 * Adds the batch of an operation on a key: a function that carries out several calls in one transaction, in the order
 * of their keys. Without this order, two transactions that insert the rows of each other's keys would wait in vain.
 *
 * A call whose row another transaction has locked is left out, so that the others do not wait for that transaction.
 * They would hold their own rows meanwhile.
 *
 * The batch has the parameters of the operation, each as a list of values. Reply: a list of replies, with `null` for a
 * call that was left out.
 */
export function batchable<P extends Parameters & { readonly key: 'text' }, Reply>(single: SqlFunction<P, Reply>): SqlFunction<P, Reply> {
  const lists = Object.entries(single.parameters).map(([parameter, type]) => [parameter, `${type}[]`] as const);
  // A session may read NULL within a list as a text.
  const values = lists.map(([parameter]) => (parameter === 'place' ? `nullif(_place[i], '')` : `${sqlNameOf(parameter)}[i]`));
  const batch = operation(
    `${single.name}_batch`,
    Object.fromEntries(lists) as Parameters,
    `
DECLARE
  replies text[] := array_fill(NULL::text, ARRAY[cardinality(_key)]);
  locked_here text[] := ARRAY(SELECT key FROM SCHEMA.lease WHERE key = ANY (_key) FOR UPDATE SKIP LOCKED);
  locked_elsewhere text[] := ARRAY(SELECT key FROM SCHEMA.lease WHERE key = ANY (_key) AND NOT key = ANY (locked_here));
  i int;
BEGIN
  FOR i IN SELECT position FROM unnest(_key) WITH ORDINALITY AS k (key, position) ORDER BY key COLLATE "C", position LOOP
    IF NOT _key[i] = ANY (locked_elsewhere) THEN
      replies[i] := SCHEMA.${single.name}(${values.join(', ')});
    END IF;
  END LOOP;
  RETURN '[' || array_to_string(replies, ',', 'null') || ']';
END
`,
    (replies) => replies,
  );
  return { ...single, batch };
}

/** Reads 1 or 0. */
export function isOne(reply: unknown): boolean {
  return reply === 1;
}

/** The expression that calls an operation with its values. `SCHEMA` stands for the schema. */
export function callOf({ name, parameters }: Operation): string {
  const places = Object.keys(parameters).map((_, at) => `$${at + 1}`);
  return `SCHEMA.${name}(${places.join(', ')})`;
}

/** The SQL of a duration. */
export function interval(ms: number): string {
  return `interval '${ms} milliseconds'`;
}

/** The SQL of the time so many milliseconds from now; `ms` is an SQL expression. */
export function fromNow(ms: string): string {
  return `clock_timestamp() + ${ms} * interval '1 millisecond'`;
}

/** Whether a command is `LATE`. */
export const IS_LATE = '(_latest > 0 AND extract(epoch FROM clock_timestamp()) * 1000 > _latest)';

/** The SQL of the reply to an attempt that arrived late and would have been granted. */
export const LATE_REPLY = `to_json('${LATE}'::text)`;
