import { Calls } from '../../../lib/sql/calls.js';
import type { Row } from '../../../lib/sql/dialect.js';
import { MySqlDialect } from '../../../lib/mysql/mysql-dialect.js';
import { MySqlLockStore } from '../../../lib/mysql/mysql-lock-store.js';
import { checkMySqlPools } from '../../../lib/mysql/mysql-lock-store.options.js';
import type { MySqlPool } from '../../../lib/mysql/mysql-pool.js';
import { textOf } from '../../../lib/mysql/rows.js';
import { checkSchema, COLUMNS_FOUND, PROCEDURES_FOUND, readSchema } from '../../../lib/mysql/schema-found.js';
import { AURORA, CHECK, IS_READ_ONLY, productBy, serverWarnings } from '../../../lib/mysql/server-check.js';
import { failure, fails, ok, versionFinding, warning, type Finding } from './finding.js';
import { databaseWritesFinding } from './writes-finding.js';

const LIMIT = { key: '', limitMs: 1_000 } as const;
/** A server that takes no writes of this user has the finding of the store, which fails. */
const STATE = `SELECT ${IS_READ_ONLY} AS read_only`;

/** Why a server that answers reads may hold up writes. */
const LOCKED =
  'A session may have locked the tables or the server: see SHOW FULL PROCESSLIST for LOCK TABLES, FLUSH TABLES WITH READ LOCK or a backup.';

/** Findings about a database of MySQL or MariaDB: its settings, the locks in it, and whether it takes writes. */
export async function mysqlFindings(source: MySqlPool, prefix: string, name: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    const [{ pool, database }] = checkMySqlPools(source) as [ReturnType<typeof checkMySqlPools>[number]];
    const calls = new Calls(new MySqlDialect(pool, database));
    const ask = async (sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> => calls.run({ sql, values }, LIMIT);
    const [row = {}] = await ask(CHECK);
    const isAurora = (await ask(AURORA)).length > 0;
    findings.push(versionFinding(`${name}: version`, productBy(textOf(row['version']), isAurora), 'MariaDB', 'MySQL'));
    findings.push(...serverWarnings(row).map((text) => warning(`${name}: settings`, text)));
    const [state] = await ask(STATE);
    if (Number(state?.['read_only']) === 1) {
      findings.push({
        level: 'FAIL',
        subject: `${name}: replicas`,
        text: 'The server takes no writes of this user, as a replica does not. Pass the URL of the primary.',
      });
    }
    const values = [database];
    checkSchema(readSchema(await ask(PROCEDURES_FOUND, values), await ask(COLUMNS_FOUND, values), database), database);
    findings.push(ok(`${name}: schema`, `"${database}" has the tables and procedures of this version.`));
    if (!fails(findings)) {
      findings.push(await databaseWritesFinding(new MySqlLockStore(source), prefix, name, LOCKED));
    }
  } catch (error) {
    findings.push(failure(name, error));
  }
  return findings;
}
