import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../support/until';

/** A run of the contract that goes on. */
export class StartedContract {
  readonly #child: ChildProcess;
  out = '';
  err = '';

  private constructor(env: NodeJS.ProcessEnv) {
    this.#child = spawn(process.execPath, ['dist/esm/cli/main.js', 'contract'], { env: { PATH: process.env['PATH'], ...env } });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text));
  }

  /** Resolves when some of its rules were checked. */
  static async on(env: NodeJS.ProcessEnv): Promise<StartedContract> {
    const started = new StartedContract(env);
    await until('that some rules were checked', () => started.out.includes('ok    release: '));
    return started;
  }

  /** Sends a signal; the exit code. */
  async endBy(signal: NodeJS.Signals): Promise<number> {
    this.#child.kill(signal);
    const [code] = (await once(this.#child, 'close')) as [number];
    return code;
  }
}
