import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mysql2 } from './library.mjs';
import { freePort } from './redis-server.mjs';

/** The server refuses to run as root unless it is told to. */
const USER = process.getuid?.() === 0 ? ['--user=root'] : [];

/**
 * A real MariaDB server of the benchmark's own, on a free port and with the settings that it comes with, besides those
 * given.
 */
export async function startMySql(...settings) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-mysql-'));
  // Also where the benchmark fails halfway.
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', remove);
  const data = `--datadir=${join(folder, 'data')}`;
  const made = ['--no-defaults', '--auth-root-authentication-method=normal', '--skip-test-db', ...USER, data];
  execFileSync('mariadb-install-db', made, { cwd: folder, stdio: 'ignore' });
  const port = await freePort();
  const given = ['--bind-address=127.0.0.1', `--port=${port}`, `--socket=${join(folder, 'socket')}`, ...settings];
  const child = spawn('mariadbd', ['--no-defaults', ...USER, data, ...given], { cwd: folder, stdio: 'ignore' });
  const kill = () => child.kill('SIGKILL');
  process.prependOnceListener('exit', kill);
  const observer = await untilAnswering(port);
  await observer.query('CREATE DATABASE bench');
  let asked = 0;
  return {
    port,
    /** How many statements clients have sent, besides those of this question. */
    async statements() {
      const [[{ Value }]] = await observer.query("SHOW GLOBAL STATUS LIKE 'Questions'");
      asked += 1;
      return Number(Value) - asked;
    },
    async stop() {
      observer.destroy();
      const exited = once(child, 'exit');
      kill();
      await exited;
      remove();
      process.off('exit', kill);
      process.off('exit', remove);
    },
  };
}

/** Throws where there is none. */
export function mysqlVersion() {
  try {
    return /\d[\d.]*\d/.exec(execFileSync('mariadbd', ['--version'], { encoding: 'utf8' }))[0];
  } catch (cause) {
    throw new Error('The row of stores needs mariadbd: apt-get install mariadb-server, or measure other rows with -- --rows.', { cause });
  }
}

async function untilAnswering(port) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    try {
      const connection = await mysql2.createConnectionPromise({ host: '127.0.0.1', port, user: 'root' });
      connection.on('error', () => undefined);
      return connection;
    } catch {
      await sleep(50);
    }
  }
  throw new Error(`mariadbd does not answer on port ${port}`);
}
