import { LockConfigurationError } from '../../../core/words/errors.js';
import { valueOf } from '../../redis/server-info.js';

/**
 * The id of the run that the reply to INFO is about: one life of a server's process, which ends with what it has not kept on a disk.
 * Throws `LockConfigurationError` where the user may not read it.
 */
export function runOf(info: string): string {
  const id = valueOf(info, 'run_id');
  if (id === undefined) {
    throw new LockConfigurationError(
      'Redis refused INFO, by which a server is recognised that restarted without its data. Grant +info, as docs/stores/redis.md says under "The smallest ACL".',
    );
  }
  return id;
}
