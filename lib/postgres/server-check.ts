import { LockConfigurationError } from '../core/words/errors.js';
import { productIn, type Product } from '../kit/product.js';
import type { Row } from '../sql/dialect.js';
import { SCHEMA_VERSION } from './schema.js';

/** The oldest version of PostgreSQL that has everything the functions use. */
const OLDEST = 120_000;

/** The question to a server at the start; `$1` is the schema. */
export const CHECK = `
SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
  concat_ws(' and ', CASE current_setting('fsync') WHEN 'off' THEN 'fsync' END, CASE current_setting('synchronous_commit') WHEN 'off' THEN 'synchronous_commit' END) AS off,
  pg_is_in_recovery()::text AS is_standby, current_setting('transaction_read_only') AS is_read_only, (to_regprocedure(quote_ident($1) || '.version()') IS NOT NULL)::text AS has_locks,
  (
    SELECT string_agg(privilege || ' on ' || relname, ', ')
    FROM pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
    WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relname IN ('lease', 'done') AND NOT has_table_privilege(oid, privilege)
  ) AS missing
`;

/**
 * The warnings that the reply to CHECK gives rise to. Throws `LockConfigurationError` for a server that cannot have
 * locks.
 */
export function serverWarnings(reply: Row, schema: string): string[] {
  const {
    version,
    encoding,
    off,
    is_standby: isStandby,
    has_locks: hasLocks,
    missing,
    is_read_only: isReadOnly,
  } = reply as Readonly<Record<string, string | null>>;
  if (Number(version) < OLDEST) {
    throw new LockConfigurationError(`PostgresLockStore: the server has version ${version}. Use PostgreSQL ${OLDEST / 10_000} or later.`);
  }
  if (encoding !== 'UTF8') {
    throw new LockConfigurationError(
      `PostgresLockStore: the database has the encoding ${encoding}. Use one with UTF8, which can store every key.`,
    );
  }
  if (hasLocks !== 'true') {
    throw new LockConfigurationError(
      `PostgresLockStore: the database has no locks in the schema "${schema}". Call ensureSchema() of the store, or run what schemaSql() returns.`,
    );
  }
  if (missing) {
    throw new LockConfigurationError(`PostgresLockStore: the user lacks ${missing}. Grant that in the schema "${schema}".`);
  }
  if (isReadOnly === 'on' && isStandby !== 'true') {
    throw new LockConfigurationError(
      'PostgresLockStore: the sessions of the pool are read-only, because default_transaction_read_only is on. Set it to off for the user, the database or the pool of the locks.',
    );
  }
  const warnings: string[] = [];
  if (isStandby === 'true') {
    warnings.push(
      'PostgreSQL is a read-only standby. Locked calls fail until it is promoted; make sure that the pool leads to the primary.',
    );
  }
  if (off) {
    warnings.push(`PostgreSQL may lose locks in a crash: ${off} is off. Set it to on for the database of the locks.`);
  }
  return warnings;
}

/** Throws `LockConfigurationError` for tables and functions of another version. */
export function checkVersion(version: number, schema: string): void {
  if (version !== SCHEMA_VERSION) {
    const cure =
      version < SCHEMA_VERSION
        ? 'Call ensureSchema() of the store, or run what schemaSql() returns.'
        : 'Use the later version of nestjs-distributed-lock that made it.';
    throw new LockConfigurationError(
      `PostgresLockStore: the schema "${schema}" has version ${version}, and this library needs ${SCHEMA_VERSION}. ${cure}`,
    );
  }
}

/**
 * The columns of a statement that show the product: Aurora has a function of its own, and the others a version of their
 * own.
 */
export const PRODUCT = `version() AS product, (to_regproc('aurora_version') IS NOT NULL)::text AS is_aurora`;

const COCKROACH =
  'CockroachDB has no LISTEN and NOTIFY, so that waiting processes poll, and its advisory locks of sessions exclude nobody. ' +
  'These locks were never run on it: run their contract there first, or keep them in PostgreSQL.';
const YUGABYTE =
  'YugabyteDB has LISTEN and NOTIFY from 2025.2.3 on; before, waiting processes poll. ' +
  'These locks were never run on it: run their contract there first, or keep them in PostgreSQL.';

const PRODUCTS = [
  [/^CockroachDB .*?v(\d\S*)/, 'CockroachDB', COCKROACH],
  [/-YB-(\d\S*)/, 'YugabyteDB', YUGABYTE],
  [/^PostgreSQL (\S+)/, 'PostgreSQL'],
] as const;

/** The product of a server, by the columns of PRODUCT; undefined where they do not say. */
export function productBy({ product, is_aurora: isAurora }: Row): Product | undefined {
  const found = productIn(String(product), PRODUCTS);
  return found && isAurora === 'true' ? { ...found, name: 'Aurora' } : found;
}
