import type { HoldRecord } from '../core/seam/lock-store.js';
import { leastLimitOf } from '../core/seam/time.js';
import { isLate, isOne, readAnswers } from '../redis/scripts/redis-commands.js';
import type { GrantedHold, Grants } from './votes/grants.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './members/quorum-server.js';
import { attemptOf } from './votes/quorum-commands.js';
import { majorityOfEach } from './votes/verdicts.js';

/**
 * The time that the owner is said to have waited, in milliseconds. It has the lock already, so it goes before all
 * processes that wait.
 */
const FIRST_MS = 24 * 60 * 60 * 1_000;

/**
 * Renews in all servers, with one command for each. Resolves with the verdict of a majority for each hold, and
 * undefined where there is no majority.
 */
export function renewAll(quorum: Quorum, grants: Grants, holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
  const key = holds[0]?.key ?? '';
  const command = quorum.commands.renew(holds.map((hold) => ({ ...hold, id: grants.voteOf(hold.id) })));
  const limitMs = leastLimitOf(holds);
  const mendAll = (server: QuorumServer, answers: readonly boolean[], confirmed: readonly (boolean | undefined)[]): void =>
    holds.forEach((hold, at) => {
      if (confirmed[at] && !answers[at]) {
        grants.mend(hold.id, server, (known) => server.unanswered.until(mend(quorum, server, hold, known), hold.id));
      }
    });
  const send = async (server: QuorumServer): Promise<boolean[]> => {
    const { reply, counts } = await server.ask(command, limitMs);
    const answers = readAnswers(reply);
    if (answers.includes(false)) {
      verdicts.then(
        (confirmed) => mendAll(server, answers, confirmed),
        () => undefined,
      );
    }
    if (!counts) {
      // Another process may have another server in its place, and a majority without it.
      throw quorum.membership.notCounted(server);
    }
    return answers;
  };
  const verdicts = quorum.ask(key, send, (given, missing) => majorityOfEach(given, quorum.majority, missing));
  return verdicts;
}

/**
 * Restores the hold at a server that denied it while a majority confirmed it. That server may have a vote that came
 * late, with another fence. Or it has none: another owner had its vote at the grant, or it was away or was emptied
 * since.
 *
 * The server votes now if it is free. Two things keep it from voting late: its done mark once the hold was released,
 * since the hold is unanswered there; and the latest time of the command. Each command has the whole time limit of the
 * lease: with the rest of the renewal's, a server that answers slowly would never vote. A hold that joined by a ticket
 * joins there; where the lock is not there, the server votes for it as well: the hold that was granted may have left.
 * The lock stays as it was: its holder, since when, and for how long.
 */
async function mend({ commands }: Quorum, server: QuorumServer, hold: HoldRecord, known: Readonly<GrantedHold>): Promise<void> {
  const { vote, by, since } = known;
  const attempt = attemptOf(vote);
  if (attempt === 0) {
    const { reply } = await server.admit(hold.id, (latest) => commands.join(hold, latest), hold.limitMs);
    if (isLate(reply) || Number(reply) !== 0) {
      return;
    }
  }
  const settle = async (): Promise<boolean> => isOne((await server.ask(commands.settle(hold, vote, hold.fence), hold.limitMs)).reply);
  if (await settle()) {
    return;
  }
  const now = performance.now();
  const leftMs = known.endsAt - now;
  if (leftMs > 0) {
    // A renewal that only confirms a lease asks for less than the rest of the lease.
    const ttlMs = hold.lingering ? hold.ttlMs : Math.max(hold.ttlMs, leftMs);
    const request = { hold: { ...hold, by, ttlMs }, attempt, fence: hold.fence, waitedMs: FIRST_MS, ageMs: now - since };
    await server.admit(hold.id, (latest) => commands.vote(request, latest), hold.limitMs);
    await settle();
  }
}
