import { LockStoreError } from '../core/words/errors.js';
import type { HoldRecord } from '../core/seam/lock-store.js';
import { tooManyHolds } from '../kit/refusals.js';
import { isLate } from '../redis/scripts/redis-commands.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './members/quorum-server.js';
import { majorityOf } from './votes/verdicts.js';

/**
 * Adds a hold in all servers; false where a majority says that the lock has ended. If only a minority joined, the join
 * is undone there. If the outcome is unknown, core releases the hold.
 */
export async function joinAll(quorum: Quorum, hold: HoldRecord): Promise<boolean> {
  const { key, id, ttlMs, limitMs } = hold;
  const leave = (server: QuorumServer): void =>
    quorum.withdrawals.add(() => server.ask(quorum.commands.release({ ...hold, unanswered: server.unanswered.has(id) }), limitMs), ttlMs);
  const send = async (server: QuorumServer): Promise<number> => {
    const answer = await server.admit(id, (latest) => quorum.commands.join(hold, latest), limitMs);
    if (isLate(answer.reply)) {
      throw new LockStoreError('the join came too late', key, { unknown: false });
    }
    const reply = Number(answer.reply);
    if (reply === 1) {
      verdict.then(
        (isIn) => isIn !== true && leave(server),
        () => undefined,
      );
      if (!answer.counts) {
        // The lock that a restarted server remembers may have ended.
        throw quorum.membership.notCounted(server);
      }
    }
    return reply;
  };
  const verdict = quorum.ask(key, send, (given) => {
    const joined = majorityOf(given, quorum.majority, (reply) => reply === 1);
    return joined === false && given.includes(-1) ? 'full' : joined;
  });
  const outcome = await verdict;
  if (outcome === 'full') {
    throw tooManyHolds(key);
  }
  return outcome;
}
