import type { PeerHealth } from '../../../../lib/operate/peers/survey.js';
import { printable } from '../../../../lib/core/words/shown.js';
import { grantsNothing, type Trouble } from './condition.js';
import { known } from './known-word.js';

/** The trouble, after the name of the store, and its consequence. */
type Words = readonly [what: string, consequence: string];

const NO_GRANT = 'No call gets a lock.';

/**
 * A trouble of a store in words, beside all troubles of the store: none says that locks work where another says that
 * they do not.
 */
export function troubleWords({ reason, health }: Trouble, all: readonly Trouble[]): Words {
  switch (reason) {
    case '':
      return ['could not be asked', 'What you see of it is old.'];
    case 'unreachable':
      return ['does not answer', `${NO_GRANT} Locks that are held end with their leases, and those of other processes are not seen here.`];
    case 'noMajority':
      return [`has too few servers: ${votes(health)}`, NO_GRANT];
    case 'failing':
      return ['answers, and has failed every attempt to acquire', `${NO_GRANT} The error is in the log of the application.`];
    case 'readOnly':
      return ['takes no writes: it is a replica, or read-only', `${NO_GRANT} Locks that are held cannot be renewed.`];
    case 'full':
      return ['has no memory left', NO_GRANT];
    case 'membersAway':
      return [
        `misses ${missing(health)}`,
        grantsNothing(all.map((other) => other.reason))
          ? ''
          : health?.majority === undefined
            ? 'No call gets a lock there; those of the others work.'
            : 'Locks work while enough of the others vote.',
      ];
    case 'polls':
      return ['delivers no messages', 'Waiting calls poll, and locks of other processes may be missing here.'];
    case 'tooFewReplicas':
      return ['has fewer replicas that confirm than it needs', NO_GRANT];
    case 'clockSkew':
      return [`has a clock that is off by ${skew(health)}`, 'A failover may end leases too early or too late.'];
    case 'closing':
      return ['is being closed: the application shuts down', 'It takes no more locks.'];
    default:
      return [`has a trouble that this page does not know: “${printable(reason)}”`, 'A process of another version says so.'];
  }
}

function votes({ members = [], majority }: Partial<PeerHealth> = {}): string {
  return `${members.filter(({ voting }) => voting).length} of ${members.length} count, and a grant needs ${majority ?? 'more'}`;
}

const REFUSALS = { readOnly: 'read-only' } as const;

/** The servers that do not answer, take no locks or have no vote, by their numbers. */
function missing({ members = [] }: Partial<PeerHealth> = {}): string {
  const numbers = members.flatMap(({ reachable, voting, refuses }, at) =>
    !reachable || voting === false || refuses ? [`${at + 1}${refuses ? ` (${printable(known(REFUSALS, refuses) ?? refuses)})` : ''}`] : [],
  );
  return `server ${numbers.join(' and ')} of ${members.length}`;
}

function skew({ clockSkewMs = 0 }: Partial<PeerHealth> = {}): string {
  return `${(Math.abs(clockSkewMs) / 1_000).toFixed(1)} s`;
}
