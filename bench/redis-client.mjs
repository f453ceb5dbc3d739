import { once } from 'node:events';
import { Redis } from './library.mjs';

/** A connected client, of the one copy of ioredis that every subject gets. */
export async function connectClient(port) {
  const client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null });
  await once(client, 'ready');
  return client;
}
