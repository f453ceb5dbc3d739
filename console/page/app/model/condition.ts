import type { HealthReason, HealthStatus } from '../../../../lib/core/words/lock-health.js';
import type { PeerHealth, Word } from '../../../../lib/operate/peers/survey.js';
import type { StoreSnapshot } from '../../snapshot.js';
import { known } from './known-word.js';

/** How a store is; `unknown`: no process could tell in time. */
export type Condition = HealthStatus | 'unknown';

/** Something that is wrong with a store; empty: no process could tell how it is. */
export interface Trouble {
  readonly reason: Word<HealthReason | ''>;
  /**
   * Since when, by the clock of this browser, in milliseconds: as the processes say, or since the trouble was first
   * seen here.
   */
  readonly since: number;
  /** The processes that say so, by their ids. */
  readonly saidBy: readonly string[];
  /** The health as the first of these processes says it. */
  readonly health: PeerHealth | undefined;
}

/** The condition of a store, and what is wrong with it. */
export interface StoreCondition {
  readonly condition: Condition;
  readonly troubles: readonly Trouble[];
  /** Whether the store answered, and carried the messages that the survey consists of. */
  readonly isHeard: boolean;
}

/** Reasons for which no call gets a lock. */
const NO_GRANT: ReadonlySet<Trouble['reason']> = new Set(['unreachable', 'noMajority', 'failing', 'readOnly', 'full', 'tooFewReplicas']);

/**
 * The condition of a store by the processes that answered at `at`, taken together: the worst of each. `before` says
 * since when.
 */
export function conditionOf({ processes, failed }: StoreSnapshot, before: readonly Trouble[], at: number): StoreCondition {
  const said = processes.flatMap(({ id, health }) => (health ? [{ id, health }] : []));
  const since = new Map(before.map((trouble) => [trouble.reason, trouble.since]));
  if (failed !== undefined || said.length === 0) {
    const trouble: Trouble = { reason: '', since: since.get('') ?? at, saidBy: [], health: undefined };
    return { condition: 'unknown', troubles: [trouble], isHeard: false };
  }
  const reasons = new Set(said.flatMap(({ health }) => troublesIn(health)));
  const statuses = new Set(said.map(({ health }) => health.status));
  return {
    // A status of a later version is none that is known to be good.
    condition: statuses.has('down') ? 'down' : [...statuses].every((status) => status === 'up') ? 'up' : 'degraded',
    troubles: [...reasons].map((reason) => {
      const saying = said.filter(({ health }) => troublesIn(health).includes(reason));
      const knownMs = Math.max(...saying.map(({ health }) => knownMsOf(reason, health)));
      const seenAt = since.get(reason) ?? at;
      return { reason, since: Math.min(seenAt, at - knownMs), saidBy: saying.map(({ id }) => id), health: saying[0]?.health };
    }),
    // The survey is that of the process which serves the page: it is the first.
    isHeard: said[0]?.health.reachable === true && said[0].health.hearsTurns !== false && said[0].id === processes[0]?.id,
  };
}

/** Why a process says that something is wrong: a status of a later version may have no reason. */
function troublesIn({ status, reasons }: PeerHealth): readonly Trouble['reason'][] {
  return reasons.length > 0 || status === 'up' ? reasons : [status];
}

/**
 * For how long a reason has been there, as a process says: since it has refused or not answered, or since its health
 * was first asked for.
 */
function knownMsOf(reason: Trouble['reason'], { unreachableMs = 0, refusingMs = 0, reasonMs = {} }: PeerHealth): number {
  const knownMs = reason === 'unreachable' ? unreachableMs : reason !== 'noMajority' && NO_GRANT.has(reason) ? refusingMs : 0;
  return Math.max(knownMs, known(reasonMs, reason) ?? 0);
}

/** Whether no call gets a lock, for one of these reasons. */
export function grantsNothing(reasons: readonly Trouble['reason'][]): boolean {
  return reasons.some((reason) => NO_GRANT.has(reason));
}
