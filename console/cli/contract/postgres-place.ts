import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { isLockError, LockConfigurationError } from '../../../lib/core/words/errors.js';
import { PostgresLockStore } from '../../../lib/postgres/postgres-lock-store.js';
import type { StoreOffer } from '../../../lib/contract/index.js';
import type { Address } from '../address/address.js';
import { postgresFindings } from '../doctor/postgres-findings.js';
import { endPools, postgresPools } from '../stores/postgres.js';
import { serverNames } from '../stores/server-names.js';
import { Made } from './made.js';
import type { Place } from './place.js';

const OFFERS: readonly StoreOffer[] = [
  'open',
  'turns',
  'tickets',
  'operator',
  'search',
  'forced',
  'health',
  'reservesFences',
  'shared',
  'permits',
];

/** As many as a pool of pg has by itself: stores of three processes share it. */
const CONNECTIONS = 10;

/** A schema of its own in each database. */
export async function postgresPlace(address: Address): Promise<Place> {
  const schema = `distributed_lock_contract_${randomBytes(6).toString('hex')}`;
  const pools = await postgresPools(address, CONNECTIONS);
  const names = serverNames(pools);
  const made = new Made<Pool>();
  // One that listens in vain waits two seconds for it each time it is opened.
  const connect = (hears: boolean): PostgresLockStore => new PostgresLockStore(pools, { schema, ...(hears ? {} : { listen: false }) });
  return {
    name: `the schema "${schema}"`,
    offers: (hears) => [...OFFERS, ...(hears ? (['messages'] as const) : [])],
    async make() {
      for (const pool of pools) {
        await made.on(pool, () => makeSchema(pool, schema));
      }
    },
    findings: async () => (await Promise.all(pools.map((pool, at) => postgresFindings(pool, schema, 'lock', names[at] as string)))).flat(),
    connect,
    remove: () => made.remove((pool) => pool.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)),
    end: () => endPools(pools),
  };
}

async function makeSchema(pool: Pool, schema: string): Promise<void> {
  const store = new PostgresLockStore(pool, { schema, listen: false });
  try {
    await store.ensureSchema();
  } catch (error) {
    throw isLockError(error) && /permission denied/.test(error.detail)
      ? new LockConfigurationError(
          `${error.detail} The contract makes a schema of its own: GRANT CREATE ON DATABASE to the user, or pass another one that has it.`,
          '',
          { cause: error },
        )
      : error;
  } finally {
    await store.close();
  }
}
