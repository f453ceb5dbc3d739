import { randomBytes } from 'node:crypto';
import type { Pool } from 'mysql2';
import { LockConfigurationError, LockStoreError } from '../../../lib/core/words/errors.js';
import { MySqlLockStore } from '../../../lib/mysql/mysql-lock-store.js';
import { isA } from '../../../lib/mysql/mysql-errors.js';
import type { Address } from '../address/address.js';
import { mysqlFindings } from '../doctor/mysql-findings.js';
import { endPools, mysqlPools } from '../stores/mysql.js';
import { serverNames } from '../stores/server-names.js';
import { Made } from './made.js';
import type { Place } from './place.js';

/** As many as a pool of mysql2 has by itself: stores of three processes share it, and each takes two while it waits. */
const CONNECTIONS = 10;
const OWN = 'distributed_lock_contract_';

/** A database of its own beside each. */
export async function mysqlPlace(address: Address): Promise<Place> {
  const run = randomBytes(6).toString('hex');
  const nameOf = (at: number): string => `${OWN}${run}_${at + 1}`;
  const admins = await mysqlPools(address, 1);
  const pools = await mysqlPools(address, CONNECTIONS, nameOf);
  const names = serverNames(pools);
  const made = new Made<number>();
  return {
    name: `the database ${pools.map((_, at) => `"${nameOf(at)}"`).join(' and ')}`,
    offers: () => ['open', 'turns', 'tickets', 'operator', 'search', 'health', 'reservesFences'],
    async make() {
      for (const [at, admin] of admins.entries()) {
        await made.on(at, () => send(admin, `CREATE DATABASE ${nameOf(at)}`));
      }
      await new MySqlLockStore(pools).ensureSchema();
    },
    findings: async () => (await Promise.all(pools.map((pool, at) => mysqlFindings(pool, 'lock', names[at] as string)))).flat(),
    connect: () => new MySqlLockStore(pools),
    remove: () => made.remove((at) => send(admins[at] as Pool, `DROP DATABASE IF EXISTS ${nameOf(at)}`)),
    end: () => endPools([...admins, ...pools]),
  };
}

async function send(pool: Pool, sql: string): Promise<void> {
  try {
    await pool.promise().query(sql);
  } catch (cause) {
    const said = `MySQL failed: ${(cause as Error).message}.`;
    if (isA(cause, 'right')) {
      const grant = `GRANT ALL ON \`${OWN.replaceAll('_', String.raw`\_`)}%\`.* to the user`;
      throw new LockConfigurationError(
        `${said} The contract makes a database of its own: ${grant}, or pass another one that may make one.`,
        '',
        { cause },
      );
    }
    const isReadOnly = isA(cause, 'readOnly');
    const next = isReadOnly
      ? 'The server takes no writes, as a replica does not: pass the URL of the primary.'
      : 'Make sure that it runs and can be reached from here, with this user and password.';
    throw new LockStoreError(`${said} ${next}`, '', {
      cause,
      unknown: !isReadOnly && (cause as { syscall?: unknown }).syscall !== 'connect',
    });
  }
}
