import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pg } from './library.mjs';
import { freePort } from './redis-server.mjs';

const DEBIAN = '/usr/lib/postgresql';

/**
 * A real PostgreSQL server of the benchmark's own, on a free port and with the settings that it comes with, besides
 * those given.
 */
export async function startPostgres(...settings) {
  const owner = ownerOfServers();
  const folder = mkdtempSync(join(tmpdir(), 'bench-postgres-'));
  // Also where the benchmark fails halfway.
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', remove);
  if (owner.uid !== undefined) {
    chownSync(folder, owner.uid, owner.gid);
  }
  const [initdb, postgres] = findPostgres();
  const data = join(folder, 'data');
  execFileSync(initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'], { cwd: folder, stdio: 'ignore', ...owner });
  const port = await freePort();
  const given = ['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`, ...settings];
  const args = ['-D', data, ...given.flatMap((setting) => ['-c', setting])];
  const child = spawn(postgres, args, { cwd: folder, stdio: 'ignore', ...owner });
  const kill = () => child.kill('SIGKILL');
  process.prependOnceListener('exit', kill);
  await untilAnswering(port);
  return {
    port,
    async stop() {
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
export function postgresVersion() {
  return /\d[\d.]*/.exec(execFileSync(findPostgres()[1], ['--version'], { encoding: 'utf8' }))[0];
}

/** The paths of `initdb` and `postgres`, which Debian keeps off the PATH. */
function findPostgres() {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((one, other) => other - one) : [];
  const folders = [...process.env.PATH.split(delimiter), ...versions.map((version) => join(DEBIAN, version, 'bin'))];
  const commands = ['initdb', 'postgres'].map((command) => folders.map((folder) => join(folder, command)).find(existsSync));
  if (commands.includes(undefined)) {
    throw new Error('The row of stores needs initdb and postgres: apt-get install postgresql, or measure other rows with -- --rows.');
  }
  return commands;
}

/** PostgreSQL does not run as root. */
function ownerOfServers() {
  if (process.getuid?.() !== 0) {
    return {};
  }
  const [uid, gid] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' })));
  return { uid, gid };
}

async function untilAnswering(port) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
    try {
      await client.connect();
      return;
    } catch {
      await sleep(50);
    } finally {
      await client.end();
    }
  }
  throw new Error(`postgres does not answer on port ${port}`);
}
