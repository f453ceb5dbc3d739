import { asLockError } from '../core/background-releases.js';
import { LockStoreError } from '../core/errors.js';
import type { RedisKeys } from '../redis/redis-keys.js';
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

/** Listens to a server and tries its rights. Warns of one that is away; throws what no retry mends. */
export async function startUp(server: QuorumServer, failure: Failure | undefined, { names, process, fence, warn }: StartUp): Promise<void> {
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
    if (!(explained instanceof LockStoreError)) {
      throw explained;
    }
    warn(`${explained.detail} Locked calls go on with the others, as long as most of the servers are there.`);
  }
}
