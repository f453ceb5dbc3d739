// The library on PostgreSQL, and the least that a lease in a table takes, written by hand.
import { randomUUID } from 'node:crypto';
import { pg, PostgresLockStore } from '../library.mjs';
import { TTL_MS } from './floor.mjs';
import { libraryWith } from './this-library.mjs';

const TABLE = 'CREATE TABLE IF NOT EXISTS floor (key text PRIMARY KEY, owner text NOT NULL, ends timestamptz NOT NULL)';
const ACQUIRE = `INSERT INTO floor VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms')
  ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, ends = excluded.ends WHERE floor.ends < clock_timestamp()`;
const RELEASE = 'DELETE FROM floor WHERE key = $1 AND owner = $2';

export const postgres = {
  name: 'postgres',
  async connect(port) {
    const pool = poolAt(port);
    const store = new PostgresLockStore(pool);
    await store.ensureSchema();
    const connection = await libraryWith(store);
    return {
      ...connection,
      async close() {
        await connection.close();
        await pool.end();
      },
    };
  },
};

export const postgresFloor = {
  name: 'postgres floor',
  note: 'INSERT … ON CONFLICT and DELETE by hand, with the same kind of pool',
  async connect(port) {
    const pool = poolAt(port);
    await pool.query(TABLE);
    return {
      async acquire(key) {
        const owner = randomUUID();
        if ((await pool.query(ACQUIRE, [key, owner, TTL_MS])).rowCount === 0) {
          throw new Error(`${key} is taken`);
        }
        return { key, owner };
      },
      release: ({ key, owner }) => pool.query(RELEASE, [key, owner]),
      close: () => pool.end(),
    };
  },
};

function poolAt(port) {
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  // An idle connection of a server that has just been stopped.
  pool.on('error', () => undefined);
  return pool;
}
