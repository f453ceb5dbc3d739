import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, untilLogged, type Server } from './server.js';

const DEBIAN = '/usr/lib/postgresql';

/**
 * Starts an installed PostgreSQL on a free port of this machine, in a folder that goes with it; undefined where there
 * is none.
 */
export async function startPostgresServer(): Promise<Server | undefined> {
  const [initdb, postgres, owner] = [find('initdb'), find('postgres'), ownerOfServers()];
  if (!initdb || !postgres || !owner) {
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'demo-postgres-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', remove);
  if (owner.uid !== undefined) {
    chownSync(folder, owner.uid, owner.gid);
  }
  const data = join(folder, 'data');
  await promisify(execFile)(initdb, ['-D', data, '-U', 'demo', '-A', 'trust', '-E', 'UTF8', '--no-sync'], { cwd: folder, ...owner });
  const port = await freePort();
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`];
  const options = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
  const server = spawn(postgres, options, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], ...owner });
  const exited = once(server, 'exit');
  // Its other processes end with the first one.
  const kill = (): void => {
    server.kill('SIGKILL');
  };
  process.prependOnceListener('exit', kill);
  await Promise.race([
    untilLogged('database system is ready to accept connections', server.stderr),
    exited.then(([code]: unknown[]) => {
      throw new Error(`postgres ended with exit code ${String(code)}. Set DATABASE_URL to a server that runs.`);
    }),
  ]);
  return {
    url: `postgres://demo@127.0.0.1:${port}/postgres`,
    stop: async () => {
      process.off('exit', kill);
      process.off('exit', remove);
      kill();
      await exited;
      remove();
    },
  };
}

/** Debian keeps the server's programs off the PATH; the newest version counts. */
function find(command: string): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((one, other) => Number(other) - Number(one)) : [];
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...versions.map((version) => join(DEBIAN, version, 'bin'))];
  return folders.map((folder) => join(folder, command)).find((path) => existsSync(path));
}

/** PostgreSQL does not run as root: the user `postgres` then, whom its packages make; undefined where there is none. */
function ownerOfServers(): { uid?: undefined } | { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) {
    return {};
  }
  try {
    const [uid, gid] = ['-u', '-g'].map((option) =>
      Number(execFileSync('id', [option, 'postgres'], { stdio: ['ignore', 'pipe', 'ignore'] })),
    );
    return { uid: uid as number, gid: gid as number };
  } catch {
    return undefined;
  }
}
