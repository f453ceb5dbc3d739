import { Scroll } from './scroll.js';

const ENTER = '\r';
const ESCAPE = '\u001b';
const CONTROL_C = '\u0003';
const BACKSPACE = new Set(['\u007f', '\b']);

/** The actions of the keys of `top`: `q` quits, `/` begins a filter, and others scroll. */
export class TopKeys {
  readonly #quit: () => void;
  readonly #scroll: Scroll;
  #filter = '';
  #isTyping = false;

  constructor(quit: () => void, scroll: Scroll) {
    this.#quit = quit;
    this.#scroll = scroll;
  }

  /** The text that keys have to contain. */
  get filter(): string {
    return this.#filter;
  }

  /** The keys that the operator may press now. */
  get line(): string {
    if (this.#isTyping) {
      return `Filter: ${this.#filter}_  (Enter: done, Escape: no filter)`;
    }
    return `q: quit, /: filter${this.#filter === '' ? '' : ` (now "${this.#filter}")`}, arrows, PgUp, PgDn, Home, End: scroll`;
  }

  press(key: string): void {
    if (key === CONTROL_C || (key === 'q' && !this.#isTyping)) {
      this.#quit();
    } else if (Scroll.takes(key)) {
      this.#scroll.press(key);
    } else if (this.#isTyping) {
      this.#type(key);
    } else if (key === '/') {
      this.#isTyping = true;
      this.#filter = '';
    }
  }

  #type(key: string): void {
    if (key === ENTER || key === ESCAPE) {
      this.#isTyping = false;
      this.#filter = key === ESCAPE ? '' : this.#filter;
    } else if (BACKSPACE.has(key)) {
      this.#filter = Array.from(this.#filter).slice(0, -1).join('');
    } else if (/^[^\p{Cc}]$/u.test(key)) {
      this.#filter += key;
    }
  }
}
