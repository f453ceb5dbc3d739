import type { Connection, Pipeline } from './redis-client.js';
import type { Command } from './script.js';

/** How many replicas are to confirm a write, and within how many milliseconds. */
export interface Confirmation {
  readonly replicas: number;
  readonly withinMs: number;
}

/** Sends a script; where replicas have to confirm what it writes, with the WAIT that follows it. */
export function sendScript(
  connection: Connection,
  how: 'evalsha' | 'eval',
  { script, parameters }: Command,
  confirmation: Confirmation | undefined,
): Promise<unknown> {
  const code = how === 'evalsha' ? script.sha : script.source;
  if (!confirmation) {
    return connection[how](code, ...parameters);
  }
  const pipeline = connection.pipeline();
  pipeline[how](code, ...parameters);
  return both(connection, pipeline.wait(confirmation.replicas, confirmation.withinMs));
}

/** The two replies of a pipeline; rejects with the first error of either. */
async function both(connection: Connection, pipeline: Pipeline): Promise<readonly unknown[]> {
  const replies = (await pipeline.exec()) ?? [];
  const failure = replies.find(([error]) => error)?.[0];
  if (failure?.message.startsWith('MOVED')) {
    // ioredis follows such a reply to a single command, and not one to several.
    connection.refreshSlotsCache?.();
  }
  if (failure) {
    throw failure;
  }
  return replies.map(([, reply]) => reply);
}
