import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** Ends a command that hangs: a busy machine needs more than a minute for what takes an idle one ten seconds. */
export const COMMAND_MS = 240_000;

/** The output of a command. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the command has to fail. Default: false. */
  readonly fails?: boolean;
  /** After this many milliseconds the command is killed, and has failed. Default: `COMMAND_MS`. */
  readonly timeout?: number;
}

/** The variables that npm and jest tell their children: they would lead an npm of ours back to this project. */
const INHERITED = /^(npm_(package|lifecycle|command|execpath|node_execpath|config_local_prefix)|NODE_|JEST_|INIT_CWD)/;

/**
 * Runs a command to its end. Rejects, with the command and its output, where it fails or, with `fails`, where it does
 * not.
 */
export async function run(
  command: string,
  args: readonly string[],
  { cwd, env, fails = false, timeout = COMMAND_MS }: RunOptions,
): Promise<Output> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)));
  const child = spawn(command, args, {
    cwd,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<number | string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? `${signal} after ${timeout} ms at most`));
  });
  const [end, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (typeof end === 'string' || (end !== 0) !== fails) {
    throw new Error(`In ${cwd}, \`${[command, ...args].join(' ')}\` ended with ${end}.\n${stdout}\n${stderr}`);
  }
  return { stdout, stderr };
}
