import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { until } from './until';

/** The output of a run of the program, and its exit code. */
export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const PROGRAM = 'dist/esm/cli/main.js';

/** The reader of the output: the test, a reader that has gone, or a disk that is full. */
export type Taker = 'test' | 'nobody' | 'full disk';

/** The messages of the program on a machine that was too busy for it. */
const SLOW = /there is no connection|(no reply|not ready|could be made) within \d+ ms/;
/**
 * The beginning of a message where no server was reached, so that nothing was carried out: a message about a lock names
 * the lock first.
 */
const UNREACHED = /^\w+ did not answer/;
const MOST_TRIES = 3;

/**
 * Runs the program as it is built, with the URL of the store in the environment, and `input` typed. It runs again where
 * the machine was too busy for it, except for a release that may have been carried out.
 */
export async function cli(env: NodeJS.ProcessEnv, words: readonly string[], input = '', taker: Taker = 'test'): Promise<CliRun> {
  for (let tries = 1; ; tries++) {
    const ran = await runOnce(env, words, input, taker);
    const wasSlow = ran.code !== 0 && SLOW.test(ran.err + ran.out);
    const mayRepeat = words[0] !== 'release' || UNREACHED.test(ran.err);
    if (!wasSlow || !mayRepeat || tries === MOST_TRIES) {
      return ran;
    }
  }
}

/** Runs it until it has said what is looked for: answers and refusals may be late on a machine that stalls. */
export async function cliUntil(env: NodeJS.ProcessEnv, words: readonly string[], isSaid: (ran: CliRun) => boolean): Promise<CliRun> {
  let last: CliRun = { code: -1, out: '', err: '' };
  try {
    await until(`what is said by ${words.join(' ')}`, async () => isSaid((last = await cli(env, words))), 60_000);
  } catch (error) {
    throw new Error(`${(error as Error).message}; it said last: ${JSON.stringify(last)}`, { cause: error });
  }
  return last;
}

async function runOnce(env: NodeJS.ProcessEnv, words: readonly string[], input: string, taker: Taker): Promise<CliRun> {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [PROGRAM, ...words], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', taker === 'full disk' ? full : 'pipe', 'pipe'],
  });
  closeSync(full);
  let out = '';
  let err = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (err += text));
  if (taker === 'nobody') {
    child.stdout?.destroy();
  }
  // It may end before it has read what it was told.
  child.stdin?.on('error', () => undefined).end(input);
  const [code] = (await once(child, 'close')) as [number];
  return { code, out, err };
}
