import type { RowNames } from '../sql/database.js';

export class MySqlKeys implements RowNames {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = `${prefix}:{`;
  }

  row(key: string): Buffer {
    return Buffer.from(`${this.#prefix}${key}}`);
  }

  rangeOf(prefix: string): readonly [after: Buffer, before: Buffer] {
    const first = Buffer.from(`${this.#prefix}${prefix}`);
    // No character of UTF-8 has this byte.
    return [first, Buffer.concat([first, Buffer.of(0xff)])];
  }

  get numberRow(): Buffer {
    return Buffer.from(`${this.#prefix.slice(0, -2)}:database`);
  }

  key(row: Buffer): string {
    return row.toString().slice(this.#prefix.length, -1);
  }
}
