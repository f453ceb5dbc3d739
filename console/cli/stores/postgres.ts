import type { Pool } from 'pg';
import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import { PostgresLockStore } from '../../../lib/postgres/postgres-lock-store.js';
import type { Address } from '../address/address.js';
import { postgresFindings } from '../doctor/postgres-findings.js';
import type { NewStore } from './new-store.js';
import { serverNames } from './server-names.js';

/**
 * The parameters of a URL that decide on TLS. With files of certificates, the server has to prove who it is, whatever
 * the parameters say.
 */
const TLS_PARAMETERS = ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'uselibpqcompat'];

export async function newPostgresStore(address: Address, schema: string | undefined): Promise<NewStore> {
  const pools = await postgresPools(address);
  const names = serverNames(pools);
  return {
    store: new PostgresLockStore(pools, { schema }),
    findings: async (prefix) =>
      (await Promise.all(pools.map((pool, at) => postgresFindings(pool, schema, prefix, names[at] as string)))).flat(),
    end: () => endPools(pools),
  };
}

/** Ends pools, whether their connections broke or not. */
export async function endPools(pools: readonly Pool[]): Promise<void> {
  await Promise.allSettled(pools.map((pool) => pool.end()));
}

/** A pool for each database, of a few connections. */
export async function postgresPools({ urls, tls }: Address, max = 2): Promise<readonly Pool[]> {
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw new LockConfigurationError('--postgres needs the package pg. Install it: npm install pg.', '', { cause });
  });
  return urls.map((url) => {
    const pool = new pg.Pool({
      connectionString: tls ? withoutTls(url) : url,
      ...(tls ? { ssl: { ...tls } } : {}),
      max,
      connectionTimeoutMillis: 3_000,
      application_name: 'nestjs-distributed-lock',
    });
    // A connection that breaks shows in the next statement.
    pool.on('error', () => undefined);
    return pool;
  });
}

function withoutTls(text: string): string {
  const url = new URL(text);
  TLS_PARAMETERS.forEach((name) => url.searchParams.delete(name));
  return url.href;
}
