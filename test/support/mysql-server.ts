import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPool, type Pool, type PoolOptions } from 'mysql2';
import { freePort } from './redis-server';
import { until } from './until';
import { goOn, stopProcess } from './stopping';

/** Whether the tests run on MySQL, which `scripts/fetch-servers.mjs` fetches. Else they run on MariaDB. */
export const IS_MYSQL = (process.env['TEST_SERVER'] ?? '').startsWith('mysql-');

/** Who comes to MySQL by an address is not at `localhost`, where its root is. MariaDB makes one for each. */
const RIGHTS = `RENAME USER root@localhost TO root@'127.0.0.1';\n`;

/**
 * The words of the two products: the server, how the files of a new one are made, and the settings that it then keeps.
 */
const PRODUCT = IS_MYSQL
  ? {
      name: 'MySQL',
      server: 'mysqld',
      making: (rights: string) => ['mysqld', '--no-defaults', '--initialize-insecure', `--init-file=${rights}`],
      files: ['--innodb-redo-log-capacity=16M', '--innodb-data-file-path=ibdata1:12M:autoextend'],
      settings: ['--secure-file-priv=NULL', '--mysqlx=0', '--skip-log-bin', '--sync-binlog=0', '--innodb-doublewrite=0'],
    }
  : {
      name: 'MariaDB',
      server: 'mariadbd',
      making: () => ['mariadb-install-db', '--no-defaults', '--auth-root-authentication-method=normal', '--skip-test-db'],
      files: ['--innodb-log-file-size=16M'],
      settings: ['--debug-no-sync'],
    };

/** A crash of the machine is not among the faults, and one of the server loses nothing without flushes to the disk. */
const SETTINGS = [
  '--no-defaults',
  '--bind-address=127.0.0.1',
  '--innodb-buffer-pool-size=32M',
  ...PRODUCT.files,
  ...PRODUCT.settings,
  '--innodb-flush-method=nosync',
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-use-native-aio=0',
  '--performance-schema=0',
  '--max-connections=600',
  '--skip-name-resolve',
];

/** On Linux the kernel ends the server together with the tests, also with tests that were killed. */
const TIED = spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true']).status === 0 ? ['setpriv', '--pdeathsig', 'KILL'] : [];

/** The server refuses to run as root unless it is told to. */
const USER = process.getuid?.() === 0 ? ['--user=root'] : [];

export const DATABASE = 'app';

/** The product as the library names it. */
export const PRODUCT_NAME = PRODUCT.name;

const OF_MARIADB = ['EMPTY_STRING_IS_NULL', 'IGNORE_BAD_TABLE_OPTIONS', 'ORACLE', 'SIMULTANEOUS_ASSIGNMENT', 'TIME_ROUND_FRACTIONAL'];
const OF_MYSQL = ['TIME_TRUNCATE_FRACTIONAL'];

/** Those of some names of `sql_mode` that the product knows. */
export function modesOf(names: readonly string[]): string[] {
  return names.filter((name) => !(IS_MYSQL ? OF_MARIADB : OF_MYSQL).includes(name));
}

/** A real server of MariaDB or MySQL of the test's own, on a free port and in a folder that goes with it. */
export class MySqlServer {
  readonly port: number;
  readonly #folder: string;
  readonly #settings: readonly string[];
  readonly #pools: Pool[] = [];
  #child: ChildProcess | undefined;
  #observer: Pool | undefined;

  private constructor(port: number, settings: readonly string[]) {
    this.port = port;
    this.#folder = mkdtempSync(join(tmpdir(), 'lock-mysql-'));
    this.#settings = settings;
  }

  /** Another server, with a copy of what one has that was shut down. It is not started. */
  static copyOf(original: MySqlServer, port: number, ...settings: string[]): MySqlServer {
    const server = new MySqlServer(port, settings);
    server.copyFrom(original);
    return server;
  }

  /** With further settings, such as `'--max-connections=10'`. */
  static async start(...settings: string[]): Promise<MySqlServer> {
    const server = new MySqlServer(await freePort(), settings);
    makeData(join(server.#folder, 'data'), settings);
    await server.start();
    await server.query(`CREATE DATABASE IF NOT EXISTS ${DATABASE}`);
    return server;
  }

  /** Whether its process lives, paused or not. */
  get running(): boolean {
    return this.#child?.signalCode === null && this.#child.exitCode === null;
  }

  /** For looking at what is stored, with a connection that the code under test does not use. */
  async query<Row>(sql: string, values: unknown[] = []): Promise<Row[]> {
    this.#observer ??= createPool({ ...this.address, connectionLimit: 2 });
    const [rows] = await this.#observer.promise().query(sql, values);
    return rows as Row[];
  }

  /** Where it can be reached. */
  get address(): PoolOptions {
    return { host: '127.0.0.1', port: this.port, user: 'root', password: '', connectTimeout: 5_000 };
  }

  /** A pool of connections to the database for the code under test; it ends with the server. */
  pool(options: PoolOptions = {}): Pool {
    const pool = createPool({ ...this.address, database: DATABASE, ...options });
    this.#pools.push(pool);
    return pool;
  }

  /** All that it has written into its log. */
  log(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8');
  }

  async start(): Promise<void> {
    const log = openSync(join(this.#folder, 'log'), 'a');
    const within = (name: string): string => join(this.#folder, name);
    // A server that starts deletes the temporary tables that it finds, including those of another server that works in
    // the same folder.
    const place = [`--datadir=${within('data')}`, `--tmpdir=${this.#folder}`, `--socket=${within('socket')}`, `--port=${this.port}`];
    const [file, ...words] = [...TIED, PRODUCT.server, ...SETTINGS, ...USER, ...place, ...this.#settings] as [string, ...string[]];
    this.#child = spawn(file, words, { cwd: this.#folder, stdio: ['ignore', log, log] });
    closeSync(log);
    await until(`that ${PRODUCT.name} answers`, async () => {
      if (!this.running) {
        throw new Error(`${PRODUCT.name} did not start: ${this.log().trimEnd().split('\n').slice(-5).join('\n')}`);
      }
      return this.query('SELECT 1').then(
        () => true,
        () => false,
      );
    });
  }

  /** Kills it at once: what it was asked to write is written, and nothing else. */
  async kill(): Promise<void> {
    if (this.running) {
      const exited = once(this.#child as ChildProcess, 'exit');
      this.#child?.kill('SIGKILL');
      await exited;
    }
  }

  /** Ends it when all is written. */
  async shutDown(): Promise<void> {
    // MySQL waits two seconds for the connections that are open.
    await this.#observer?.promise().end();
    this.#observer = undefined;
    const exited = once(this.#child as ChildProcess, 'exit');
    this.#child?.kill('SIGTERM');
    await exited;
  }

  /** Has what another server has, and nothing else; both are not running. */
  copyFrom(original: MySqlServer): void {
    rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
    copyData(join(original.#folder, 'data'), join(this.#folder, 'data'));
  }

  pause(): void {
    stopProcess(this.#child?.pid);
  }

  resume(): void {
    goOn(this.#child?.pid);
  }

  /** Ends the connections of the code under test, or of one user; answers how many. */
  async endConnections(user?: string): Promise<number> {
    const found = await this.#connections(user);
    await Promise.all(found.map(({ id }) => this.query(`KILL CONNECTION ${id}`).catch(() => undefined)));
    return found.length;
  }

  async countConnections(user: string): Promise<number> {
    return (await this.#connections(user)).length;
  }

  #connections(user?: string): Promise<{ id: number }[]> {
    const whose = user === undefined ? 'db IS NOT NULL AND id <> CONNECTION_ID()' : `user = '${user}'`;
    return this.query(`SELECT id FROM information_schema.processlist WHERE ${whose}`);
  }

  async stop(): Promise<void> {
    for (const pool of [...this.#pools, ...(this.#observer ? [this.#observer] : [])]) {
      pool.end(() => undefined);
    }
    this.resume();
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Makes the files of a new server: once, and then as copies, which take a tenth of the time. */
function makeData(data: string, settings: readonly string[]): void {
  const pageSize = settings.filter((setting) => setting.startsWith('--innodb-page-size'));
  const version = run(PRODUCT.server, ['--version']).replace(/[^\w.]+/g, '-').slice(-100); // prettier-ignore
  const template = join('.cache', `${version}data${pageSize.join().replaceAll(/\W/g, '')}`);
  if (!existsSync(template)) {
    mkdirSync('.cache', { recursive: true });
    const own = join(process.cwd(), `${template}.${process.pid}`);
    const rights = `${own}.sql`;
    writeFileSync(rights, RIGHTS);
    const [command, ...args] = PRODUCT.making(rights) as [string, ...string[]];
    run(command, [...args, ...PRODUCT.files, ...USER, ...pageSize, `--datadir=${own}`]);
    rmSync(rights);
    try {
      // Under its name when it is whole, unless another suite was first.
      renameSync(own, template);
    } catch {
      rmSync(own, { recursive: true });
    }
  }
  copyData(template, data);
}

function copyData(from: string, to: string): void {
  run('cp', ['-a', from, to]);
  // A server of MySQL has its identity there, and makes a new one.
  rmSync(join(to, 'auto.cnf'), { force: true });
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) {
    throw new Error(`${command} failed: ${error?.message ?? stderr}. The tests of MySQL need MariaDB: apt-get install mariadb-server.`);
  }
  return stdout;
}
