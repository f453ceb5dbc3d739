import type { Connection } from './connection.js';
import { CREDENTIALS_MS } from './credentials.js';

/** How long the first replies of a connection may take before it counts as half open, in milliseconds. */
export const HANDSHAKE_MS = 1_000;
const HANDSHAKE_GRACE_MS = 20;
const NO_CREDENTIALS = `the provider of its credentials did not answer within ${CREDENTIALS_MS} ms`;
const NOT_READY = `it took the connection, but was not ready within ${HANDSHAKE_MS} ms: it hangs, or it is loading its data`;

/**
 * Makes a connection anew that is not ready in time: clients have no limit for the handshake that follows once the TCP
 * connection stands.
 */
export function boundHandshake(connection: Connection): void {
  let handshake: NodeJS.Timeout | undefined;
  const bound = (limitMs: number, failure: string): void => {
    clearTimeout(handshake);
    // In two steps: after a blocked event loop, replies are read between them.
    handshake = setTimeout(() => {
      handshake = setTimeout(() => reconnect(connection, new Error(failure)), HANDSHAKE_GRACE_MS).unref();
    }, limitMs).unref();
  };
  connection.on('connect', () => bound(HANDSHAKE_MS, NOT_READY));
  connection.on('credentials', () => bound(CREDENTIALS_MS, NO_CREDENTIALS));
  connection.on('ready', () => clearTimeout(handshake));
  connection.on('close', () => clearTimeout(handshake));
}

/** In how many milliseconds to connect again. */
export function backOff(attempts: number): number {
  return Math.min(attempts * 50, 1_000);
}

/**
 * Makes a connection anew. Destroys its socket: a half-open socket would wait for ever for the other side to end as
 * well.
 */
export function reconnect(connection: Connection, reason?: Error): void {
  connection.stream?.destroy(reason);
}
