import { checkOptions } from '../core/words/check-options.js';
import { parseDuration, type Duration } from '../core/words/duration.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { checkCredentials, type CredentialsFunction } from '../redis/connection/credentials.js';
import { checkSource, isCluster, type RedisSource } from '../redis/connection/redis-source.js';

/** Options of the quorum store. */
export interface QuorumLockStoreOptions {
  /**
   * The longest lease that may be asked for: a longer `ttl` is refused, and so is a `minHold` that would need a longer
   * lease. The votes of a server that restarted count again when twice this time and two seconds have passed, since the
   * server may have forgotten leases that are still running. The option has to be the same in all processes: where it
   * is not, the longest counts, and the others warn. Default: `'60s'`.
   */
  longestLease?: Duration | undefined;
  /** User and password, read anew for each connection to each server, as those of `RedisLockStore`. */
  credentials?: CredentialsFunction | undefined;
}

interface CheckedOptions {
  readonly longestLeaseMs: number;
  readonly credentials: CredentialsFunction | undefined;
}

/** The options with their defaults. Throws `LockConfigurationError` for others than a quorum has. */
export function checkQuorumOptions(options: QuorumLockStoreOptions): CheckedOptions {
  checkOptions('QuorumLockStore', options, { longestLease: true, credentials: true });
  const { longestLease = '60s', credentials } = options;
  return {
    longestLeaseMs: parseDuration(longestLease, 'longestLease', 100, 'QuorumLockStore'),
    credentials: checkCredentials(credentials, 'QuorumLockStore'),
  };
}

const FOR_ONE = 'RedisLockStore is for one.';

/** Throws `LockConfigurationError` for a list that is not one of servers that can vote. */
export function checkSources(sources: readonly RedisSource[]): readonly RedisSource[] {
  const given: unknown = sources;
  if (!Array.isArray(given)) {
    throw new LockConfigurationError(
      'QuorumLockStore takes a list of servers. Pass [redis1, redis2, redis3]: clients, URLs or ioredis options of independent servers. ' +
        FOR_ONE,
    );
  }
  if (given.length < 3 || given.length % 2 === 0) {
    throw new LockConfigurationError(
      `QuorumLockStore was given ${given.length === 1 ? 'one server' : `${given.length} servers`}. Pass three or more, an odd number: ` +
        `of an even one, one server is of no use. ${FOR_ONE}`,
    );
  }
  if (new Set(given).size < given.length) {
    throw new LockConfigurationError(
      'QuorumLockStore was given the same server twice. Pass each once: a server that votes twice makes a majority of fewer servers.',
    );
  }
  return given.map((source) => checkServer(source));
}

/** The options that Sentinel clients have, and single servers do not; clients keep their options. */
interface ClientTraits {
  readonly sentinels?: unknown;
  readonly options?: { readonly sentinels?: unknown };
}

function checkServer(source: unknown): RedisSource {
  const checked = checkSource(source, 'QuorumLockStore');
  const { options, sentinels = options?.sentinels } = (typeof checked === 'string' ? {} : checked) as ClientTraits;
  if (isCluster(checked)) {
    throw new LockConfigurationError(
      'QuorumLockStore was given a Cluster client. Pass independent servers to it, or the Cluster client to RedisLockStore.',
    );
  }
  if (sentinels) {
    throw new LockConfigurationError(
      'QuorumLockStore was given a server behind Sentinel. A failover loses votes without notice: pass independent servers without replicas.',
    );
  }
  return checked;
}
