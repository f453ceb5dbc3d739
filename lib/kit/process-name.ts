import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/** A new name for a store instance, which shows where it runs: `<host>:<pid>:<8 hex digits>`. */
export function processName(): string {
  return `${hostname().replace(/[^\w.-]/g, '_')}:${process.pid}:${randomUUID().slice(0, 8)}`;
}

/** The name of a process for users, by its name or the name of one of its places: `<host> (pid <pid>)`. */
export function shownProcess(name: string): string {
  const [host, pid] = name.split(':');
  return `${host} (pid ${pid})`;
}
