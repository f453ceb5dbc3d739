import type { Address } from '../address/address.js';
import type { Kind } from '../options.js';
import { mysqlPlace } from './mysql-place.js';
import type { Place } from './place.js';
import { postgresPlace } from './postgres-place.js';
import { redisPlace } from './redis-place.js';

/** The place for a run on the servers of an address: under the prefix in Redis, and beside the locks in a database. */
export async function makePlace(address: Address, prefix: string): Promise<Place> {
  return PLACES[address.kind](address, prefix);
}

const PLACES: Readonly<Record<Kind, (address: Address, prefix: string) => Promise<Place>>> = {
  redis: redisPlace,
  'redis-cluster': redisPlace,
  'redis-sentinel': redisPlace,
  quorum: redisPlace,
  postgres: postgresPlace,
  mysql: mysqlPlace,
};
