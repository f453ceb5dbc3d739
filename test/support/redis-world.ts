import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import type { RedisLockStoreOptions } from '../../lib/redis/redis-lock-store.options';
import { makeLocks } from './make-locks';
import { openSwiftly } from './open-swiftly';
import { RedisServer } from './redis-server';
import { sourceOf } from './redis-source';
import { TcpProxy } from './tcp-proxy';

/** A server of a test's own, with a store that reaches it through a proxy. */
export interface RedisWorld {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  readonly locks: LockService;
  readonly troubles: LockTrouble[];
  readonly warnings: string[];
  /** Another store, which the test closes. */
  openStore(source: RedisSource, options?: RedisLockStoreOptions): Promise<RedisLockStore>;
}

export async function inRedisWorld(run: (world: RedisWorld) => Promise<void>): Promise<void> {
  const server = await RedisServer.start();
  const proxy = await TcpProxy.start(server.port);
  const troubles: LockTrouble[] = [];
  const warnings: string[] = [];
  const openStore = async (source: RedisSource, options?: RedisLockStoreOptions): Promise<RedisLockStore> => {
    const make = (): RedisLockStore => new RedisLockStore(typeof source === 'string' ? sourceOf(source) : source, options);
    return (await openSwiftly(make, warnings)).store;
  };
  const store = await openStore(proxy.url);
  try {
    const locks = makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
    await run({ server, proxy, locks, troubles, warnings, openStore });
  } finally {
    await store.close();
    await proxy.stop();
    await server.stop();
  }
}

/** Cuts the connection of the next command on its reply, once; resolves when that is done. */
export function loseNextReply(proxy: TcpProxy): Promise<void> {
  return new Promise((resolve) => {
    proxy.ambush = 'evalsha';
    proxy.onAmbush = () => {
      proxy.ambush = undefined;
      resolve();
    };
  });
}
