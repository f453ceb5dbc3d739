import { probe, PROBE_MS, type Probe } from '../../kit/probe.js';
import { productBy } from '../redis-product.js';
import { refusesBy } from '../server-info.js';
import type { CommandTimeouts } from './command-timeouts.js';
import type { Connection } from './connection.js';
import { isForbidden, NO_CONNECTION } from './redis-errors.js';

/** The reply to INFO; empty where the user may not ask for it. */
export async function infoOf(server: Connection, timeouts: CommandTimeouts, limitMs: number): Promise<string> {
  try {
    return await timeouts.bound(server.info(), limitMs);
  } catch (error) {
    if (isForbidden(error)) {
      return '';
    }
    throw error;
  }
}

/** What a server's clock reads, in ms since 1970; on a cluster, that of any node. */
export async function timeOf(server: Connection, timeouts: CommandTimeouts, limitMs: number): Promise<number> {
  const [seconds, micros] = (await timeouts.bound(server.time(), limitMs)) as readonly unknown[];
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}

/** What a server says of itself; rejects where there is no connection to it. */
export async function probeOf(server: Connection | undefined, timeouts: CommandTimeouts): Promise<Probe> {
  if (!server) {
    throw new Error(NO_CONNECTION);
  }
  const [clock, info] = await Promise.all([
    probe(async () => ({ serverMs: await timeOf(server, timeouts, PROBE_MS) })),
    infoOf(server, timeouts, PROBE_MS),
  ]);
  return { ...clock, server: productBy(info)?.name, refuses: refusesBy(info) };
}
