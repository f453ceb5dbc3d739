import { within } from '../kit/no-reply.js';
import { ignore } from '../sql/statement.js';
import type { PostgresClient } from './postgres-pool.js';

/** How long a connection may take to answer the statements of its last user, in milliseconds. */
const SETTLE_MS = 1_000;

/**
 * Whether the last answer of the server showed an open transaction. A client that cannot say so counts as outside of
 * one.
 */
export function isInside(client: PostgresClient): boolean {
  return (client.getTransactionStatus?.() ?? 'I') !== 'I';
}

/** Waits until a connection has answered the statements of its last user: one may be a COMMIT. */
export function settle(client: PostgresClient, settled: () => void): void {
  client.on('error', ignore);
  const answered = new Promise<void>((resolve) => client.query('', undefined, () => resolve()));
  void within(SETTLE_MS, answered)
    .catch(ignore)
    .then(() => {
      client.removeListener('error', ignore);
      settled();
    });
}
