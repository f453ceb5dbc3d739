import type { AcquireReply, HoldRecord } from '../../core/seam/lock-store.js';
import { Ballot } from './ballot.js';
import type { Fences } from './fences.js';
import type { Quorum } from '../quorum.js';
import { voteOf } from './quorum-commands.js';
import { isOne } from '../../redis/scripts/redis-commands.js';
import type { Command } from '../../redis/scripts/script.js';

/**
 * For how long an attempt waits for the slow servers when another owner has got votes too, in milliseconds, and at most
 * as a part of its time limit. Meanwhile both owners keep each other out.
 */
const CONTEST = { mostMs: 200, part: 0.4 } as const;

/**
 * Makes one attempt to get the lock in all servers. An answer counts as long as it comes within the time limit of the
 * attempt. `attempt` rises with each attempt of this process; the caller has waited for `waitedMs`.
 */
export function acquireAll(quorum: Quorum, fences: Fences, hold: HoldRecord, attempt: number, waitedMs: number): Promise<AcquireReply> {
  const { key, ttlMs, limitMs } = hold;
  const { commands } = quorum;
  const endsAt = performance.now() + limitMs;
  const vote = voteOf(hold.id, attempt);
  const fence = fences.next(hold.fences, quorum.clockMs);
  const request = { hold, attempt, fence, waitedMs, ageMs: 0 };
  const ballot = new Ballot(quorum, key, {
    contestMs: Math.min(CONTEST.mostMs, limitMs * CONTEST.part),
    vote: (server) => server.admit(hold.id, (latest) => commands.vote(request, latest), limitMs),
    stored: (stored) => fences.stored(stored, fence, hold.fences),
    settle: async (server, settled) => {
      const { reply } = await server.ask(commands.settle(hold, vote, settled), endsAt - performance.now());
      return isOne(reply);
    },
    adopt: (server, settled) => void server.ask(commands.settle(hold, vote, settled), limitMs).catch(() => undefined),
    withdraw: (server) => {
      const command = (): Command => commands.release({ ...hold, id: vote, unanswered: hold.unanswered || server.unanswered.has(hold.id) });
      quorum.withdrawals.add(() => server.ask(command(), limitMs), ttlMs);
    },
    notCounted: (server) => quorum.membership.notCounted(server),
  });
  return ballot.result;
}
