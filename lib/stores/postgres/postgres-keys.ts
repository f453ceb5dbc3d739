import { createHash } from 'node:crypto';

/** The names of keys in the table: framed, so that no prefix and key read like others. */
export class PostgresKeys {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = `${prefix}:{`;
  }

  row(key: string): string {
    return `${this.prefix}${storedText(key)}}`;
  }

  /** The row that says which of several databases this is; no key has it. */
  get numberRow(): string {
    return `${this.prefix.slice(0, -2)}:database`;
  }

  /** The key that a row is for. */
  key(row: string): string {
    return row.slice(this.prefix.length, -1).replaceAll('%00', '\0').replaceAll('%25', '%');
  }
}

/** PostgreSQL stores every character but NUL. */
export function storedText(key: string): string {
  return key.replaceAll('%', '%25').replaceAll('\0', '%00');
}

/** Which of several databases a key lives in: part of how locks are placed, so it never changes. */
export function databaseOf(key: string, count: number): number {
  return count === 1 ? 0 : createHash('sha256').update(key).digest().readUInt32BE() % count;
}
