import type { HoldRecord } from '../../core/seam/lock-store.js';
import { DONE_MS } from '../kit/protocol.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './members/quorum-server.js';
import { isOne } from '../redis/scripts/redis-commands.js';
import { majorityOf } from './votes/verdicts.js';

/**
 * Takes a hold out of all servers; what a majority says of it. `vote` is the name that it has there. Once a majority has answered, the
 * command is repeated for the others; where too few answer, the caller repeats it for all.
 */
export function releaseAll(quorum: Quorum, { key, id, ttlMs, limitMs }: HoldRecord, vote: string): Promise<boolean> {
  const command = quorum.commands.release({ key, id: vote }, DONE_MS, id);
  const send = async (server: QuorumServer): Promise<boolean> => {
    try {
      return isOne((await server.ask(command, limitMs)).reply);
    } catch (error) {
      released.then(
        () => quorum.withdrawals.repeat(() => server.ask(command, limitMs), ttlMs, error),
        () => undefined,
      );
      throw error;
    }
  };
  const released = quorum.ask(key, send, (given) => majorityOf(given, quorum.majority));
  return released;
}
