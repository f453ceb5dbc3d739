import type { Pool, PoolClient } from 'pg';

/** Runs `body` between BEGIN and COMMIT on a connection of its own; ROLLBACK where it throws. */
export async function inTransaction<T>(pool: Pool, body: (client: PoolClient) => Promise<T>, begin = 'BEGIN'): Promise<T> {
  const client = await pool.connect();
  // The error of a killed connection shows in the next statement.
  client.on('error', ignore);
  let failed: Error | undefined;
  try {
    await client.query(begin);
    const result = await body(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch((broken: Error) => (failed = broken));
    throw error;
  } finally {
    client.off('error', ignore);
    client.release(failed);
  }
}

function ignore(): void {
  // See above.
}
