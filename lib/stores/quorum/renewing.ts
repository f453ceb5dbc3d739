import type { HoldRecord } from '../../core/seam/lock-store.js';
import { leastLimitOf } from '../../core/seam/time.js';
import { readAnswers } from '../redis/scripts/redis-commands.js';
import type { Grants } from './votes/grants.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './members/quorum-server.js';
import { majorityOfEach } from './votes/verdicts.js';

/** Renews in all servers, with one command for each; what a majority says of each hold, and undefined where there is none. */
export async function renewAll(quorum: Quorum, grants: Grants, holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
  const key = holds[0]?.key ?? '';
  const command = quorum.commands.renew(holds.map((hold) => ({ ...hold, id: grants.voteOf(hold.id) })));
  const limitMs = leastLimitOf(holds);
  const denied: (() => void)[] = [];
  let verdicts: (boolean | undefined)[] | undefined;
  const send = async (server: QuorumServer): Promise<boolean[]> => {
    const answers = readAnswers((await server.ask(command, limitMs)).reply);
    const mend = (): void => holds.forEach((hold, at) => verdicts?.[at] && !answers[at] && settle(quorum, grants, server, hold));
    if (verdicts) {
      mend();
    } else {
      denied.push(mend);
    }
    return answers;
  };
  verdicts = await quorum.ask(key, send, (given, missing) => majorityOfEach(given, quorum.majority, missing));
  denied.forEach((mend) => mend());
  return verdicts;
}

/** A server may have a vote that came late, with another fence. It can be renewed when it has that of the lock. */
function settle({ commands }: Quorum, grants: Grants, server: QuorumServer, hold: HoldRecord): void {
  grants.settleOnce(hold.id, server, (vote) => server.ask(commands.settle(hold, vote, hold.fence), hold.limitMs));
}
