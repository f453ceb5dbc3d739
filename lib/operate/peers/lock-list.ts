import { calledAs } from '../../core/words/description.js';
import { groupedBy } from '../../core/words/grouped-by.js';
import { fewest } from '../../core/words/shown.js';
import { holderIn } from '../../core/words/caller.js';
import { pause, type Clock } from '../../core/seam/time.js';
import type { FoundLock, Operator, StoredLock } from '../../core/seam/lock-store.js';
import type { HeldLock, LockProcess, Survey, WaitingCall } from './survey.js';

/** A lock in a list. */
export interface ListedLock extends StoredLock {
  readonly key: string;
  /** Holds in the lock; of readers, the calls that read, as their processes say. */
  readonly holds: number;
  /** Calls that wait for it, in all processes that have answered; `waiters` are processes. */
  readonly waiting: number;
  /** Calls of this process that wait for it. */
  readonly waitingHere: number;
  /**
   * Whether a process that holds it has answered. Where none has answered, the process was stopped, cut off or ended,
   * or has an older version.
   */
  readonly answers: boolean;
}

/** The locks and calls that a list leaves out. */
export interface LeftOut {
  /** How many locks and calls processes have left out of their answers: each lists 1,000 of both. */
  readonly rows: number;
  /** Whether the list ended at its `limit`. */
  readonly limited: boolean;
  /** Whether the store was not searched to its end: not asked for, not offered, or out of time. */
  readonly unsearched: boolean;
}

/** The locks of all processes, as they come. */
export interface LockList extends AsyncIterable<ListedLock> {
  /** The part that the list has left out so far. */
  readonly leftOut: LeftOut;
}

/** The limits of a list. */
export interface ListLimits {
  /** The beginning of the keys that are listed. */
  readonly prefix: string;
  /** The most locks. */
  readonly limit: number;
  /** For how long the store may be searched, in milliseconds; 0: it is not. */
  readonly searchMs: number;
}

/**
 * Lists locks once. First the locks that processes say they hold, the oldest first; then the other locks that a search
 * of the store finds. A lock that changes hands meanwhile may be found again, with its later fence, and so may a key
 * that is shared with processes that do not answer, with all its holds. Nothing is asked before the list is read.
 */
export class Listing implements LockList {
  readonly #survey: () => Promise<Survey>;
  readonly #operator: Operator | undefined;
  readonly #clock: Clock;
  readonly #limits: ListLimits;
  #leftOut: LeftOut = { rows: 0, limited: false, unsearched: true };

  constructor(survey: () => Promise<Survey>, operator: Operator | undefined, clock: Clock, limits: ListLimits) {
    this.#survey = survey;
    this.#operator = operator;
    this.#clock = clock;
    this.#limits = limits;
  }

  get leftOut(): LeftOut {
    return this.#leftOut;
  }

  /** The `return` of the iterator ends it at once, also in the middle of a step of the search. */
  [Symbol.asyncIterator](): AsyncIterator<ListedLock, void, undefined> {
    const stop = new AbortController();
    const locks = this.#locks(stop.signal);
    return {
      next: () => locks.next(),
      return: () => {
        stop.abort();
        return locks.return();
      },
    };
  }

  async *#locks(stopped: AbortSignal): AsyncGenerator<ListedLock, void, undefined> {
    const { prefix, limit } = this.#limits;
    const askedAt = this.#clock.monotonic();
    const survey = await this.#survey();
    this.#leftOut = { rows: survey.leftOut, limited: false, unsearched: true };
    /** The last lock of each key. */
    const listed = new Map<string, ListedLock>();
    for await (const lock of this.#all(survey, this.#clock.monotonic() - askedAt, stopped)) {
      const before = listed.get(lock.key);
      if (!lock.key.startsWith(prefix) || (before && !isNews(lock, before))) {
        continue;
      }
      if (before === undefined && listed.size >= limit) {
        this.#leftOut = { ...this.#leftOut, limited: true };
        return;
      }
      listed.set(lock.key, lock);
      yield lock;
    }
  }

  /** `agoMs`: how long ago the processes were asked. */
  async *#all(survey: Survey, agoMs: number, stopped: AbortSignal): AsyncGenerator<ListedLock, void, undefined> {
    const known = knownOf(survey);
    yield* heldLocks(known, this.#clock.wall() - agoMs, agoMs);
    const { searchMs, prefix } = this.#limits;
    const parts = searchMs > 0 && !stopped.aborted ? this.#operator?.search?.(prefix) : undefined;
    if (!parts) {
      return;
    }
    const steps = parts[Symbol.asyncIterator]();
    // A step that does not end keeps the list no longer than the others.
    const isOver = Promise.race([pause(searchMs), new Promise<void>((resolve) => stopped.addEventListener('abort', () => resolve()))]);
    const next = (): Promise<IteratorResult<readonly FoundLock[]> | void> => Promise.race([steps.next(), isOver]);
    let step: IteratorResult<readonly FoundLock[]> | void = undefined;
    try {
      for (step = await next(); step && !step.done; step = await next()) {
        yield* step.value.map((lock) => foundLock(lock, known));
      }
      this.#leftOut = { ...this.#leftOut, unsearched: !step };
    } finally {
      const ended = steps.return?.();
      if (step) {
        await ended;
      } else {
        // The step hangs, and may fail later.
        ended?.catch(() => undefined);
      }
    }
  }
}

/** Whether a lock was granted later than one that was listed, or is shared by more. */
function isNews(lock: ListedLock, before: ListedLock): boolean {
  return lock.fence > before.fence || (lock.fence === before.fence && lock.shares !== undefined && lock.holds > before.holds);
}

/** A survey, indexed by the fields that are looked for: a list may be long. */
interface Known {
  readonly survey: Survey;
  readonly waiting: ReadonlyMap<string, readonly WaitingCall[]>;
  /** By their ids. */
  readonly processes: ReadonlyMap<string, LockProcess>;
  /** The names of the processes that have answered, as the store knows them. */
  readonly answering: ReadonlySet<string>;
}

function knownOf(survey: Survey): Known {
  return {
    survey,
    waiting: groupedBy(survey.waiting, ({ key }) => key),
    processes: new Map(survey.processes.map((process) => [process.id, process])),
    answering: new Set(survey.processes.map(({ id }) => processOf(id))),
  };
}

/** The locks that processes hold: a lock that several processes are in is listed once. */
function heldLocks(known: Known, askedAt: number, agoMs: number): ListedLock[] {
  const byKey = groupedBy(known.survey.held, ({ key }) => key);
  return [...byKey.values()]
    .map((holds) => heldLock(latest(holds), known, askedAt, agoMs))
    .toSorted((one, other) => one.since.getTime() - other.since.getTime());
}

/** The holds at the last fence: processes answer one after the other, and a lock may change hands meanwhile. */
function latest(holds: readonly HeldLock[]): HeldLock[] {
  const last = Math.max(...holds.map(({ fence }) => fence));
  return holds.filter(({ fence }) => fence === last);
}

function heldLock(holds: readonly HeldLock[], known: Known, askedAt: number, agoMs: number): ListedLock {
  const first = holds.reduce((longest, hold) => (hold.heldMs > longest.heldMs ? hold : longest));
  const waitingFor = (known.waiting.get(first.key) ?? []).toSorted((one, other) => other.waitedMs - one.waitedMs);
  return {
    key: first.key,
    fence: first.fence,
    holds: holds.length,
    shares: fewest(holds),
    remainingMs: Math.max(0, Math.round(Math.max(...holds.map(({ remainingMs = Infinity }) => remainingMs)) - agoMs)),
    since: new Date(askedAt - first.heldMs),
    by: `${shown(known, first.process)} ${calledAs(first)}`,
    processes: [...new Set(holds.map(({ process }) => processOf(process)))],
    waiters: [...new Set(waitingFor.map(({ process }) => shown(known, process)))],
    ...countsOf(waitingFor, known),
    answers: true,
  };
}

function foundLock(lock: FoundLock, known: Known): ListedLock {
  const answers = lock.processes?.some((process) => known.answering.has(process)) === true;
  return { ...lock, by: holderIn(lock.by, lock.processes), ...countsOf(known.waiting.get(lock.key) ?? [], known), answers };
}

/** The first process of a survey is the one that asked. */
function countsOf(waiting: readonly WaitingCall[], { survey }: Known): Pick<ListedLock, 'waiting' | 'waitingHere'> {
  const [own] = survey.processes;
  return { waiting: waiting.length, waitingHere: waiting.filter(({ process }) => process === own?.id).length };
}

/** The name of a process in the store, without the name of the application. */
function processOf(id: string): string {
  return id.slice(0, id.lastIndexOf('#'));
}

function shown({ processes }: Known, id: string): string {
  const process = processes.get(id);
  return process ? `${process.host} (pid ${process.pid})` : id;
}
