import { LockConfigurationError } from '../../core/words/errors.js';
import type { Row } from './mysql-pool.js';

/** What a server is asked at the start. */
export const CHECK = `SELECT version() AS version, @@innodb_flush_log_at_trx_commit AS flushes, @@read_only AS is_read_only`;

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

/** Throws `LockConfigurationError` where a database is `1 of 2` here, and another one elsewhere. */
export function checkNumber(number: string, found: string | undefined, row: Buffer, table: string): void {
  if (found !== undefined && found !== number) {
    throw new LockConfigurationError(
      `MySqlLockStore: pool ${number} leads to a database that other processes know as ${found}. Pass the same databases in the same order ` +
        `everywhere. Where the list was changed, stop all processes first and then run DELETE FROM ${table} WHERE name = '${row.toString()}' in each of them.`,
    );
  }
}
