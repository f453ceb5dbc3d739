import { LockConfigurationError } from '../core/words/errors.js';
import { productIn, type Product } from '../kit/product.js';
import type { Row } from '../sql/dialect.js';

/** The question to a server at the start. */
export const CHECK = `SELECT version() AS version, @@innodb_flush_log_at_trx_commit AS flushes, @@read_only AS is_read_only LIMIT 1`;

/** Whether it takes no writes of this user, as an expression: some may write to a server that is read-only. */
export const IS_READ_ONLY = `@@global.read_only NOT IN ('0', 'OFF') AND NOT EXISTS (
  SELECT * FROM information_schema.user_privileges
  WHERE grantee = concat('''', replace(current_user(), '@', '''@'''), '''')
    AND privilege_type IN ('SUPER', 'READ_ONLY ADMIN', 'READ ONLY ADMIN', 'CONNECTION_ADMIN')
)`;

/** The warnings that the reply to CHECK gives rise to. Throws `LockConfigurationError` for a server that is too old. */
export function serverWarnings(row: Row): string[] {
  const version = String(row['version']);
  const isMariaDb = /mariadb/i.test(version);
  const [major = 0, minor = 0] = version.replace(/^5\.5\.5-/, '').split('.').map(Number); // prettier-ignore
  if (isMariaDb ? major < 10 || (major === 10 && minor < 6) : major < 8) {
    throw new LockConfigurationError(
      `MySqlLockStore: the server has version ${version}. Use MariaDB 10.6 or later, or MySQL 8.0 or later.`,
    );
  }
  const warnings: string[] = [];
  if (Number(row['is_read_only']) > 0) {
    warnings.push(
      'MySQL is read-only, as a replica is. Locked calls fail until it is promoted; make sure that the pool leads to the primary.',
    );
  }
  if (Number(row['flushes']) !== 1) {
    warnings.push(
      'MySQL may lose locks when its machine crashes: innodb_flush_log_at_trx_commit is not 1. Set it to 1 on the server of the locks.',
    );
  }
  return warnings;
}

/** Aurora alone has a row here. Its version is otherwise the version of MySQL. */
export const AURORA = `SHOW GLOBAL VARIABLES LIKE 'aurora_version'`;

const TIDB = 'TiDB has no stored procedures, and these locks are made of them: ensureSchema() fails there. Keep them in another database.';
const VITESS =
  'The named locks of Vitess, by which waiting processes are woken, are those of one shard. Keep the locks in a keyspace with one.';

const PRODUCTS = [
  [/-TiDB-v?(\d\S*)/, 'TiDB', TIDB],
  [/^(\d\S*)-Vitess/, 'Vitess', VITESS],
  // Some versions of MariaDB begin with one that old replicas of MySQL understand.
  [/^(?:5\.5\.5-)?(\d[\d.]*)-MariaDB/i, 'MariaDB'],
  [/^(\d[\d.]*)/, 'MySQL'],
] as const;

/** The product of a server, by its version; undefined where the version does not say. */
export function productBy(version: string, isAurora: boolean): Product | undefined {
  const found = productIn(version, PRODUCTS);
  return found && isAurora ? { ...found, name: 'Aurora' } : found;
}
