import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, untilLogged, type Server } from './server.js';

/** Debian keeps the server here, which is not on the PATH of every user. */
const DEBIAN = '/usr/sbin';

/**
 * Starts an installed MariaDB on a free port of this machine, in a folder that goes with it; undefined where there is
 * none.
 */
export async function startMySqlServer(): Promise<Server | undefined> {
  const [install, mariadbd] = [find('mariadb-install-db'), find('mariadbd')];
  if (!install || !mariadbd) {
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'demo-mysql-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', remove);
  const data = join(folder, 'data');
  // It refuses to run as root unless it is told to.
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const place = ['--no-defaults', `--datadir=${data}`, ...user];
  await promisify(execFile)(install, [...place, '--auth-root-authentication-method=normal', '--skip-test-db'], { cwd: folder });
  const begin = join(folder, 'begin.sql');
  writeFileSync(begin, 'CREATE DATABASE demo;');
  const port = await freePort();
  const options = [...place, '--bind-address=127.0.0.1', `--port=${port}`, `--socket=${join(folder, 'socket')}`, `--init-file=${begin}`];
  const server = spawn(mariadbd, options, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(server, 'exit');
  const kill = (): void => {
    server.kill('SIGKILL');
  };
  process.prependOnceListener('exit', kill);
  await Promise.race([
    untilLogged('ready for connections', server.stderr),
    exited.then(([code]: unknown[]) => {
      throw new Error(`mariadbd ended with exit code ${String(code)}. Set MYSQL_URL to a server that runs.`);
    }),
  ]);
  return {
    url: `mysql://root@127.0.0.1:${port}/demo`,
    stop: async () => {
      process.off('exit', kill);
      process.off('exit', remove);
      kill();
      await exited;
      remove();
    },
  };
}

function find(command: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), DEBIAN];
  return folders.map((folder) => join(folder, command)).find((path) => existsSync(path));
}
