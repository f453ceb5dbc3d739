/** What the rows of the table are called. Keys are framed, so that no two pairs of prefix and key share a row. */
export class MySqlKeys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = `${prefix}:{`;
  }

  row(key: string): Buffer {
    return Buffer.from(`${this.#prefix}${key}}`);
  }

  /** The rows of keys that begin with `prefix` come after the first name, and before the second one. */
  rangeOf(prefix: string): readonly [after: Buffer, before: Buffer] {
    const first = Buffer.from(`${this.#prefix}${prefix}`);
    // No character of UTF-8 has this byte.
    return [first, Buffer.concat([first, Buffer.of(0xff)])];
  }

  /** The row that says which of several databases this is. It is no key's row. */
  get numberRow(): Buffer {
    return Buffer.from(`${this.#prefix.slice(0, -2)}:database`);
  }

  /** The key that a row is for. */
  key(row: Buffer): string {
    return row.toString().slice(this.#prefix.length, -1);
  }
}
