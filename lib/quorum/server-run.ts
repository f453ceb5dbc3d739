import { LockConfigurationError } from '../core/errors.js';
import { valueOf } from '../redis/server-check.js';

/** One life of a server's process, which ends with what it has not kept on a disk. */
export interface ServerRun {
  readonly id: string;
  /** For how long it has lasted at least, in milliseconds. */
  readonly lastsMs: number;
}

/** The run that the reply to INFO is about. Throws `LockConfigurationError` where the server may not tell. */
export function runOf(info: string): ServerRun {
  const id = valueOf(info, 'run_id');
  if (id === undefined) {
    throw new LockConfigurationError(
      'Redis refused INFO, by which a server is recognised that restarted without its data. Grant +info, as the README lists under "The smallest ACL".',
    );
  }
  // Whole seconds of a clock that had begun one when the server started.
  const lastsMs = Math.max(0, Number(valueOf(info, 'uptime_in_seconds')) - 1) * 1_000;
  return { id, lastsMs: Number.isNaN(lastsMs) ? 0 : lastsMs };
}
