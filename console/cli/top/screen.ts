import { emitKeypressEvents, type Key } from 'node:readline';
import { shortened } from '../table.js';
import { Scroll } from './scroll.js';

/**
 * Switches to the other screen of a terminal, without a cursor. Lines do not wrap: a character that takes two columns
 * may make a line too long.
 */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
/** A terminal that knows synchronized updates shows the text between the two at once; others pass over them. */
const BEGIN = '\u001b[?2026h\u001b[H';
const END = '\u001b[?2026l';
/** Written before a line: after one that fills the width, the cursor still stands on its last character. */
const EMPTY_LINE = '\u001b[2K';

/** A terminal that is painted again and again, and whose keys are read one by one. */
export class Screen {
  readonly #onKey: (key: string) => void;
  readonly #onResize: () => void;
  /** The terminal is to be as it was, whatever ends the process. */
  readonly #leave = (): void => {
    process.stdout.write(LEAVE);
  };
  readonly #read = (_typed: string | undefined, { name = '', sequence = '' }: Key): void =>
    this.#onKey(Scroll.takes(name) ? name : sequence);

  /** `onKey` is given what a key types, and the name of one that scrolls. */
  constructor(onKey: (key: string) => void, onResize: () => void) {
    this.#onKey = onKey;
    this.#onResize = onResize;
    process.once('exit', this.#leave);
    process.stdout.write(ENTER);
    process.stdout.on('resize', this.#onResize);
    // It knows the sequences of most terminals, also where they come in pieces.
    emitKeypressEvents(process.stdin);
    process.stdin.setRawMode(true).on('keypress', this.#read).resume();
  }

  /** A terminal that does not know its size has none. */
  get width(): number {
    return process.stdout.columns || 80;
  }

  get height(): number {
    return process.stdout.rows || 24;
  }

  /** The lines have nothing that a terminal obeys. Those that are too many are left out. */
  paint(lines: readonly string[]): void {
    const all = Array.from({ length: this.height }, (_, at) => EMPTY_LINE + shortened(lines[at] ?? '', this.width));
    process.stdout.write(BEGIN + all.join('\r\n') + END);
  }

  close(): void {
    process.stdin.off('keypress', this.#read).setRawMode(false).pause();
    process.stdout.off('resize', this.#onResize);
    process.off('exit', this.#leave);
    this.#leave();
  }
}
