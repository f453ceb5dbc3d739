import type { HoldRecord } from '../core/seam/lock-store.js';
import type { Quorum } from './quorum.js';
import type { Answer, QuorumServer } from './members/quorum-server.js';
import { isOne } from '../redis/scripts/redis-commands.js';
import { majorityOf } from './votes/verdicts.js';

/**
 * Takes a hold out of all servers; resolves with the verdict of a majority. `vote` is the name that the hold has there.
 * A server that may still let it in keeps a done mark. Once a majority has answered, the command is repeated for the
 * others; where too few answer, the caller repeats it for all.
 */
export function releaseAll(quorum: Quorum, hold: HoldRecord, vote: string): Promise<boolean> {
  const { key, id, ttlMs, limitMs } = hold;
  const ask = (server: QuorumServer, isRepeated = false): Promise<Answer> => {
    const unanswered = hold.unanswered || isRepeated || server.unanswered.has(id);
    return server.ask(quorum.commands.release({ ...hold, id: vote, unanswered }, id), limitMs);
  };
  const send = async (server: QuorumServer): Promise<boolean> => {
    try {
      return isOne((await ask(server)).reply);
    } catch (error) {
      released.then(
        () => quorum.withdrawals.repeat(() => ask(server, true), ttlMs, error),
        () => undefined,
      );
      throw error;
    }
  };
  const released = quorum.ask(key, send, (given) => majorityOf(given, quorum.majority));
  return released;
}
