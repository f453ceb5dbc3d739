import type { Pool } from 'mysql2';
import type { PoolConnection } from 'mysql2/promise';

/** Runs `body` between BEGIN and COMMIT on a connection of its own; ROLLBACK where it throws. */
export async function inTransaction<T>(pool: Pool, body: (connection: PoolConnection) => Promise<T>, ...begin: string[]): Promise<T> {
  const connection = await pool.promise().getConnection();
  try {
    for (const statement of begin.length > 0 ? begin : ['BEGIN']) {
      await connection.query(statement);
    }
    const result = await body(connection);
    await connection.query('COMMIT');
    return result;
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => connection.destroy());
    throw error;
  } finally {
    connection.release();
  }
}
