// The library on MySQL, and the least that a lease in a table takes, written by hand.
import { randomUUID } from 'node:crypto';
import { mysql2, MySqlLockStore } from '../library.mjs';
import { TTL_MS } from './floor.mjs';
import { libraryWith } from './this-library.mjs';

const TABLE = 'CREATE TABLE IF NOT EXISTS floor (name VARBINARY(512) PRIMARY KEY, owner VARBINARY(64) NOT NULL, ends DATETIME(6) NOT NULL)';
const ACQUIRE = 'INSERT INTO floor VALUES (?, ?, utc_timestamp(6) + INTERVAL ? MICROSECOND)';
const RELEASE = 'DELETE FROM floor WHERE name = ? AND owner = ?';

export const mysql = subject('mysql', {});
export const mysqlThatPolls = subject('mysql that polls', { poll: true });

export const mysqlFloor = {
  name: 'mysql floor',
  note: 'INSERT and DELETE by hand, with the same kind of pool',
  async connect(port) {
    const pool = poolAt(port).promise();
    await pool.query(TABLE);
    return {
      async acquire(key) {
        const owner = randomUUID();
        // A taken key is an error.
        await pool.execute(ACQUIRE, [key, owner, TTL_MS * 1_000]);
        return { key, owner };
      },
      release: ({ key, owner }) => pool.execute(RELEASE, [key, owner]),
      close: () => pool.end(),
    };
  },
};

function subject(name, options) {
  return {
    name,
    async connect(port) {
      const pool = poolAt(port);
      const store = new MySqlLockStore(pool, options);
      await store.ensureSchema();
      const connection = await libraryWith(store);
      return {
        ...connection,
        async close() {
          await connection.close();
          await pool.promise().end();
        },
      };
    },
  };
}

function poolAt(port) {
  return mysql2.createPool({ host: '127.0.0.1', port, user: 'root', database: 'bench' });
}
