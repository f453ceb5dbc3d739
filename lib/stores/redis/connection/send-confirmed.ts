import type { Connection, Pipeline } from './connection.js';
import type { Command } from '../scripts/script.js';

/** How many replicas are to confirm a write, and within how many milliseconds. */
export interface Confirmation {
  readonly replicas: number;
  readonly withinMs: number;
}

/** Sends a script, and the WAIT that follows it; resolves with both replies. */
export function sendConfirmed(
  connection: Connection,
  how: 'evalsha' | 'eval',
  { script, parameters }: Command,
  { replicas, withinMs }: Confirmation,
): Promise<readonly unknown[]> {
  const pipeline = connection.pipeline();
  pipeline[how](how === 'evalsha' ? script.sha : script.source, ...parameters);
  return both(connection, pipeline.wait(replicas, withinMs));
}

/** The two replies of a pipeline; rejects with the first error of either. */
async function both(connection: Connection, pipeline: Pipeline): Promise<readonly unknown[]> {
  const replies = (await pipeline.exec()) ?? [];
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
