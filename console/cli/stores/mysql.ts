import { isIP } from 'node:net';
import type { Pool } from 'mysql2';
import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import { MySqlLockStore } from '../../../lib/mysql/mysql-lock-store.js';
import type { Address } from '../address/address.js';
import { mysqlFindings } from '../doctor/mysql-findings.js';
import type { NewStore } from './new-store.js';
import { serverNames } from './server-names.js';

export async function newMySqlStore(address: Address): Promise<NewStore> {
  const pools = await mysqlPools(address);
  const names = serverNames(pools);
  return {
    store: new MySqlLockStore(pools),
    findings: async (prefix) => (await Promise.all(pools.map((pool, at) => mysqlFindings(pool, prefix, names[at] as string)))).flat(),
    end: () => endPools(pools),
  };
}

/** Ends pools, whether their connections broke or not. */
export async function endPools(pools: readonly Pool[]): Promise<void> {
  await Promise.all(pools.map((pool) => new Promise((resolve) => pool.end(resolve))));
}

/** A pool for each database, of a few connections; each leads to what `databaseAt` says where that is given. */
export async function mysqlPools({ urls, tls }: Address, max = 3, databaseAt?: (at: number) => string): Promise<readonly Pool[]> {
  const { createPool } = await import('mysql2').catch((cause: unknown) => {
    throw new LockConfigurationError('--mysql needs the package mysql2. Install it: npm install mysql2.', '', { cause });
  });
  return urls.map((uri, at) =>
    createPool({
      uri,
      ...(databaseAt ? { database: databaseAt(at) } : {}),
      // The driver compares the name of the host only where it is told to, and an address never as what it is.
      ...(tls ? { ssl: { ...tls, verifyIdentity: isIP(hostOf(uri)) === 0 } } : {}),
      connectionLimit: max,
      connectTimeout: 3_000,
    }),
  );
}

function hostOf(url: string): string {
  return new URL(url).hostname.replaceAll(/^\[|\]$/g, '');
}
