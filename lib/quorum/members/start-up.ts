import { asLockError, LockConfigurationError } from '../../core/words/errors.js';
import { neverConnected } from '../../redis/connection/tls-errors.js';
import { warnOfRefusal } from '../../redis/wakeups.js';
import { patiently } from './patience.js';
import type { Quorum } from '../quorum.js';
import type { QuorumServer } from './quorum-server.js';
import { tryRights } from './rights-check.js';
import { atServer, type Failure } from '../too-few.js';

/** The parts that the start needs besides the servers. */
interface StartUp {
  /** Whether nothing may be written. Rights are not tried then. */
  readonly readOnly: boolean;
  /** A fence that may be proposed. */
  readonly fence: number;
  readonly warn: (message: string) => void;
}

/**
 * Subscribes at all servers, and tries their rights. Warns of servers that are of no use; throws
 * `LockConfigurationError` where a majority fails in a way that no retry mends. `failures` says which servers are known
 * to be of no use already.
 */
export async function startUpAll(quorum: Quorum, failures: readonly (Failure | undefined)[], start: StartUp): Promise<void> {
  const started = await Promise.all(quorum.servers.map((server, at) => startUp(quorum, server, failures[at], start)));
  const refusals = started.filter((each) => each !== undefined);
  const [first] = refusals;
  if (first && refusals.length >= quorum.majority) {
    throw first;
  }
  for (const { detail } of refusals) {
    start.warn(`${detail} Locked calls go on with the others, as long as most of the servers are there.`);
  }
}

/** Resolves with an error that no retry mends, or with undefined. */
async function startUp(
  { commands }: Quorum,
  server: QuorumServer,
  failure: Failure | undefined,
  { readOnly, fence, warn }: StartUp,
): Promise<LockConfigurationError | undefined> {
  const { names, process } = commands;
  const refused = (command: string, error: Error): void =>
    warnOfRefusal(error, `${server.name} of the quorum refused ${command}`, names, '', warn);
  server.wakeups.open(names, process, (error) => refused('SUBSCRIBE', error), warn);
  try {
    if (failure) {
      throw failure.error;
    }
    if (!readOnly) {
      await patiently(() => tryRights(server, commands, fence));
      await server.plain.publish(names, 'check', process).catch((error: Error) => refused('PUBLISH', error));
    }
  } catch (error) {
    const explained = atServer({ server, error: asLockError(error, '') });
    if (explained instanceof LockConfigurationError) {
      return explained;
    }
    warn(`${explained.detail}${neverConnected(explained)} Locked calls go on with the others, as long as most of the servers are there.`);
  }
  return undefined;
}
