import { LockConfigurationError } from '../core/errors.js';

/** The oldest version whose scripts may read the clock and write. */
const OLDEST = 6;

/** What is worth a warning in the reply to INFO; throws `LockConfigurationError` for a server that is too old. */
export function serverWarnings(info: string): string[] {
  const version = valueOf(info, 'redis_version');
  if (version !== undefined && Number.parseInt(version, 10) < OLDEST) {
    throw new LockConfigurationError(`RedisLockStore: the server is Redis ${version}. Use Redis ${OLDEST}.0 or later.`);
  }
  const policy = valueOf(info, 'maxmemory_policy');
  return policy === undefined || policy === 'noeviction'
    ? []
    : [`Redis evicts keys (maxmemory-policy is ${policy}), and locks with them. Set it to noeviction on the server of the locks.`];
}

function valueOf(info: string, field: string): string | undefined {
  return new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
