import { hostname } from 'node:os';

/** This process, for messages: its host and its process id. */
export const THIS_PROCESS = `${hostname()} (pid ${process.pid})`;

/** Who makes a locked call, for messages and events. Kept for all calls of one kind. */
export interface Caller {
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
  /** Where the call stands in the code: `Class.method`, its option `by`, or the method of `LockService`. */
  readonly site: string;
  /** What calls of this kind are counted as. There are few names, where there may be any number of keys. */
  readonly name: string;
  /** Whether it is a candidate, which waits for as long as another one leads. */
  readonly leads?: boolean;
  /** What the option `describe` says of the call; it is part of `by`. */
  readonly description?: string;
}

export function countByName(callers: Iterable<Caller>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { name } of callers) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** `by` is empty where the call says nothing of itself. */
export function callerOf(by: string, site: string, name: string): Caller {
  return { by: by === '' ? THIS_PROCESS : `${THIS_PROCESS} ${by}`, site, name };
}

/** The same caller, with what its call is made for. */
export function describedCaller(caller: Caller, description: string): Caller {
  return { ...caller, by: `${caller.by} (${description})`, description };
}

/**
 * Who holds a lock that `processes` are in: `by`, or one of them where the process that it names is not. Who acquired the lock may have
 * left those who entered it by a ticket.
 */
export function holderIn(by: string, processes: readonly string[] = []): string {
  const [, host = '', pid] = /^(.*?) \(pid (\d+)\)/.exec(by) ?? [];
  const [, otherHost, otherPid] = /^([^:]+):(\d+):/.exec(processes[0] ?? '') ?? [];
  const named = `${host.replace(/[^\w.-]/g, '_')}:${pid}:`;
  return pid === undefined || otherPid === undefined || processes.some((name) => name.startsWith(named))
    ? by
    : `${otherHost} (pid ${otherPid})`;
}
