import { DoneMarks } from '../../lib/stores/kit/done-marks.js';
import { KeyState, type QueuedPlace } from '../../lib/stores/kit/key-state.js';
import { LockTable } from '../../lib/stores/kit/lock-table.js';
import { Server } from './server.js';
import type { Rules } from './simulation.js';

/** A defect that the simulation must find. */
export interface Mutant {
  readonly defect: string;
  /** How it shows first. */
  readonly finding: RegExp;
  readonly rules?: Partial<Rules>;
  /** Puts the defect into the classes of the library; answers how to take it out. */
  readonly infect?: () => () => void;
}

type Args<F> = F extends (...args: infer A) => unknown ? A : never;
type Result<F> = F extends (...args: never[]) => infer R ? R : never;

/** Puts another method into a class, which is given the right one; answers how to take it out. */
export function replace<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  other: (self: T, original: (...args: Args<T[K]>) => Result<T[K]>, ...args: Args<T[K]>) => Result<T[K]>,
): () => void {
  const original = prototype[name] as (this: T, ...args: Args<T[K]>) => Result<T[K]>;
  prototype[name] = function (this: T, ...args: Args<T[K]>) {
    return other(this, (...own) => original.apply(this, own), ...args);
  } as T[K];
  return () => {
    prototype[name] = original as T[K];
  };
}

function shortenLeases(): () => void {
  return replace(KeyState.prototype, 'lengthen', (state, lengthen, ttlMs) => {
    state.endAt(0);
    lengthen(ttlMs);
  });
}

function reserveAgain(): () => void {
  return replace(KeyState.prototype, 'reserve', (state, reserve, place) => {
    const before = [...state.queue.values()];
    reserve(place);
    for (const queued of before) {
      state.dequeue(queued.name);
      state.enqueue(queued);
    }
  });
}

function forget(isForgotten: (hold: string) => boolean): () => void {
  return replace(DoneMarks.prototype, 'get', (_, get, hold) => (isForgotten(hold) ? undefined : get(hold)));
}

function exchangeForTheDone(): () => void {
  return replace(LockTable.prototype, 'exchange', (_, exchange, hold, next, ...rest) => {
    const heal = forget((id) => id === next.id);
    const reply = exchange(hold, next, ...rest);
    heal();
    return reply;
  });
}

function releaseAnything(): () => void {
  return replace(LockTable.prototype, 'release', (table, release, hold) => {
    return release(hold) || table.forceRelease(hold.key, table.inspect(hold.key)?.fence ?? 0);
  });
}

function barge(): () => void {
  let turn: QueuedPlace | undefined;
  const remember = replace(Server.prototype, 'turn', (_, tell, place) => tell((turn = place)));
  const acquire = replace(LockTable.prototype, 'acquire', (table, right, hold, process, place) => {
    const reply = right(hold, process, place);
    return reply.fence === undefined && !table.inspect(hold.key) ? right(hold, process, turn) : reply;
  });
  return () => [remember, acquire].forEach((heal) => heal());
}

export const MUTANTS: readonly Mutant[] = [
  { defect: 'a renewal may shorten a lease', finding: /two trusting owners/, infect: shortenLeases },
  { defect: 'an expired reservation is given again to the same process', finding: /stalled|not free/, infect: reserveAgain },
  { defect: 'a delayed acquire is granted after its own release', finding: /after its own release/, infect: () => forget(() => true) },
  {
    defect: 'a delayed exchange is granted after the release of its next caller',
    finding: /after its own release/,
    infect: exchangeForTheDone,
  },
  { defect: 'a turn that overtakes a busy reply is dropped', finding: /stalled/, rules: { remembersTurns: false } },
  { defect: 'nobody looks again at a busy lock when messages are lost', finding: /stalled/, rules: { rechecks: false } },
  { defect: 'a grant that nobody wants any more is not released', finding: /orphan/, rules: { releasesUnwanted: false } },
  { defect: 'a lease is counted from the reply', finding: /two trusting owners/, rules: { countsFromSending: false } },
  { defect: 'a release frees the lock of another owner', finding: /two trusting owners/, infect: releaseAnything },
  { defect: 'a newcomer takes a free lock before those in the queue', finding: /out of order/, infect: barge },
  {
    defect: 'fences start again when the counter is lost',
    finding: /fences do not rise/,
    infect: () => replace(Server.prototype, 'wall', () => 0),
  },
];
