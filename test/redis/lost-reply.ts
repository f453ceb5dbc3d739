import type { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { noWarning } from '../support/no-warning';
import { loseNextReply } from '../support/redis-world';
import { TcpProxy } from '../support/tcp-proxy';
import type { RedisServer } from '../support/redis-server';

/**
 * Whether each of some calls, which ask in one script, is told that the outcome is unknown, where the connection
 * breaks on the reply that grants their locks.
 */
export async function areToldUnknown(
  server: RedisServer,
  make: (url: string) => RedisLockStore,
  keys: readonly string[],
): Promise<readonly unknown[]> {
  const proxy = await TcpProxy.start(server.port);
  const store = make(proxy.url);
  try {
    await store.open({ prefix: 'lock', warn: noWarning });
    const locks = makeLocks(store, { ttl: 60_000, wait: 60_000 });
    const each = <T>(call: (key: string) => Promise<T>): Promise<T[]> => Promise.all(keys.map(call));
    // From here on the server knows the script.
    await each(async (key) => (await locks.acquire(key)).release());
    const cut = loseNextReply(proxy);
    const failures = each((key) => locks.acquire(key, { wait: 0 }).catch((error: unknown) => error));
    await cut;
    return (await failures).map((failure) => (failure as { readonly unknown?: unknown }).unknown);
  } finally {
    await store.close();
    await proxy.stop();
    // A store that is closed leaves what it may have.
    await server.client.flushall();
  }
}
