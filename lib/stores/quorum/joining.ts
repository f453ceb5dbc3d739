import { LockStoreError } from '../../core/errors.js';
import type { HoldRecord } from '../../core/lock-store.js';
import { DONE_MS, UNDONE_MS } from '../kit/protocol.js';
import { tooManyHolds } from '../kit/refusals.js';
import type { RedisCommands } from '../redis/redis-commands.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './quorum-server.js';
import { isLate } from './times.js';
import { majorityOf } from './verdicts.js';

/**
 * Adds a hold in all servers; false where a majority says that the lock has ended. What a minority has let in is taken out by
 * `leave`, and what nobody knows of by whoever gives up.
 */
export async function joinAll(
  quorum: Quorum,
  commands: RedisCommands,
  hold: HoldRecord,
  leave: (server: QuorumServer, doneMs: number) => void,
): Promise<boolean> {
  const { key, limitMs } = hold;
  const joined: QuorumServer[] = [];
  let doneMs: number | undefined;
  const send = async (server: QuorumServer): Promise<number> => {
    const answer = await server.askInTime((latest) => commands.join(hold, latest), limitMs);
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
      throw server.whyNot();
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
