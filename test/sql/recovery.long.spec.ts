import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { MySqlLockStore } from '../../lib/mysql/index';
import { PostgresLockStore } from '../../lib/postgres/index';
import { makeLocks } from '../support/make-locks';
import { MySqlServer } from '../support/mysql-server';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy, type ProxyMode } from '../support/tcp-proxy';
import { until } from '../support/until';

/** Fewer than callers, so that they wait for connections. */
const CONNECTIONS = 5;
const CALLERS = 16;
/** For how long connections break, and for how long grants are counted before and after, in milliseconds. */
const [BROKEN_MS, COUNTED_MS] = [500, 3_000];
/** At least this part of the calls gets through again. Both had more than half on a busy machine. */
const LEAST = 1 / 20;

type Stores = Readonly<
  Record<string, () => Promise<{ store: MySqlLockStore | PostgresLockStore; proxy: TcpProxy; stop(): Promise<void> }>>
>;

const STORES: Stores = {
  async PostgreSQL() {
    const server = await PostgresServer.start();
    const proxy = await TcpProxy.start(server.port);
    const pool = server.pool({ max: CONNECTIONS, connectionString: server.url.replace(String(server.port), String(proxy.port)) });
    return { store: new PostgresLockStore(pool), proxy, stop: async () => void (await Promise.all([proxy.stop(), server.stop()])) };
  },
  async MariaDB() {
    const server = await MySqlServer.start();
    const proxy = await TcpProxy.start(server.port);
    const pool = server.pool({ connectionLimit: CONNECTIONS, port: proxy.port });
    return { store: new MySqlLockStore(pool), proxy, stop: async () => void (await Promise.all([proxy.stop(), server.stop()])) };
  },
};

/** Callers that lock, each its own key, again and again. */
class Callers {
  grants = 0;
  /** Whose calls have had a lock since that was forgotten. */
  readonly served = new Set<number>();
  #isOver = false;
  readonly #all: Promise<unknown>;

  constructor(locks: LockService) {
    this.#all = Promise.all(Array.from({ length: CALLERS }, async (_, caller) => this.#call(locks, caller)));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#all;
  }

  async grantsWithin(ms: number): Promise<number> {
    const before = this.grants;
    await sleep(ms);
    return this.grants - before;
  }

  async #call(locks: LockService, caller: number): Promise<void> {
    while (!this.#isOver) {
      await locks.withLock(`caller ${caller}`, async () => {
        this.grants++;
        this.served.add(caller);
        await sleep(5);
      });
      await sleep(5);
    }
  }
}

describe.each(Object.entries(STORES))('locks in %s go on', (_, start) => {
  test.each<[string, ProxyMode]>([
    ['break', 'killOnReply'],
    ['hang', 'dropReplies'],
  ])(
    'at a rate of the same order soon after all connections of the pool %s',
    async (_kind, mode) => {
      const { store, proxy, stop } = await start();
      await store.ensureSchema();
      await store.open({ prefix: 'lock', warn: () => undefined });
      const locks = makeLocks(store, { ttl: 4_000, wait: 60_000 });
      const callers = new Callers(locks);
      try {
        await until('all callers were served', () => callers.served.size === CALLERS);
        const before = await callers.grantsWithin(COUNTED_MS);
        proxy.mode = mode;
        await sleep(BROKEN_MS);
        proxy.mode = 'pass';
        callers.served.clear();
        await until('all callers are served again', () => callers.served.size === CALLERS);
        expect((await callers.grantsWithin(COUNTED_MS)) / before).toBeGreaterThan(LEAST);
      } finally {
        await callers.end();
        await locks.shutdown();
        await store.close();
        await stop();
      }
    },
    120_000,
  );
});
