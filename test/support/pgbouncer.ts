import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Pool, type PoolConfig } from 'pg';
import { lastWords, makeFolder, start } from './postgres-process';
import type { PostgresServer } from './postgres-server';
import { freePort } from './redis-server';
import { until } from './until';

/** A real pgbouncer in transaction mode: each transaction of a client may run on another connection of the server. */
export class PgBouncer {
  readonly port: number;
  readonly #folder = makeFolder('pgbouncer');
  readonly #pools: Pool[] = [];
  #child: ChildProcess | undefined;

  private constructor(port: number) {
    this.port = port;
  }

  /** In front of a server, with at most so many connections to it; `serverPort` may be a proxy's. */
  static async start(server: PostgresServer, connections = 10, serverPort = server.port): Promise<PgBouncer> {
    const bouncer = new PgBouncer(await freePort());
    await bouncer.#start(serverPort, connections);
    return bouncer;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** A pool of connections for the code under test; it ends with the bouncer. */
  pool(config: PoolConfig = {}): Pool {
    const pool = new Pool({ connectionString: this.url, connectionTimeoutMillis: 5_000, ...config });
    // A bouncer that was stopped is no news.
    pool.on('error', () => undefined);
    this.#pools.push(pool);
    return pool;
  }

  async stop(): Promise<void> {
    for (const pool of this.#pools) {
      pool.end().catch(() => undefined);
    }
    const child = this.#child as ChildProcess;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    rmSync(this.#folder, { recursive: true });
  }

  async #start(serverPort: number, connections: number): Promise<void> {
    const file = join(this.#folder, 'pgbouncer.ini');
    const lines = [
      '[databases]',
      `* = host=127.0.0.1 port=${serverPort}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${this.port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${join(this.#folder, 'users')}`,
      'pool_mode = transaction',
      'max_client_conn = 1000',
      `default_pool_size = ${connections}`,
    ];
    writeFileSync(join(this.#folder, 'users'), '"postgres" ""\n');
    writeFileSync(file, `${lines.join('\n')}\n`);
    const child = start('pgbouncer', [file], this.#folder);
    this.#child = child;
    await until('that pgbouncer answers', async () => {
      if (child.exitCode !== null) {
        throw new Error(`pgbouncer did not start: ${lastWords(this.#folder)}`);
      }
      return answers(this.url);
    });
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new Client(url);
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end();
  }
}
