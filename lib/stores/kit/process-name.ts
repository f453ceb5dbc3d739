import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/** A new name for a store instance, which shows where it runs: `<host>:<pid>:<8 hex digits>`. */
export function processName(): string {
  return `${hostname().replace(/[^\w.-]/g, '_')}:${process.pid}:${randomUUID().slice(0, 8)}`;
}
