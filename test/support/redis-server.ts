import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import { until } from './until';
import { goOn, stopProcess } from './stopping';

const SETTINGS = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0'];

/** A real redis-server of the test's own, on a free port and without persistence. */
export class RedisServer {
  readonly port: number;
  readonly #args: readonly string[];
  readonly #env: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  #client: Redis | undefined;

  private constructor(port: number, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.port = port;
    this.#args = args;
    this.#env = env;
  }

  static start(...args: string[]): Promise<RedisServer> {
    return RedisServer.startWith({}, ...args);
  }

  /** With further variables in its environment. */
  static async startWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), args, env);
    await server.start();
    return server;
  }

  /**
   * A replica of the server at that port, which may be a proxy's. It loads from the socket: a file would be found by
   * other tests.
   */
  static startReplica(port: number): Promise<RedisServer> {
    return RedisServer.start('--replicaof', '127.0.0.1', String(port), '--repl-diskless-load', 'swapdb');
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** A client for looking at what is stored, not used by the code under test. */
  get client(): Redis {
    // A server that was killed is no news.
    this.#client ??= new Redis(this.port, '127.0.0.1', { maxRetriesPerRequest: null }).on('error', () => undefined);
    return this.#client;
  }

  /** Whether its process lives, paused or not. */
  get running(): boolean {
    return this.#child?.signalCode === null && this.#child.exitCode === null;
  }

  async start(): Promise<void> {
    // A replica keeps what it synchronised as a file, which any server that starts beside it would load.
    const files = ['--dir', tmpdir(), '--dbfilename', `redis-${this.port}.rdb`];
    this.#child = spawn('redis-server', ['--port', String(this.port), ...files, ...SETTINGS, ...this.#args], {
      stdio: 'ignore',
      env: { ...process.env, ...this.#env },
    });
    const ended = once(this.#child, 'exit').then(() => {
      throw new Error(`redis-server ended before it answered on port ${this.port}`);
    });
    await Promise.race([this.client.ping(), ended]);
    ended.catch(() => undefined);
  }

  async kill(): Promise<void> {
    const child = this.#child as ChildProcess;
    if (child.signalCode !== null) {
      return;
    }
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Stops the process where it stands: it answers nothing, and its clock runs on. */
  pause(): void {
    stopProcess(this.#child?.pid);
  }

  resume(): void {
    goOn(this.#child?.pid);
  }

  async stop(): Promise<void> {
    this.#client?.disconnect();
    this.resume();
    await this.kill();
  }

  /**
   * Resolves when `count` replicas have the data of this server, and follow it: a replica that is online may still be
   * loading.
   */
  async replicasOnline(count: number): Promise<void> {
    await until(`${count} replicas`, async () => {
      // A write for WAIT to confirm.
      await this.client.publish('replicas', '');
      return (await this.client.wait(count, 1_000)) >= count;
    });
  }

  /** How often each command was run, scripts' inner commands included. */
  async commandCounts(): Promise<Map<string, number>> {
    const info = await this.client.info('commandstats');
    return new Map([...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [name as string, Number(calls)]));
  }
}

/**
 * Below the ports that systems give to connections: a port of those may be taken before the server listens, or while it
 * restarts. So is the bus of a node of a cluster, 10,000 above.
 */
const PORTS = { from: 10_000, to: 22_000 };

/** Of each suite that runs at the same time: it may be long before a server listens on the port that it was given. */
const MOST_SUITES = 12;
const GIVEN = new Set<number>();

/** A port that nobody listens on, chosen at random among those of this suite, and given once. */
export async function freePort(): Promise<number> {
  const each = (PORTS.to - PORTS.from) / MOST_SUITES;
  const from = PORTS.from + (Number(process.env['JEST_WORKER_ID'] ?? randomInt(MOST_SUITES)) % MOST_SUITES) * each;
  for (;;) {
    const port = randomInt(from, from + each);
    if (GIVEN.has(port)) {
      continue;
    }
    GIVEN.add(port);
    const probe = createServer().listen(port, '127.0.0.1');
    try {
      await once(probe, 'listening');
    } catch {
      continue;
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
