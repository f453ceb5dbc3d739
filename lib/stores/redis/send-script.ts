import type { Connection, Pipeline } from './redis-client.js';

/** Sends a script; where replicas have to confirm it, with the WAIT that follows it. */
export function sendScript(
  connection: Connection,
  how: 'evalsha' | 'eval',
  code: string,
  keys: readonly string[],
  args: readonly (string | number)[],
  replicas: number,
  withinMs: number,
): Promise<unknown> {
  if (replicas === 0) {
    return connection[how](code, keys.length, ...keys, ...args);
  }
  const pipeline = connection.pipeline();
  pipeline[how](code, keys.length, ...keys, ...args);
  return both(connection, pipeline.wait(replicas, withinMs));
}

/** The two replies of a pipeline; rejects with the first error of either. */
async function both(connection: Connection, pipeline: Pipeline): Promise<readonly unknown[]> {
  const replies = (await pipeline.exec()) ?? [];
  const failure = replies.find(([error]) => error)?.[0];
  if (failure?.message.startsWith('MOVED')) {
    // ioredis follows what a single command is told, and not what one of several is.
    connection.refreshSlotsCache?.();
  }
  if (failure) {
    throw failure;
  }
  return replies.map(([, reply]) => reply);
}
