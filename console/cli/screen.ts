import { shortened } from './table.js';

/** The other screen of a terminal, without a cursor. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const TOP = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_SCREEN = '\u001b[J';

/** A terminal that is painted again and again, and whose keys are read one by one. */
export class Screen {
  readonly #onKey: (key: string) => void;
  /** The terminal is to be as it was, whatever ends the process. */
  readonly #leave = (): void => {
    process.stdout.write(LEAVE);
  };
  readonly #read = (typed: string): void => Array.from(typed).forEach(this.#onKey);

  constructor(onKey: (key: string) => void) {
    this.#onKey = onKey;
    process.once('exit', this.#leave);
    process.stdout.write(ENTER);
    process.stdin.setRawMode(true).setEncoding('utf8').on('data', this.#read).resume();
  }

  get width(): number {
    return process.stdout.columns;
  }

  /** How many rows fit into each of `tables`. */
  rowsOf(tables: number, otherLines: number): number {
    return Math.max(1, Math.floor((process.stdout.rows - otherLines) / tables));
  }

  /** The lines have nothing that a terminal obeys. */
  paint(lines: readonly string[]): void {
    const fitting = lines.slice(0, process.stdout.rows - 1).map((line) => shortened(line, this.width) + REST_OF_LINE);
    process.stdout.write(`${TOP}${fitting.join('\r\n')}\r\n${REST_OF_SCREEN}`);
  }

  close(): void {
    process.stdin.off('data', this.#read).setRawMode(false).pause();
    process.off('exit', this.#leave);
    this.#leave();
  }
}
