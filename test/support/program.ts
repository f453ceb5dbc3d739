import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** A program in a process of its own. */
export class Program {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown[]>;
  #printed = '';

  private constructor(source: string) {
    const args = ['--import', './test/support/typescript.mjs', '--input-type=module', '--eval', source];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#exited = once(this.#child, 'close');
    this.#child.stdout?.on('data', (text: Buffer) => (this.#printed += text.toString()));
  }

  /** Starts it, and waits until it has printed something, or has ended. */
  static async start(source: string): Promise<Program> {
    const program = new Program(source);
    await Promise.race([once(program.#child.stdout as NonNullable<ChildProcess['stdout']>, 'data'), program.#exited]);
    return program;
  }

  /** Goes on for two seconds, and ends by itself soon after SIGTERM. */
  async expectToStay(): Promise<void> {
    await sleep(2_000);
    expect(this.#child).toMatchObject({ exitCode: null, signalCode: null });
    this.#child.kill('SIGTERM');
    expect(await this.#exited).toEqual([0, null]);
  }

  /** Ends by itself, and has printed this. */
  async expectToEnd(printed: string): Promise<void> {
    expect(await this.#exited).toEqual([0, null]);
    expect(this.#printed).toBe(printed);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
