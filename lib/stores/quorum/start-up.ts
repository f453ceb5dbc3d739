import { asLockError } from '../../core/background-releases.js';
import { LockConfigurationError } from '../../core/errors.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './quorum-server.js';
import { tryRights } from './rights-check.js';
import { atServer, type Failure } from './too-few.js';

/** What a store needs to begin with a server. */
export interface StartUp {
  readonly names: RedisKeys;
  readonly process: string;
  readonly fence: number;
  readonly warn: (message: string) => void;
}

/** Listens to all servers and tries their rights. Warns of those that are of no use; throws where no retry mends that of a majority. */
export async function startUpAll({ servers, majority }: Quorum, failures: readonly (Failure | undefined)[], start: StartUp): Promise<void> {
  const refusals = (await Promise.all(servers.map((server, at) => startUp(server, failures[at], start)))).filter(
    (each) => each !== undefined,
  );
  const [first] = refusals;
  if (first && refusals.length >= majority) {
    throw first;
  }
  for (const { detail } of refusals) {
    start.warn(`${detail} Locked calls go on with the others, as long as most of the servers are there.`);
  }
}

/** What no retry mends, where there is such a thing. */
async function startUp(
  server: QuorumServer,
  failure: Failure | undefined,
  { names, process, fence, warn }: StartUp,
): Promise<LockConfigurationError | undefined> {
  const channel = names.wake(process);
  const refused = (command: string, error: Error): void => {
    // A connection that broke, or was closed meanwhile, is no refusal.
    if (error.name === 'ReplyError') {
      warn(
        `${server.name} of the quorum refused ${command} on ${names.wake('*')}: ${error.message}. ` +
          'A forced release is noticed at the next renewal.',
      );
    }
  };
  server.wakeups.open(channel, (error) => refused('SUBSCRIBE', error), warn);
  try {
    if (failure) {
      throw failure.error;
    }
    await tryRights(server, names, process, fence);
    await server.publish(channel, 'check').catch((error: Error) => refused('PUBLISH', error));
  } catch (error) {
    const explained = atServer({ server, error: asLockError(error, '') });
    if (explained instanceof LockConfigurationError) {
      return explained;
    }
    warn(`${explained.detail} Locked calls go on with the others, as long as most of the servers are there.`);
  }
  return undefined;
}
