import { AsyncResource } from 'node:async_hooks';
import { isRefusal, StatementTimeout } from './postgres-errors.js';
import type { PostgresClient, PostgresQuery, PostgresResult } from './postgres-pool.js';

/**
 * Sends a statement on a connection of a pool, and gives the connection back once it can be used again. Rejects with a
 * `StatementTimeout` after `limitMs`. The connection waits for its reply until `patienceMs`: a slow server is not a dead one, and a new
 * connection would make it slower. After that it is ended, as one that is half open.
 */
export function send(client: PostgresClient, query: PostgresQuery, limitMs: number, patienceMs: number): Promise<PostgresResult['rows']> {
  return new Promise((resolve, reject) => {
    let timer = later(limitMs, () => {
      reject(new StatementTimeout(limitMs));
      timer = later(patienceMs - limitMs, () => giveBack(new StatementTimeout(patienceMs)));
    });
    let given = false;
    const giveBack = (error?: Error): void => {
      if (!given) {
        given = true;
        timer.cancel();
        client.removeListener('error', ignore);
        client.release(error);
      }
    };
    client.on('error', ignore);
    client.query(query, (error, result) => {
      giveBack(error && !isRefusal(error) ? error : undefined);
      if (error) {
        reject(error);
      } else {
        resolve(result.rows);
      }
    });
  });
}

/** Calls back after a while; where the event loop was blocked meanwhile, only after replies that lie unread have been read. */
function later(ms: number, then: () => void): { cancel(): void } {
  let cancelled = false;
  const timer = setTimeout(
    AsyncResource.bind(() => setImmediate(() => cancelled || then())),
    Math.max(0, ms),
  );
  return {
    cancel() {
      cancelled = true;
      clearTimeout(timer);
    },
  };
}

/** The statement is told of it too. */
function ignore(): void {}
