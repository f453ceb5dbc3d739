/** The sequences of a terminal that move the cursor or erase; others change no text. */
// oxlint-disable-next-line no-control-regex
const PIECES = /\u001b\[([?\d;]*)([A-Za-z])|\u001b[()=>].?|[\s\S]/gu;

/** Where the cursor goes: down and right. */
const MOVES: Readonly<Record<string, readonly [number, number]>> = { A: [-1, 0], B: [1, 0], C: [0, 1], D: [0, -1] };

/** The screen of a terminal of so many rows and columns, by the text that was written to it. */
export class TerminalScreen {
  #rows: number;
  #columns: number;
  #lines: string[][];
  /** The lines that are shown until the update that has begun is whole. */
  #before: string[][] | undefined;
  #row = 0;
  #column = 0;
  #wraps = true;
  /** How often a line has left the screen at its top. */
  #scrolled = 0;
  #unfinished = '';

  constructor(rows: number, columns: number) {
    this.#rows = rows;
    this.#columns = columns;
    this.#lines = emptyLines(rows);
  }

  /** Without spaces at their ends. */
  get lines(): readonly string[] {
    return (this.#before ?? this.#lines).map((line) =>
      Array.from(line, (character) => character ?? ' ')
        .join('')
        .trimEnd(),
    );
  }

  get scrolled(): number {
    return this.#scrolled;
  }

  resize(rows: number, columns: number): void {
    this.#rows = rows;
    this.#columns = columns;
    this.#lines = [...this.#lines.slice(0, rows), ...emptyLines(Math.max(0, rows - this.#lines.length))];
    this.#row = Math.min(this.#row, rows - 1);
  }

  write(text: string): void {
    const all = this.#unfinished + text;
    // A sequence may come in two pieces.
    // oxlint-disable-next-line no-control-regex
    const [tail = ''] = /\u001b(?:\[[?\d;]*)?$/.exec(all) ?? [];
    this.#unfinished = tail;
    for (const [piece, values = '', final] of all.slice(0, all.length - tail.length).matchAll(PIECES)) {
      if (final !== undefined) {
        this.#obey(final, values);
      } else if (!piece.startsWith('\u001b')) {
        this.#put(piece);
      }
    }
  }

  #obey(final: string, values: string): void {
    if (final === 'H') {
      const [row = 1, column = 1] = values.split(';').map((value) => Number(value) || 1);
      [this.#row, this.#column] = [row - 1, column - 1];
    } else if (final in MOVES) {
      const [down, right] = MOVES[final] as readonly [number, number];
      const steps = Number(values) || 1;
      this.#row = Math.min(Math.max(0, this.#row + down * steps), this.#rows - 1);
      this.#column = Math.min(Math.max(0, this.#column + right * steps), this.#columns - 1);
    } else if (final === 'K') {
      this.#lines[this.#row] = values === '2' ? [] : (this.#lines[this.#row] ?? []).slice(0, Math.min(this.#column, this.#columns - 1));
    } else if (final === 'J') {
      this.#lines = this.#lines.map((line, at) => (at > this.#row ? [] : line));
    } else if (values === '?7') {
      this.#wraps = final === 'h';
    } else if (values === '?2026') {
      this.#before = final === 'h' ? this.#lines.map((line) => [...line]) : undefined;
    } else if (values === '?1049') {
      this.#lines = emptyLines(this.#rows);
    }
  }

  #put(character: string): void {
    if (character === '\r') {
      this.#column = 0;
    } else if (character === '\b') {
      this.#column = Math.max(0, this.#column - 1);
    } else if (character === '\n') {
      this.#feed();
    } else if (character >= ' ') {
      if (this.#column >= this.#columns) {
        this.#column = this.#wraps ? 0 : this.#columns - 1;
        if (this.#wraps) {
          this.#feed();
        }
      }
      (this.#lines[this.#row] as string[])[this.#column++] = character;
    }
  }

  #feed(): void {
    if (this.#row < this.#rows - 1) {
      this.#row++;
      return;
    }
    this.#scrolled++;
    this.#lines = [...this.#lines.slice(1), []];
  }
}

function emptyLines(rows: number): string[][] {
  return Array.from({ length: rows }, () => []);
}
