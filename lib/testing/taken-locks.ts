import { currentCall } from '../core/calls/call-tree.js';
import type { LockEvent } from '../core/words/lock-event.js';
import type { LockEntry, LockTelemetry } from '../core/words/lock-telemetry.js';

/** A lock that a call has entered. */
export interface TakenLock {
  readonly key: string;
  /**
   * `'acquired'`: from the store, or from the call before; `'reentered'`: an enclosing call has it; `'joined'`: by a
   * ticket.
   */
  readonly how: 'acquired' | 'reentered' | 'joined';
  /**
   * The keys that the calls around this one have, the outermost first, each once. Keys of one call are not inside each
   * other.
   */
  readonly inside: readonly string[];
  /** Where the call stands in the code: `Class.method`, its option `by`, or the method of `LockService`. */
  readonly site: string;
  /** The name under which the store is registered. */
  readonly store: string;
  readonly fence: number;
  /**
   * How it ended; undefined while it is held, and for a re-entry, which releases nothing. `'unreleased'`: its code has
   * ended, and the store did not answer the release.
   */
  readonly ended: 'released' | 'lost' | 'unreleased' | undefined;
  /** The how-many-th it was that ended, from 1 on; undefined where `ended` is. */
  readonly endedAs: number | undefined;
}

type Written = { -readonly [Name in keyof TakenLock]: TakenLock[Name] };

const ENDS: Partial<Record<LockEvent['type'], TakenLock['ended']>> = {
  released: 'released',
  lost: 'lost',
  releaseFailed: 'unreleased',
};

/** Writes down which locks are taken, in which order, inside which others, and in which order they end. */
export class TakenLocks implements LockTelemetry {
  #taken: Written[] = [];
  #ended = 0;

  /** In the order in which they were taken. */
  get list(): TakenLock[] {
    return this.#taken.map((taken) => ({ ...taken }));
  }

  clear(): void {
    this.#taken = [];
    this.#ended = 0;
  }

  /** @internal */
  entered({ key, how, site, store, fence }: LockEntry): void {
    this.#taken.push({ key, how, inside: keysAround(), site, store, fence, ended: undefined, endedAs: undefined });
  }

  event(event: LockEvent): void {
    const end = ENDS[event.type];
    if (!end) {
      return;
    }
    const { store, key, site, fence } = event as LockEvent & { readonly fence: number };
    const ended = this.#taken.findLast(
      (taken) =>
        taken.how !== 'reentered' &&
        taken.ended === undefined &&
        taken.store === store &&
        taken.key === key &&
        taken.site === site &&
        taken.fence === fence,
    );
    if (ended) {
      ended.ended = end;
      ended.endedAs = ++this.#ended;
    }
  }
}

function keysAround(): string[] {
  const calls: (readonly string[])[] = [];
  for (let at = currentCall(); at; at = at.parent) {
    calls.unshift(at.keys);
  }
  return [...new Set(calls.flat())];
}
