import { randomUUID } from 'node:crypto';
import type { Lease } from '../../core/leases/lease.js';
import type { Clock } from '../../core/seam/time.js';
import type { EventOfLock, LockEvent } from '../../core/words/lock-event.js';
import { namesOf } from './shape.js';
import type { EndedCall } from './survey.js';

/** How many ended calls are kept. */
const MOST_CALLS = 1_000;

type Recorded = Omit<EndedCall, 'process' | 'agoMs' | 'id' | 'instead'> & {
  readonly number: number;
  readonly endedAt: number;
  /** The number under which the call was told before. */
  readonly before?: number;
};

/** An event of a call that has, or had, its lock. */
type Granted = EventOfLock & { readonly fence: number };

/** The times of a lease: when its call got it, and since when its process has had the grant. */
type Served = Partial<Pick<Lease, 'acquiredAt' | 'isReused' | 'servesSince'>>;

/** Keeps the calls of this process that ended last, for whoever looks later. */
export class FlightRecorder {
  readonly #clock: Clock;
  readonly #id = randomUUID().slice(0, 8);
  readonly #calls: Recorded[] = [];
  /** The calls that are inside their locks now, by their leases: two of them may be in one lock, by a ticket. */
  readonly #inside = new WeakMap<object, { readonly waitedMs: number; readonly since: number }>();
  /** The calls that were lost, until their code has ended. */
  readonly #lost = new WeakMap<object, Recorded>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records an event. `lease` belongs to an event of a call that has, or had, its lock. */
  record(event: LockEvent, lease: object = event): void {
    const now = this.#clock.monotonic();
    switch (event.type) {
      case 'acquired':
        this.#inside.set(lease, { waitedMs: event.waitedMs, since: now });
        break;
      case 'released':
      case 'releaseFailed':
        this.#left(lease, event, 'released', undefined, now);
        break;
      case 'lost':
        this.#left(lease, event, 'lost', event.reason, now);
        break;
      case 'refused':
        // A call that goes on without a busy lock is no failure.
        if (!event.skipped) {
          const { waitedMs, reason } = event;
          this.#add({ ...namesOf(event), fence: undefined, waitedMs, heldMs: 0, outcome: 'refused', reason }, now);
        }
        break;
    }
  }

  /** The code of a lost call has ended. Processes that have been told of the call are told once more. */
  codeEnded(lease: object): void {
    const lost = this.#lost.get(lease);
    const at = lost ? this.#calls.indexOf(lost) : -1;
    if (lost && at >= 0) {
      const ranOnMs = Math.round(this.#clock.monotonic() - lost.endedAt);
      this.#calls[at] = { ...lost, ranOnMs, number: this.#count++, before: lost.number };
    }
    this.#lost.delete(lease);
  }

  /** The recorded calls; those that ended last come last. */
  get calls(): Omit<EndedCall, 'process'>[] {
    const now = this.#clock.monotonic();
    return this.#calls.map(({ number, before, endedAt, ...call }) => ({
      ...call,
      id: this.#idOf(number),
      instead: before === undefined ? undefined : this.#idOf(before),
      agoMs: Math.round(now - endedAt),
    }));
  }

  #idOf(number: number): string {
    return `${this.#id}${number.toString(36)}`;
  }

  /** Once for each call: a release may fail after the loss. */
  #left(lease: Served, event: Granted, outcome: 'released' | 'lost', reason: EndedCall['reason'], now: number): void {
    const inside = this.#inside.get(lease);
    if (inside) {
      this.#inside.delete(lease);
      const { waitedMs, since } = inside;
      const servedMs = servedMsOf(lease);
      const call = this.#add({ ...namesOf(event), fence: event.fence, waitedMs, heldMs: now - since, servedMs, outcome, reason }, now);
      if (outcome === 'lost') {
        this.#lost.set(lease, call);
      }
    }
  }

  #add(call: Omit<Recorded, 'number' | 'endedAt'>, endedAt: number): Recorded {
    const { waitedMs, heldMs } = call;
    const recorded = { ...call, waitedMs: Math.round(waitedMs), heldMs: Math.round(heldMs), number: this.#count++, endedAt };
    this.#calls.push(recorded);
    if (this.#calls.length > MOST_CALLS) {
      this.#calls.shift();
    }
    return recorded;
  }
}

function servedMsOf({ acquiredAt = 0, isReused = false, servesSince = 0 }: Served): number | undefined {
  return isReused ? Math.round(acquiredAt - servesSince) : undefined;
}
