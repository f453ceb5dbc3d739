import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** What a run of the program printed, and its exit code. */
export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const PROGRAM = 'dist/esm/cli/main.js';

/** Runs the program as it is built, with the URL of the store in the environment, and `input` typed. */
export async function cli(env: NodeJS.ProcessEnv, words: readonly string[], input = ''): Promise<CliRun> {
  const child = spawn(process.execPath, [PROGRAM, ...words], { env: { PATH: process.env['PATH'], ...env } });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number];
  return { code, out, err };
}
