import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/** A new name for a store instance, which shows where it runs: `<host>:<pid>:<8 hex digits>`. */
export function processName(): string {
  return `${inName(hostname())}:${process.pid}:${randomUUID().slice(0, 8)}`;
}

function inName(host: string): string {
  return host.replace(/[^\w.-]/g, '_');
}

/** How users see a process, given its name or that of one of its places: `<host> (pid <pid>)`. */
export function shownProcess(name: string): string {
  const [host, pid] = name.split(':');
  return `${host} (pid ${pid})`;
}

/** Who holds a lock that `processes` are in: `by`, or one of them where the process that it names is not. */
export function shownHolder(by: string, processes: readonly string[]): string {
  const [, host, pid] = /^(.*?) \(pid (\d+)\)/.exec(by) ?? [];
  const isIn = host === undefined || processes.some((name) => name.startsWith(`${inName(host)}:${pid}:`));
  return isIn || processes[0] === undefined ? by : shownProcess(processes[0]);
}
