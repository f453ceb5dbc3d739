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
  endBy(signal: NodeJS.Signals): Promise<number> {
    return this.#endBy(() => this.#child.kill(signal));
  }

  /** Reads its output no more; the exit code. */
  endByClosing(): Promise<number> {
    return this.#endBy(() => this.#child.stdout?.destroy());
  }

  async #endBy(end: () => void): Promise<number> {
    const closed = once(this.#child, 'close');
    end();
    const [code] = (await closed) as [number];
    return code;
  }
}
