/** The JavaScript type for a parameter of each SQL type: first the types of PostgreSQL, then those of MySQL. */
interface SqlTypes {
  text: string | null;
  bigint: number;
  boolean: boolean;
  'text[]': readonly (string | null)[];
  'bigint[]': readonly number[];
  'boolean[]': readonly boolean[];
  'VARBINARY(2048)': string | Buffer;
  MEDIUMBLOB: string | Buffer | null;
  /** The type names utf8mb4: the default character set of the database may store each letter in two bytes. */
  'LONGTEXT CHARACTER SET utf8mb4': string;
  BIGINT: number;
  BOOLEAN: boolean;
}

/** The parameters of an operation in their order, each with its SQL type. In SQL, `ttlMs` is called `_ttl_ms`. */
export type Parameters<Name extends string = string> = Readonly<Record<Name, keyof SqlTypes>>;

/** The arguments of one call of an operation. */
export type ArgumentsOf<P extends Parameters> = { readonly [Name in keyof P]: SqlTypes[P[Name]] };

/**
 * The answer of an operation that would grant a lock later than its sender waits for the reply, by the server's clock.
 * Such an operation grants nothing, because no call would hold the lock. `latest` is the latest time of a grant, in ms
 * since 1970; 0 where the sender does not know the server's clock.
 */
export const LATE = 'late';

/** A function or procedure that the store calls. */
export interface Operation<P extends Parameters = Parameters, Reply = unknown> {
  readonly name: string;
  readonly parameters: P;
  /** Reads an answer about a key. */
  read(answer: unknown, key: string): Reply;
  /** Carries out several calls; undefined where each is a statement of its own. */
  readonly batch?: Operation;
}

/** Bytes go to the server unchanged, whatever character set its session has. */
const BYTES: ReadonlySet<string> = new Set<keyof SqlTypes>(['VARBINARY(2048)', 'MEDIUMBLOB']);

/** The values of a call, in the order of the parameters. */
export function valuesOf<P extends Parameters>({ parameters }: Operation<P>, args: ArgumentsOf<P>): unknown[] {
  return Object.entries(parameters).map(([parameter, type]) => {
    const value: unknown = args[parameter];
    return typeof value === 'string' && BYTES.has(type) ? Buffer.from(value) : value;
  });
}

export function sqlNameOf(parameter: string): string {
  return `_${parameter.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}
