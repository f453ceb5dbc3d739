import { Logger } from '@nestjs/common';
import { Pool, type PoolConfig } from 'pg';

/**
 * A pool of connections to PostgreSQL. Any of them may end at any time, also in the middle of a transaction, and tells
 * it by an event `error`: without a listener, the process would end.
 */
export function openPool(name: string, config: PoolConfig): Pool {
  const pool = new Pool({ connectionTimeoutMillis: 5_000, ...config });
  pool.on('error', (error) => new Logger(name).warn(`An idle connection was lost: ${error.message}`));
  // The next statement on it fails, and says why.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}
