import type { Connection } from './connection.js';
import type { Command } from '../scripts/script.js';

/** How many replicas are to confirm a write, and within how many milliseconds. */
export interface Confirmation {
  readonly replicas: number;
  readonly withinMs: number;
}

/**
 * Sends a script, and the WAIT that follows it; resolves with both replies, and rejects with the first error of either.
 */
export async function sendConfirmed(
  connection: Connection,
  how: 'evalsha' | 'eval',
  { script, parameters }: Command,
  { replicas, withinMs }: Confirmation,
): Promise<readonly unknown[]> {
  const run = [how, how === 'evalsha' ? script.sha : script.source, ...parameters] as const;
  const replies = (await connection.pipeline([run, ['wait', replicas, withinMs]]).exec()) ?? [];
  const failure = replies.find(([error]) => error)?.[0];
  if (failure && /^(MOVED|CLUSTERDOWN)\b/.test(failure.message)) {
    // A cluster client follows such a reply to a single command, and not one to several.
    connection.refreshSlotsCache?.();
  }
  if (failure) {
    throw failure;
  }
  return replies.map(([, reply]) => reply);
}
