import { Redis, type RedisOptions } from 'ioredis';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, RedisServer } from './redis-server';
import { until } from './until';
import { goOn, stopProcess } from './stopping';

/** How often a failover is asked for at most, and how long one may take. */
const MOST_DEMOTIONS = 4;
const DEMOTION_MS = 6_000;
const NAME = 'locks';
/**
 * Sentinels look more often than they usually do, and tell a master that it was deposed after 4 publish periods.
 * Milliseconds.
 */
const PERIODS = ['info-period', 500, 'publish-period', 1_000, 'ping-period', 200];

interface Sentinel {
  readonly port: number;
  readonly process: ChildProcess;
  readonly client: Redis;
  paused: boolean;
}

/** A master with two replicas, and three sentinels that watch over them; two of those have to agree. */
export class SentinelGroup {
  readonly servers: readonly RedisServer[];
  readonly #sentinels: readonly Sentinel[];
  readonly #folder: string;

  private constructor(servers: readonly RedisServer[], sentinels: readonly Sentinel[], folder: string) {
    this.servers = servers;
    this.#sentinels = sentinels;
    this.#folder = folder;
  }

  static async start(...args: string[]): Promise<SentinelGroup> {
    const folder = mkdtempSync(join(tmpdir(), 'lock-sentinel-'));
    const all = ['--dir', folder, '--repl-diskless-sync-delay', '0', ...args];
    const master = await RedisServer.start(...all);
    const following = ['--replicaof', '127.0.0.1', String(master.port)];
    const replicas = [await RedisServer.start(...all, ...following), await RedisServer.start(...all, ...following)];
    const sentinels: Sentinel[] = [];
    for (let at = 0; at < 3; at++) {
      sentinels.push(await startSentinel(join(folder, `sentinel-${at}.conf`), master.port));
    }
    const group = new SentinelGroup([master, ...replicas], sentinels, folder);
    await group.#settled();
    return group;
  }

  get sentinelPorts(): number[] {
    return this.#sentinels.map(({ port }) => port);
  }

  /** Who the first sentinel that is not paused says is the master. */
  async master(): Promise<RedisServer> {
    return this.#named(this.#watching[0] as Sentinel);
  }

  /** The servers that run and are not the master, whatever they take themselves for. */
  async replicas(): Promise<RedisServer[]> {
    const master = await this.master();
    return this.servers.filter((server) => server !== master && server.running);
  }

  /** A new client, of another package or version where that is given. */
  connect(
    options: Pick<RedisOptions, 'sentinels' | 'connectionName' | 'lazyConnect' | 'updateSentinels' | 'sentinelRetryStrategy'> = {},
    Client: unknown = Redis,
  ): Redis {
    const sentinels = this.sentinelPorts.map((port) => ({ host: '127.0.0.1', port }));
    const client = new (Client as typeof Redis)({ sentinels, name: NAME, ...options });
    // A failure shows in the commands.
    client.on('error', () => undefined);
    return client;
  }

  /** Kills or pauses the master, or takes the role from it while it lives; answers the new master. */
  async failover(how: 'kill' | 'pause' | 'demote', timeoutMs?: number): Promise<RedisServer> {
    const master = await this.master();
    if (how === 'kill') {
      await master.kill();
    } else if (how === 'pause') {
      master.pause();
    } else {
      return this.#demote(master);
    }
    return this.waitForNewMaster(master, timeoutMs);
  }

  /**
   * A failover that is asked for may be given up where a sentinel is busy, or finds no replica that is fit: it is asked
   * for again.
   */
  async #demote(master: RedisServer): Promise<RedisServer> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#watching[0]?.client.call('SENTINEL', 'FAILOVER', NAME);
      } catch (error) {
        // One that is under way already is the one that is waited for.
        if (attempt === MOST_DEMOTIONS) {
          throw error;
        }
      }
      try {
        return await this.waitForNewMaster(master, attempt === MOST_DEMOTIONS ? undefined : DEMOTION_MS);
      } catch (error) {
        if (attempt === MOST_DEMOTIONS) {
          throw error;
        }
      }
    }
  }

  /** Waits until all sentinels name the same master, which is not `old` and knows that it is one. */
  async waitForNewMaster(old: RedisServer, timeoutMs?: number): Promise<RedisServer> {
    let found = old;
    await until(
      'a new master',
      async () => {
        const [named, ...others] = await Promise.all(this.#watching.map((sentinel) => this.#named(sentinel)));
        found = named as RedisServer;
        return found !== old && others.every((other) => other === named) && (await roleOf(found)) === 'master';
      },
      timeoutMs,
    );
    return found;
  }

  /** Waits until a server that was master, and came back, follows the new one. */
  async waitForReplica(server: RedisServer): Promise<void> {
    await until('that the old master follows the new one', async () => {
      const info = await server.client.info('replication');
      return info.includes('role:slave') && info.includes('master_link_status:up');
    });
  }

  /** How many clients the sentinels tell of a failover. */
  async listeners(): Promise<number> {
    const lists = await Promise.all(this.#watching.map(({ client }) => client.client('LIST')));
    return lists.flatMap((list) => String(list).match(/ sub=1 /g) ?? []).length;
  }

  /** Stops the sentinel that clients ask first; the two others go on. */
  pauseSentinel(): void {
    const [first] = this.#sentinels as [Sentinel];
    stopProcess(first.process.pid);
    first.paused = true;
  }

  /** Undoes what a test did: every server and every sentinel runs again, and the replicas follow the master. */
  async recover(): Promise<void> {
    for (const sentinel of this.#sentinels) {
      goOn(sentinel.process.pid);
      sentinel.paused = false;
    }
    await Promise.all(this.servers.map(async (server) => (server.running ? server.resume() : server.start())));
    await until('that the sentinels agree on a master', async () => {
      const named = await Promise.all(this.#sentinels.map((sentinel) => this.#named(sentinel)));
      return new Set(named).size === 1;
    });
    const master = await this.master();
    await Promise.all(this.servers.filter((server) => server !== master).map((server) => this.waitForReplica(server)));
  }

  async stop(): Promise<void> {
    for (const { process, client } of this.#sentinels) {
      client.disconnect();
      process.kill('SIGKILL');
    }
    await Promise.all([...this.#sentinels.map(({ process }) => ended(process)), ...this.servers.map((server) => server.stop())]);
    rmSync(this.#folder, { recursive: true });
  }

  get #watching(): Sentinel[] {
    return this.#sentinels.filter(({ paused }) => !paused);
  }

  async #named({ client }: Sentinel): Promise<RedisServer> {
    const [, port] = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as [string, string];
    return this.servers.find((server) => server.port === Number(port)) as RedisServer;
  }

  /** Each sentinel knows the others and the replicas, and these follow the master. */
  async #settled(): Promise<void> {
    await Promise.all(this.servers.slice(1).map((replica) => this.waitForReplica(replica)));
    await until('that the sentinels know each other and the replicas', async () => {
      const known = await Promise.all(this.#sentinels.map(({ client }) => client.info('sentinel')));
      return known.every((info) => info.includes('slaves=2,sentinels=3'));
    });
  }
}

async function startSentinel(file: string, masterPort: number): Promise<Sentinel> {
  const port = await freePort();
  const lines = [
    `port ${port}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 3000`,
  ];
  writeFileSync(file, lines.join('\n'));
  const process = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  const client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null });
  await client.call('SENTINEL', 'DEBUG', ...PERIODS);
  return { port, process, client, paused: false };
}

async function roleOf(server: RedisServer): Promise<string> {
  return ((await server.client.call('ROLE')) as [string])[0];
}

async function ended(process: ChildProcess): Promise<void> {
  if (process.signalCode === null && process.exitCode === null) {
    await once(process, 'exit');
  }
}
