import type { Address } from '../address/address.js';
import type { Kind } from '../options.js';
import { newMySqlStore } from './mysql.js';
import type { NewStore } from './new-store.js';
import { newPostgresStore } from './postgres.js';
import { newQuorumStore } from './quorum.js';
import { newClusterStore, newRedisStore, newSentinelStore } from './redis.js';

type MakeStore = (address: Address, schema: string | undefined) => NewStore | Promise<NewStore>;

const MAKERS: Readonly<Record<Kind, MakeStore>> = {
  redis: newRedisStore,
  'redis-cluster': newClusterStore,
  'redis-sentinel': newSentinelStore,
  quorum: newQuorumStore,
  postgres: newPostgresStore,
  mysql: newMySqlStore,
};

/** Makes the store at an address, without connecting. Throws `LockConfigurationError`. */
export async function makeStore(address: Address, schema: string | undefined): Promise<NewStore> {
  return MAKERS[address.kind](address, schema);
}
