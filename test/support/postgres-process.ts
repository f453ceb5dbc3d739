import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chownSync, closeSync, mkdtempSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { tmpdir } from 'node:os';
import { goOn, stopProcess } from './stopping';

/** PostgreSQL refuses to run as root, and so does pgbouncer: a user of their own, which Debian's packages make. */
const USER = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};

/** On Linux the kernel ends the processes together with the tests, also with tests that were killed. */
const TIED = spawnSync('setpriv', ['--pdeathsig', 'QUIT', 'true']).status === 0 ? ['setpriv', '--pdeathsig', 'QUIT'] : [];

/** A new folder that belongs to the user who runs the servers. */
export function makeFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `lock-${name}-`));
  if (USER.uid !== undefined) {
    chownSync(folder, USER.uid, USER.gid);
  }
  return folder;
}

/** Runs a command to its end and answers what it said; throws what it complained of where it fails. */
export function run(command: string, args: readonly string[], folder: string): string {
  const { status, stdout, stderr, error } = spawnSync(find(command), args, { cwd: folder, encoding: 'utf8', ...USER });
  if (status !== 0) {
    throw new Error(`${command} failed: ${error?.message ?? stderr}`);
  }
  return stdout;
}

/** Starts a server that writes its log into its folder. */
export function start(command: string, args: readonly string[], folder: string): ChildProcess {
  const log = openSync(join(folder, 'log'), 'a');
  const [file, ...words] = [...TIED, find(command), ...args] as [string, ...string[]];
  const child = spawn(file, words, { cwd: folder, stdio: ['ignore', log, log], ...USER });
  closeSync(log);
  return child;
}

/** The end of a server's log, for an error that should say why it does not run. */
export function lastWords(folder: string): string {
  return readLog(folder).trimEnd().split('\n').slice(-5).join('\n');
}

export function readLog(folder: string): string {
  return readFileSync(join(folder, 'log'), 'utf8');
}

/**
 * Sends a signal to a process and its children. The parent is stopped before the children are counted, so that it makes
 * no new ones.
 */
export function signalFamily(parent: number, signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
  stopProcess(parent);
  const send = { SIGSTOP: stopProcess, SIGCONT: goOn, SIGKILL: killProcess }[signal];
  for (const pid of [...childrenOf(parent), parent]) {
    send(pid);
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended by itself.
  }
}

function childrenOf(parent: number): number[] {
  const { status, stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  if (status !== 0) {
    throw new Error('The processes of a server cannot be listed. Install ps (apt-get install procps).');
  }
  const pairs = stdout.trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number)); // prettier-ignore
  return pairs.filter(([, of]) => of === parent).map(([pid]) => pid as number);
}

/** Debian keeps the servers of PostgreSQL off the PATH, and pgbouncer where only root looks. */
function find(command: string): string {
  const debian = '/usr/lib/postgresql';
  const versions = list(debian).toSorted((one, other) => Number(other) - Number(one));
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
    '/usr/sbin',
  ];
  const found = folders.find((folder) => list(folder).includes(command));
  if (found === undefined) {
    throw new Error(
      `The tests of PostgreSQL need ${command}: install it with your package manager (apt-get install postgresql pgbouncer), ` +
        'or run node scripts/find-servers.mjs as root.',
    );
  }
  return join(found, command);
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function idOf(option: '-u' | '-g'): number {
  const { status, stdout } = spawnSync('id', [option, 'postgres'], { encoding: 'utf8' });
  if (status !== 0) {
    throw new Error('PostgreSQL does not run as root, and there is no user "postgres": apt-get install postgresql makes it.');
  }
  return Number(stdout);
}
