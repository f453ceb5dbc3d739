import { PostgresDialect } from '../../../lib/postgres/postgres-dialect.js';
import { PostgresLockStore } from '../../../lib/postgres/postgres-lock-store.js';
import type { PostgresPool } from '../../../lib/postgres/postgres-pool.js';
import { checkSchema, qualified } from '../../../lib/postgres/schema-name.js';
import { CHECK, checkVersion, PRODUCT, productBy, serverWarnings } from '../../../lib/postgres/server-check.js';
import { Calls } from '../../../lib/sql/calls.js';
import { failure, ok, versionFinding, warning, type Finding } from './finding.js';
import { databaseWritesFinding } from './writes-finding.js';

const LIMIT = { key: '', limitMs: 1_000 } as const;

/** Why a server that answers reads may hold up writes. */
const LOCKED =
  'A session may have locked the tables, or commits wait for a standby that is away: see pg_stat_activity, and synchronous_standby_names.';

/** Findings about a database of PostgreSQL: its settings, the locks in it, and whether it takes writes. */
export async function postgresFindings(pool: PostgresPool, given: string | undefined, prefix: string, name: string): Promise<Finding[]> {
  const schema = checkSchema(given);
  const calls = new Calls(new PostgresDialect(pool, schema));
  const findings: Finding[] = [];
  try {
    const [product = {}] = await calls.run({ sql: `SELECT ${PRODUCT}`, values: [] }, LIMIT);
    findings.push(versionFinding(`${name}: version`, productBy(product), 'PostgreSQL'));
    const [row = {}] = await calls.run({ sql: CHECK, values: [schema] }, LIMIT);
    findings.push(...serverWarnings(row, schema).map((text) => warning(`${name}: settings`, text)));
    findings.push(ok(`${name}: rights`, `The user may read and write the tables in "${schema}".`));
    const [made] = await calls.run({ sql: qualified('SELECT SCHEMA.version() AS version', schema), values: [] }, LIMIT);
    checkVersion(Number(made?.['version']), schema);
    findings.push(ok(`${name}: schema`, `"${schema}" has version ${String(made?.['version'])}.`));
    findings.push(await databaseWritesFinding(new PostgresLockStore(pool, { schema, listen: false }), prefix, name, LOCKED));
  } catch (error) {
    findings.push(failure(name, error));
  }
  return findings;
}
