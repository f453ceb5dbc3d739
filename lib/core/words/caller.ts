import { hostname } from 'node:os';

/** This process, for messages: its host and its process id. */
export const THIS_PROCESS = `${hostname()} (pid ${process.pid})`;

/** Who makes a locked call, for messages and events. Kept for all calls of one kind. */
export interface Caller {
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
  /** Where the call stands in the code: `Class.method`, its option `by`, or the method of `LockService`. */
  readonly site: string;
  /** The name that calls of this kind are counted under. There are few names, where there may be any number of keys. */
  readonly name: string;
  /** Whether it is a candidate, which waits for as long as another candidate leads. */
  readonly leads?: boolean;
  /** The text of the option `describe` for this call; it is part of `by`. */
  readonly description?: string;
}

/** `by` is empty where the call says nothing of itself. */
export function callerOf(by: string, site: string, name = site): Caller {
  return { by: by === '' ? THIS_PROCESS : `${THIS_PROCESS} ${by}`, site, name };
}

/** A copy of the caller, with the description of its call. */
export function describedCaller(caller: Caller, description: string): Caller {
  return { ...caller, by: `${caller.by} (${description})`, description };
}

/**
 * Who holds a lock that `processes` are in: `by`, if the process that it names is one of `processes`; otherwise one of
 * them. The caller that acquired the lock may have left, while callers that entered by a ticket are still inside.
 */
export function holderIn(by: string, processes: readonly string[] = []): string {
  const [, host = '', pid] = /^(.*?) \(pid (\d+)\)/.exec(by) ?? [];
  const [, otherHost, otherPid] = /^([^:]+):(\d+):/.exec(processes[0] ?? '') ?? [];
  const named = `${host.replace(/[^\w.-]/g, '_')}:${pid}:`;
  return pid === undefined || otherPid === undefined || processes.some((name) => name.startsWith(named))
    ? by
    : `${otherHost} (pid ${otherPid})`;
}
