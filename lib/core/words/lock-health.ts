/** One of the servers of a store that has several. */
export interface MemberHealth {
  /** Whether it answered. */
  readonly reachable: boolean;
  /** Whether its votes count; undefined in a store whose servers do not vote. */
  readonly voting?: boolean | undefined;
  /**
   * Why a server that answers takes no locks: it is read-only, or its memory is full; undefined where it takes locks,
   * or where this is not known.
   */
  readonly refuses?: 'readOnly' | 'full' | undefined;
}

/**
 * The facts that a store finds out about itself. A fact that it cannot tell is left out. No field names a host, a key
 * or an owner.
 */
export interface StoreHealth {
  /**
   * The product of the server, as far as the server shows it: `Redis`, `Valkey`, `KeyDB`, `Dragonfly`,
   * `Redis Enterprise`, `PostgreSQL`, `CockroachDB`, `YugabyteDB`, `MariaDB`, `MySQL`, `TiDB`, `Vitess` or `Aurora`;
   * for several servers, each product once. It has no version, since many people may read a health check.
   */
  readonly server?: string | undefined;
  /** How long the answer of the server took, in milliseconds; of several servers, the slowest answer. */
  readonly latencyMs?: number | undefined;
  /**
   * How far the server's clock is ahead of the clock of this process, in milliseconds; negative where it is behind. It
   * is exact to half of `latencyMs`. For several servers, the clock that is furthest off.
   */
  readonly clockSkewMs?: number | undefined;
  /** Whether messages of turns reach this process; undefined where it is not to receive any. */
  readonly hearsTurns?: boolean | undefined;
  /** Whether enough replicas confirm writes; undefined where no replica has to. */
  readonly replicasConfirm?: boolean | undefined;
  /** The servers, in the order in which they were given, or of their slots; undefined for a store of one server. */
  readonly members?: readonly MemberHealth[] | undefined;
  /** How many votes a grant needs; undefined in a store whose servers do not vote. */
  readonly majority?: number | undefined;
  /**
   * Why a server that answers takes no locks: it is read-only, or its memory is full; for several servers, only where
   * none takes any.
   */
  readonly refuses?: 'readOnly' | 'full' | undefined;
  /** Whether the server may evict locks where its memory is full; of several servers, whether any may. */
  readonly evicts?: boolean | undefined;
}

/**
 * Whether locks work (`up`), something is wrong that need not stop the process (`degraded`), or locks do not work
 * (`down`).
 */
export type HealthStatus = 'up' | 'degraded' | 'down';

/**
 * Why locks are not up. Where the status is "`degraded`, later `down`", it becomes `down` after `downAfter`.
 *
 * | reason | meaning | status |
 * |---|---|---|
 * | `unreachable` | the store does not answer | `degraded`, later `down` |
 * | `noMajority` | fewer servers have votes that count than a grant needs | `down` |
 * | `failing` | the store answers, and refuses each attempt for a second | `degraded`, later `down` |
 * | `readOnly` | the server takes no writes: a replica, or a server before a failover | `degraded`, later `down` |
 * | `full` | the memory of the server is full, and it evicts nothing | `degraded`, later `down` |
 * | `membersAway` | some of several servers do not answer, take no locks, or have no votes that count | `degraded` |
 * | `polls` | messages of turns do not arrive, so that waiting calls poll | `degraded` |
 * | `tooFewReplicas` | fewer replicas confirm than `minReplicas`: nothing is granted | `degraded`, later `down` |
 * | `clockSkew` | the server's clock is off by over 1 s, and replicas keep leases by their clocks | `degraded` |
 * | `closing` | this application is shutting down: it takes no locks, and does not ask the store | `degraded` |
 */
export type HealthReason =
  'unreachable' | 'noMajority' | 'failing' | 'readOnly' | 'full' | 'membersAway' | 'polls' | 'tooFewReplicas' | 'clockSkew' | 'closing';

/** The health of the locks of one store, as this process sees it: plain data, without hosts, keys and owners. */
export interface LockHealth extends StoreHealth {
  readonly status: HealthStatus;
  /** Why it is not `up`; empty where it is. */
  readonly reasons: readonly HealthReason[];
  /** Whether the store answers. */
  readonly reachable: boolean;
  /**
   * For how long the store has answered nothing, in milliseconds; undefined where it answers, or where this is not
   * known.
   */
  readonly unreachableMs?: number | undefined;
  /**
   * For how long a store that answers has granted nothing, in milliseconds, as far as is known; undefined where it may
   * grant.
   */
  readonly refusingMs?: number | undefined;
  /**
   * The code that the store answers instead of a grant, such as `NOPERM`, `WRONGPASS`, `42501` or `ER_NO_SUCH_TABLE`;
   * undefined where it grants, and where that is not known. The whole text is in the log and in the incidents, since it
   * may name a host.
   */
  readonly failure?: string | undefined;
  /**
   * For how long each reason has been there, in milliseconds, as far as the checks of this process know; undefined
   * where there is none.
   */
  readonly reasonMs?: Readonly<Partial<Record<HealthReason, number>>> | undefined;
  /** The locks that this process holds. */
  readonly heldHere: number;
  /** The calls of this process that wait for a lock. */
  readonly waitingHere: number;
  /**
   * For how long all renewed locks can be trusted without a further renewal, in milliseconds. While renewals are
   * answered in time, it is about two thirds of the shortest `ttl`, or more. Undefined where no lock is renewed.
   */
  readonly leastMarginMs?: number | undefined;
}

/**
 * How wrong the clock of a server may be, in milliseconds, where the server has replicas: they keep the times at which
 * leases end.
 */
const MOST_SKEW_MS = 1_000;

/** Whether as many of the servers answered as the store needs. */
export function isAnswered({ members, majority = 1 }: StoreHealth): boolean {
  return !members || members.filter(({ reachable }) => reachable).length >= majority;
}

/**
 * The facts that this process knows about a store by itself: whether the store answers, whether it fails all attempts
 * to acquire, and whether it is closed here.
 */
interface Knowledge {
  readonly isReachable: boolean;
  readonly isFailing: boolean;
  readonly isClosing: boolean;
}

/** Why locks are not up, by the answer of the store, and by the knowledge of this process. */
export function reasonsOf(store: StoreHealth, { isReachable, isFailing, isClosing }: Knowledge): HealthReason[] {
  const { members = [], majority = 0, hearsTurns, replicasConfirm, refuses, clockSkewMs = 0 } = store;
  const hasMajority = members.filter(({ voting }) => voting).length >= majority;
  const found: Readonly<Record<HealthReason, boolean>> = {
    unreachable: !isReachable,
    noMajority: !hasMajority,
    // The reason that explains it says more.
    failing: isReachable && isFailing && hasMajority && !isRefusing(store),
    readOnly: refuses === 'readOnly',
    full: refuses === 'full',
    // Of a server that refuses, only its own keys, or its vote, are missing: the locks of the others work.
    membersAway: members.some(({ reachable, voting, refuses: why }) => !reachable || voting === false || why !== undefined),
    polls: hearsTurns === false,
    tooFewReplicas: replicasConfirm === false,
    clockSkew: replicasConfirm !== undefined && Math.abs(clockSkewMs) > MOST_SKEW_MS,
    closing: isClosing,
  };
  return (Object.keys(found) as HealthReason[]).filter((reason) => found[reason]);
}

/** Whether a store that answers grants nothing, by its own words. */
export function isRefusing({ refuses, replicasConfirm }: StoreHealth): boolean {
  return refuses !== undefined || replicasConfirm === false;
}

/**
 * The status that follows from the reasons. `unusableMs`: for how long no lock could be had, as far as is known; -1
 * where locks could be had.
 */
export function statusOf(reasons: readonly HealthReason[], unusableMs: number, downAfterMs: number): HealthStatus {
  const isDown = reasons.includes('noMajority') || unusableMs >= downAfterMs;
  return isDown ? 'down' : reasons.length > 0 ? 'degraded' : 'up';
}
