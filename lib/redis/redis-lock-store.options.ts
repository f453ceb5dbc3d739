import { checkOptions, wrongOption } from '../core/words/check-options.js';
import { checkCredentials, type CredentialsFunction } from './connection/credentials.js';

/** Options of the Redis store. */
export interface RedisLockStoreOptions {
  /**
   * How many replicas must have a lock before it counts, and must have each renewal. A failover to one of them then
   * loses no lock. While fewer confirm, nothing is granted and leases run out. Costs a second command for each grant,
   * and two connections. Default: 0.
   */
  minReplicas?: number | undefined;
  /**
   * Answers with `{ username, password }`, or a promise of them; is called for each connection that the store makes,
   * and may take 10 seconds. For passwords that change, such as tokens. While it fails, no connection is made, and it
   * is called again each second. Default: user and password of the client or URL; those in the options of a client are
   * read anew for each connection.
   */
  credentials?: CredentialsFunction | undefined;
}

interface CheckedOptions {
  readonly minReplicas: number;
  readonly credentials: CredentialsFunction | undefined;
}

/** The options with their defaults; throws `LockConfigurationError` for any that is wrong. */
export function checkRedisOptions(options: RedisLockStoreOptions): CheckedOptions {
  checkOptions('RedisLockStore', options, { minReplicas: true, credentials: true });
  const { minReplicas = 0, credentials } = options;
  if (!Number.isSafeInteger(minReplicas) || minReplicas < 0) {
    throw wrongOption(
      'RedisLockStore: minReplicas',
      minReplicas,
      'Use a whole number from 0: how many replicas must confirm a lock before it counts.',
    );
  }
  return { minReplicas, credentials: checkCredentials(credentials, 'RedisLockStore') };
}
