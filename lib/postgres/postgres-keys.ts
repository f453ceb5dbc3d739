import { createHash } from 'node:crypto';
import type { RowNames } from '../sql/database.js';

export class PostgresKeys implements RowNames {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = `${prefix}:{`;
  }

  rangeOf(prefix: string): readonly [after: string, before: string] {
    const first = `${this.prefix}${storedText(prefix)}`;
    return [first, `${first}\u{10FFFF}`];
  }

  /** The channel of all processes that keep locks of this prefix in a schema. */
  everybody(schema: string): string {
    const digest = createHash('sha256').update(`${schema} ${this.prefix}`).digest('hex');
    return `distributed_lock:all:${digest.slice(0, 16)}`;
  }

  row(key: string): string {
    return `${this.prefix}${storedText(key)}}`;
  }

  get numberRow(): string {
    return `${this.prefix.slice(0, -2)}:database`;
  }

  key(row: string): string {
    return row.slice(this.prefix.length, -1).replaceAll('%00', '\0').replaceAll('%25', '%');
  }
}

/** PostgreSQL stores every character but NUL. */
export function storedText(key: string): string {
  return key.replaceAll('%', '%25').replaceAll('\0', '%00');
}
