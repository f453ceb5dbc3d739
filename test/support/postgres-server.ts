import { spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Pool, type PoolConfig, type QueryResultRow } from 'pg';
import { lastWords, makeFolder, readLog, run, signalFamily, start } from './postgres-process';
import { freePort } from './redis-server';
import { until } from './until';

const USER = 'postgres';

/** A crash of the machine is not among the faults, and one of the server loses nothing without fsync. */
const SETTINGS = ['fsync=off', 'shared_buffers=16MB', 'max_connections=200', 'listen_addresses=127.0.0.1', 'log_checkpoints=off'];

/** Segments of 1 MB: the first one is empty, and copied with the rest. */
const SMALL_LOG = '--wal-segsize=1';

/**
 * The error of a server that is started while processes of the one before it, which were killed, are not quite gone.
 */
const STILL_DYING = 'pre-existing shared memory block';

/** A real PostgreSQL server of the test's own, on a free port and in a folder that goes with it. */
export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #settings: readonly string[];
  readonly #pools: Pool[] = [];
  #child: ChildProcess | undefined;
  #observer: Pool | undefined;

  private constructor(port: number, folder: string, settings: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#settings = settings;
  }

  /** With further settings, such as `'max_connections=10'`. */
  static async start(...settings: string[]): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort(), makeFolder('postgres'), settings);
    makeData(server.#folder);
    await server.start();
    return server;
  }

  /** A read-only copy of this server that follows it. */
  async startStandby(...settings: string[]): Promise<PostgresServer> {
    const standby = new PostgresServer(await freePort(), makeFolder('standby'), settings);
    const data = join(standby.#folder, 'data');
    const source = ['-h', '127.0.0.1', '-p', String(this.port), '-U', USER];
    run('pg_basebackup', [...source, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'], standby.#folder);
    await standby.start();
    return standby;
  }

  get url(): string {
    return this.urlFor(USER);
  }

  /** The address for another user, or through a proxy. Passwords are not asked for. */
  urlFor(user: string, port = this.port): string {
    return `postgres://${user}@127.0.0.1:${port}/postgres`;
  }

  /** Whether its process lives, paused or not. */
  get running(): boolean {
    return this.#child?.signalCode === null && this.#child.exitCode === null;
  }

  /** For looking at what is stored, with a connection that the code under test does not use. */
  async query<Row extends QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    this.#observer ??= this.pool({ max: 2, application_name: 'observer' });
    const { rows } = await this.#observer.query<Row>(sql, values);
    return rows;
  }

  /** All that it has written into its log. */
  log(): string {
    return readLog(this.#folder);
  }

  /** A pool of connections for the code under test; it ends with the server. */
  pool(config: PoolConfig = {}): Pool {
    const pool = new Pool({ connectionString: this.url, connectionTimeoutMillis: 5_000, ...config });
    // A server that was killed is no news.
    pool.on('error', () => undefined);
    this.#pools.push(pool);
    return pool;
  }

  async start(): Promise<void> {
    const settings = [...SETTINGS, `port=${this.port}`, `unix_socket_directories=${this.#folder}`, ...this.#settings];
    const words = settings.flatMap((setting) => ['-c', setting]);
    const launch = (): void => {
      this.#child = start('postgres', ['-D', join(this.#folder, 'data'), ...words], this.#folder);
    };
    launch();
    await until('that PostgreSQL answers', async () => {
      if (!this.running) {
        const why = lastWords(this.#folder);
        if (!why.includes(STILL_DYING)) {
          throw new Error(`PostgreSQL did not start: ${why}`);
        }
        launch();
      }
      return this.query('SELECT 1').then(
        () => true,
        () => false,
      );
    });
  }

  /** Kills all its processes at once: what it was asked to write is written, and nothing else. */
  async kill(): Promise<void> {
    if (!this.running) {
      return;
    }
    const child = this.#child as ChildProcess;
    const exited = once(child, 'exit');
    signalFamily(child.pid as number, 'SIGKILL');
    await exited;
  }

  /** Stops all its processes where they stand: they answer nothing, and the clock runs on. */
  pause(): void {
    signalFamily(this.#child?.pid as number, 'SIGSTOP');
  }

  resume(): void {
    signalFamily(this.#child?.pid as number, 'SIGCONT');
  }

  /**
   * Ends the connections of the code under test to which an SQL condition on `pg_stat_activity` applies; answers how
   * many.
   */
  async terminateBackends(condition = 'true'): Promise<number> {
    const ended = await this.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND application_name <> 'observer' AND (${condition})`,
    );
    return ended.length;
  }

  async stop(): Promise<void> {
    for (const pool of this.#pools) {
      pool.end().catch(() => undefined);
    }
    await this.kill();
    // One of its processes may have been making a file.
    rmSync(this.#folder, { recursive: true, maxRetries: 5 });
  }
}

/**
 * The pool, with a connection. To make a connection takes several processes, which may stand still one after the other,
 * and a store that is opened waits no longer for it than a statement may take.
 */
export async function connected(pool: Pool): Promise<Pool> {
  await until('a connection', async () => {
    const client = await pool.connect().catch(() => undefined);
    client?.release();
    return client !== undefined;
  });
  return pool;
}

/** Makes the files of a new server: once for each version, and then as copies, which take a tenth of the time. */
function makeData(folder: string): void {
  const version = run('initdb', ['--version'], folder).replace(/[^\w.]+/g, '-');
  const template = join('.cache', `${version}wal-1M-data`);
  const data = join(folder, 'data');
  if (existsSync(template)) {
    copy(template, data);
    return;
  }
  run('initdb', ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', SMALL_LOG], folder);
  mkdirSync('.cache', { recursive: true });
  // Under its name when it is whole, unless another suite was first.
  const own = `${template}.${process.pid}`;
  copy(data, own);
  try {
    renameSync(own, template);
  } catch {
    rmSync(own, { recursive: true });
  }
}

/** With the owner, which is why it is not left to Node. */
function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to]);
  if (status !== 0) {
    throw new Error(`The files of a PostgreSQL server were not copied: ${String(stderr)}`);
  }
}
