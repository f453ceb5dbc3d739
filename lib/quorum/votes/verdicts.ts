import type { StoredLock } from '../../core/seam/lock-store.js';

/** How many of an odd number of servers are a majority. */
export function majorityAmong(servers: number): number {
  return (servers + 1) / 2;
}

/** The verdict of a majority; undefined where there is none so far. `isYes` reads an answer that is no boolean. */
export function majorityOf<T>(given: readonly T[], majority: number, isYes: (answer: T) => boolean = Boolean): boolean | undefined {
  const yes = given.filter(isYes).length;
  if (yes >= majority) {
    return true;
  }
  return given.length - yes >= majority ? false : undefined;
}

/**
 * The verdict of a majority for each member of a list; undefined while more answers may decide about one of them, or
 * where all are undecided.
 */
export function majorityOfEach(
  given: readonly (readonly boolean[])[],
  majority: number,
  missing: number,
): (boolean | undefined)[] | undefined {
  if (given.length < majority) {
    return undefined;
  }
  const verdicts = (given[0] ?? []).map((_, at) => majorityOf(given, majority, (answers) => answers[at] === true));
  const undecided = verdicts.filter((verdict) => verdict === undefined).length;
  return undecided === 0 || (missing === 0 && undecided < verdicts.length) ? verdicts : undefined;
}

/**
 * The lock that a majority has at one fence; null where no lock can have a majority; undefined where servers decide
 * that have not answered, of which `missing` may still do so. A join is complete on a majority, and reaches the other
 * servers later: a lock is shown once a majority counts the same holds, or no more answers can come.
 */
export function heldByMajority(
  given: readonly (StoredLock | null)[],
  majority: number,
  servers: number,
  missing: number,
): StoredLock | null | undefined {
  const groups: StoredLock[][] = [];
  for (const lock of given) {
    const group = lock && groups.find((others) => others.some((other) => isSame(lock, other)));
    if (group) {
      group.push(lock);
    } else if (lock) {
      groups.push([lock]);
    }
  }
  const largest = groups.reduce((most, group) => (group.length > most.length ? group : most), []);
  if (largest.length >= majority) {
    const isAgreed = largest.some(({ holds }) => largest.filter((lock) => lock.holds === holds).length >= majority);
    return isAgreed || missing === 0 ? commonOf(largest, majority) : undefined;
  }
  return largest.length + servers - given.length < majority ? null : undefined;
}

/**
 * Whether two servers have the same lock. Two processes may propose the same fence at the same time, but only one of
 * them can have a majority. `by` may differ where several callers are in the lock.
 */
function isSame(lock: StoredLock, other: StoredLock): boolean {
  return lock.fence === other.fence && (lock.by === other.by || lock.processes?.some((one) => other.processes?.includes(one)) === true);
}

/** The lock as a majority has it: of each number, the most that a majority reaches. */
function commonOf(locks: readonly StoredLock[], majority: number): StoredLock {
  const [first] = locks as [StoredLock];
  const least = (numbers: number[]): number => numbers.toSorted((a, b) => b - a)[majority - 1] as number;
  return {
    ...first,
    holds: least(locks.map(({ holds }) => holds)),
    remainingMs: least(locks.map(({ remainingMs }) => remainingMs)),
    since: new Date(least(locks.map(({ since }) => since.getTime()))),
    waiters: [],
    processes: [...new Set(locks.flatMap(({ processes = [] }) => processes))].filter(
      (process) => locks.filter(({ processes }) => processes?.includes(process)).length >= majority,
    ),
  };
}
