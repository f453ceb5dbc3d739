import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { TerminalScreen } from './terminal-screen';
import { until } from './until';

/** The text that the shell writes when the program has ended. */
const END = /<(\d+)>$/;

/** A program in a real terminal, which `script` makes; it ends with the test. */
export class Terminal {
  readonly screen: TerminalScreen;
  readonly #child: ChildProcess;
  #said = '';
  #device = '';

  private constructor(env: NodeJS.ProcessEnv, command: string, rows: number, columns: number) {
    this.screen = new TerminalScreen(rows, columns);
    // The name of the terminal comes first; its size is set before the program starts. The exit code comes last:
    // `script` itself may miss the end of a program that stood still before.
    const line = `stty rows ${rows} columns ${columns}; echo "<$(tty)>"; ${command}; printf '<%s>' "$?"`;
    this.#child = spawn('script', ['-qfec', line, '/dev/null'], {
      env: { PATH: process.env['PATH'], TERM: 'xterm', SHELL: '/bin/sh', ...env },
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#hear(text));
    this.#child.stdin?.on('error', () => undefined);
  }

  static async start(env: NodeJS.ProcessEnv, command: string, rows = 24, columns = 80): Promise<Terminal> {
    const terminal = new Terminal(env, command, rows, columns);
    await until('the terminal', () => terminal.#device !== '');
    return terminal;
  }

  /** All that the program wrote, as it was. */
  get said(): string {
    return this.#said.replace(END, '');
  }

  /** Null while the program runs. */
  get exitCode(): number | null {
    const [, code] = END.exec(this.#said) ?? [];
    return code === undefined ? null : Number(code);
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  /** The program is told, as by a window whose corner is dragged. */
  resize(rows: number, columns: number): void {
    this.screen.resize(rows, columns);
    execFileSync('stty', ['-F', this.#device, 'rows', String(rows), 'columns', String(columns)]);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
  }

  #hear(text: string): void {
    this.#said += text;
    if (this.#device !== '') {
      this.screen.write(text);
      return;
    }
    const [all = '', device = ''] = /<(\/dev\/[^>]+)>\r?\n/.exec(this.#said) ?? [];
    if (device !== '') {
      this.#device = device;
      this.screen.write(this.#said.slice(this.#said.indexOf(all) + all.length));
    }
  }
}
