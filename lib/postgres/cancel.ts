import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolState, PostgresClient } from './postgres-pool.js';

/** How long the server is asked, in milliseconds: a process that ends must not wait for a server that is away. */
const LONGEST_MS = 1_000;
const PAUSE_MS = 100;

/** The part that is used of a `pg.Client` that was not connected yet. */
interface Canceller {
  readonly host: string;
  readonly port: number;
  readonly ssl: unknown;
  readonly sslNegotiation?: string;
  readonly connection?: {
    connect(port: number | string, host?: string): void;
    requestSsl(): void;
    cancel(processId: unknown, secretKey: unknown): void;
    on(event: 'connect' | 'sslconnect' | 'end' | 'error', listener: (error?: Error) => void): unknown;
    readonly stream: { destroy(error?: Error): void };
  };
}

/**
 * Asks the server to cancel the statement of a connection, until it has taken the request, or `isOver`. Closing the
 * connection would not end the statement: a backend that waits for a row or for a standby does not notice that its
 * client has gone.
 */
export async function cancelStatement(pool: PoolState, client: PostgresClient, isOver: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + LONGEST_MS;
  while (!isOver() && !(await isTaken(pool, client)) && performance.now() < giveUpAt) {
    await sleep(PAUSE_MS, undefined, { ref: false });
  }
}

/**
 * Sends one request over a connection of its own, which the server closes when it has signalled the backend. `true`
 * where that cannot be sent.
 */
async function isTaken({ Client, options }: PoolState, { processID, secretKey }: PostgresClient): Promise<boolean> {
  if (typeof Client !== 'function' || processID === undefined || processID === null) {
    return true;
  }
  const { connection, host, port, ssl, sslNegotiation } = new (Client as new (options: object) => Canceller)(options);
  if (!connection) {
    return true;
  }
  const isDirect = sslNegotiation === 'direct';
  let isSent = false;
  const send = (): void => {
    isSent = true;
    connection.cancel(processID, secretKey);
  };
  const closed = new Promise<boolean>((resolve) => {
    connection.on('error', () => resolve(false));
    connection.on('end', () => resolve(isSent));
  });
  connection.on('connect', () => (ssl ? isDirect || connection.requestSsl() : send()));
  connection.on('sslconnect', send);
  if (host.startsWith('/')) {
    connection.connect(`${host}/.s.PGSQL.${port}`);
  } else {
    connection.connect(port, host);
  }
  const timer = setTimeout(() => connection.stream.destroy(new Error('no answer')), LONGEST_MS).unref();
  const taken = await closed;
  clearTimeout(timer);
  connection.stream.destroy();
  return taken;
}
