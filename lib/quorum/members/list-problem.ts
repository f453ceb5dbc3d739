import type { Member } from './member.js';
import type { QuorumServer } from './quorum-server.js';
import { numbersReported } from './standing.js';

/**
 * The problem of a list of servers, as far as they have answered; '' for none. Another process's list is forgotten
 * after `holdMs`.
 */
export function listProblem(members: readonly Member[], holdMs: number): string {
  return twice(members) ?? otherLength(members, holdMs) ?? '';
}

/** A server that is listed by two names would make a majority of fewer servers. */
function twice(members: readonly Member[]): string | undefined {
  const runs = new Map<string, QuorumServer>();
  for (const { server, run } of members) {
    const other = run === undefined ? undefined : runs.get(run);
    if (other) {
      return `QuorumLockStore: ${other.name} and ${server.name} are the same. Pass independent servers.`;
    }
    runs.set(run ?? server.name, server);
  }
  return undefined;
}

/** A majority of more servers, or of fewer, need not have one in common with a majority of these. */
function otherLength(members: readonly Member[], holdMs: number): string | undefined {
  const { length } = members;
  const standings = members.map(({ standing }) => standing);
  const other = numbersReported(standings, 'servers').find((number) => number !== length);
  return other === undefined
    ? undefined
    : `QuorumLockStore was given ${length} servers, and other processes use some of them in a quorum of ${other}. Give all processes the same ` +
        `list. To change how many there are, end all processes that have the other list, and wait for ${holdMs} ms.`;
}
