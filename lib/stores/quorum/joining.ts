import { LockStoreError } from '../../core/words/errors.js';
import type { HoldRecord } from '../../core/seam/lock-store.js';
import { DONE_MS, UNDONE_MS } from '../kit/protocol.js';
import { tooManyHolds } from '../kit/refusals.js';
import { isLate } from '../redis/scripts/redis-commands.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './members/quorum-server.js';
import { majorityOf } from './votes/verdicts.js';

/**
 * Adds a hold in all servers; false where a majority says that the lock has ended. A hold that only a minority has let in is taken out
 * there. Where it is unknown, the caller releases it.
 */
export async function joinAll(quorum: Quorum, hold: HoldRecord): Promise<boolean> {
  const { key, id, ttlMs, limitMs } = hold;
  const joined: QuorumServer[] = [];
  let doneMs: number | undefined;
  const leave = (server: QuorumServer, stays: number): void =>
    quorum.withdrawals.add(() => server.ask(quorum.commands.release({ key, id }, stays), limitMs), ttlMs);
  const send = async (server: QuorumServer): Promise<number> => {
    const answer = await server.askInTime((latest) => quorum.commands.join(hold, latest), limitMs);
    if (isLate(answer.reply)) {
      throw new LockStoreError('the join came too late', key, { unknown: false });
    }
    const reply = Number(answer.reply);
    if (reply === 1 && doneMs !== undefined) {
      leave(server, doneMs);
    } else if (reply === 1) {
      joined.push(server);
    }
    if (reply === 1 && !answer.counts) {
      // What a restarted server remembers may be a lock that has ended.
      throw quorum.notCounted(server);
    }
    return reply;
  };
  const verdict = await quorum.ask(key, send, (given) => {
    const isIn = majorityOf(
      given.map((reply) => reply === 1),
      quorum.majority,
    );
    return isIn === false && given.includes(-1) ? 'full' : isIn;
  });
  if (verdict === true) {
    return true;
  }
  const stays = verdict === 'full' ? UNDONE_MS : DONE_MS;
  doneMs = stays;
  joined.forEach((server) => leave(server, stays));
  if (verdict === 'full') {
    throw tooManyHolds(key);
  }
  return false;
}
