import { fieldOf, type RedisCommands } from '../redis/redis-commands.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import { readAnswers } from '../redis/replies.js';
import type { Grant } from './grants.js';
import type { Quorum } from './quorum.js';
import type { QuorumServer } from './quorum-server.js';
import { SETTLE } from './scripts.js';
import { majorityOfEach } from './verdicts.js';

/** A hold whose lease is to be renewed, and what is known of its votes; nothing of one that joined. */
export interface Renewal {
  readonly key: string;
  readonly owner: string;
  readonly id: string;
  readonly fence: number;
  readonly ttlMs: number;
  readonly limitMs: number;
  readonly lingering: boolean;
  readonly grant: Grant | undefined;
}

/** Renews in all servers, with one command for each; what a majority says of each hold, and undefined where there is none. */
export async function renewAll(
  quorum: Quorum,
  names: RedisKeys,
  commands: RedisCommands,
  renewals: readonly Renewal[],
): Promise<(boolean | undefined)[]> {
  const command = commands.renew(renewals.map((renewal) => ({ ...renewal, id: renewal.grant?.vote ?? renewal.id })));
  const limitMs = Math.min(...renewals.map((renewal) => renewal.limitMs));
  const denied: (() => void)[] = [];
  let verdicts: (boolean | undefined)[] | undefined;
  const send = async (server: QuorumServer): Promise<boolean[]> => {
    const answers = readAnswers((await server.ask(command, limitMs)).reply);
    const mend = (): void => renewals.forEach((renewal, at) => verdicts?.[at] && !answers[at] && tellFence(server, names, renewal));
    if (verdicts) {
      mend();
    } else {
      denied.push(mend);
    }
    return answers;
  };
  verdicts = await quorum.ask(renewals[0]?.key ?? '', send, (given, missing) => majorityOfEach(given, quorum.majority, missing));
  denied.forEach((mend) => mend());
  return verdicts;
}

/** A server may have a vote that came late, with another fence. It can be renewed when it has that of the lock. */
function tellFence(server: QuorumServer, names: RedisKeys, { key, owner, fence, limitMs, grant }: Renewal): void {
  if (grant && !grant.told.has(server)) {
    grant.told.add(server);
    const tag = names.tag(key);
    server
      .ask(SETTLE.command(key, { lock: names.lock(tag), counter: names.fence(tag), owner, vote: fieldOf(grant.vote), fence }), limitMs)
      .catch(() => grant.told.delete(server));
  }
}
