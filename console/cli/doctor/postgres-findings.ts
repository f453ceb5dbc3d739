import { PostgresDialect } from '../../../lib/stores/postgres/postgres-dialect.js';
import type { PostgresPool } from '../../../lib/stores/postgres/postgres-pool.js';
import { checkSchema, qualified } from '../../../lib/stores/postgres/schema-name.js';
import { CHECK, checkVersion, PRODUCT, productBy, serverWarnings } from '../../../lib/stores/postgres/server-check.js';
import { Calls } from '../../../lib/stores/sql/calls.js';
import { failure, ok, versionFinding, warning, type Finding } from './finding.js';

const LIMIT = { key: '', limitMs: 1_000 } as const;

/** What a database says of itself and of the locks in it, without writing. */
export async function postgresFindings(pool: PostgresPool, given: string | undefined, name: string): Promise<Finding[]> {
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
  } catch (error) {
    findings.push(failure(name, error));
  }
  return findings;
}
