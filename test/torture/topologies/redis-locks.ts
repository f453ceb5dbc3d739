import { DONE_MS, QUEUE_MS } from '../../../lib/kit/protocol.js';
import { PRESENT_MS } from '../../../lib/quorum/votes/vote-rules.js';
import { RedisKeys } from '../../../lib/redis/scripts/redis-keys.js';
import type { RedisServer } from '../../support/redis-server.js';
import { EXCHANGE, RELEASE, RENEW } from '../../../lib/redis/scripts/scripts.js';
import type { FaultName } from '../faults.js';
import { FAULTS_ANYWHERE, type Taken } from './topology.js';

export const FAULTS_OF_REDIS = [...FAULTS_ANYWHERE, 'scriptFlush', 'killClients', 'full'] as const satisfies readonly FaultName[];

/** Texts in the commands that release a hold, alone or in a batch, and in no others. */
export const RELEASE_TEXT = [RELEASE.sha, RELEASE.source, EXCHANGE.sha, EXCHANGE.source, '\r\nrelease\r\n', '\r\nexchange\r\n'];

export const RENEW_TEXT = [RENEW.sha, RENEW.source];

const NAMES = new RedisKeys('lock', false);

/** KEYS lock. Deletes it; its fence, or nil where nobody held it. */
const DELETE = `
local fence = redis.call('HGET', KEYS[1], 'fence')
redis.call('DEL', KEYS[1])
return fence
`;

/**
 * For how long a queue stays in which nobody waits any more, the mark of a release, and the waiters of a quorum, in
 * milliseconds. A lock does not stay.
 */
const LEFT_MS: Readonly<Record<string, number>> = { queue: QUEUE_MS, done: DONE_MS, waiters: 2 * PRESENT_MS };

/** Deletes a lock on the one server that has its key. */
export async function deleteLock(servers: readonly RedisServer[], key: string): Promise<Taken> {
  // On a cluster, all but one of them refuse.
  return Promise.any(servers.map((server) => deleteOn(server, key)));
}

async function deleteOn({ client }: RedisServer, key: string): Promise<Taken> {
  const name = NAMES.lock(NAMES.tag(key));
  // Read before too: a command that is sent twice finds nothing.
  const before = await client.hget(name, 'fence');
  const fence = ((await client.eval(DELETE, 1, name)) as string | null) ?? before;
  return fence === null ? { outcome: 'nothing' } : { fence: Number(fence) };
}

export function pingsOf(servers: readonly RedisServer[]): (() => Promise<unknown>)[] {
  return servers.map((server) => () => server.client.ping());
}

export async function withoutExpiry(servers: readonly RedisServer[]): Promise<string[]> {
  const found: string[] = [];
  for (const { client } of servers) {
    for (const name of await client.keys('lock:lock:*')) {
      if ((await client.pttl(name)) === -1) {
        found.push(`${name} has no expiry`);
      }
    }
  }
  return found;
}

/** `kept` is what else stays for ever, besides the fences. */
export async function orphans(servers: readonly RedisServer[], kept?: string): Promise<string[]> {
  const found: string[] = [];
  for (const { client } of servers) {
    for (const name of await client.keys('*')) {
      const [, kind = ''] = /^lock:(\w+):/.exec(name) ?? [];
      const leftMs = await client.pttl(name);
      const mostMs = LEFT_MS[kind] ?? 0;
      // A key that has expired since is gone.
      if (kind !== 'fence' && kind !== kept && leftMs !== -2 && (leftMs < 0 || leftMs > mostMs)) {
        found.push(`${name} is still there, for ${leftMs} ms`);
      }
    }
  }
  return found;
}
