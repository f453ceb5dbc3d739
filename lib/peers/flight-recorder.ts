import { randomUUID } from 'node:crypto';
import type { Clock } from '../core/seam/time.js';
import type { EventOfLock, LockEvent } from '../core/words/lock-event.js';
import { brief } from './shape.js';
import type { EndedCall } from './survey.js';

/** How many ended calls are kept. */
const MOST_CALLS = 1_000;

type Recorded = Omit<EndedCall, 'process' | 'agoMs' | 'id'> & { readonly number: number; readonly endedAt: number };

/** An event of a call that has, or had, its lock. */
type Granted = EventOfLock & { readonly fence: number };

/** Keeps the calls of this process that ended last, for whoever looks later. */
export class FlightRecorder {
  readonly #clock: Clock;
  readonly #id = randomUUID().slice(0, 8);
  readonly #calls: Recorded[] = [];
  /** The calls that are inside their locks now, by their leases: two of them may be in one lock, by a ticket. */
  readonly #inside = new WeakMap<object, { readonly waitedMs: number; readonly since: number }>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `lease` is that of an event of a call that has, or had, its lock. */
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
        // That a call goes on without a busy lock is no failure.
        if (!event.skipped) {
          const { waitedMs, reason } = event;
          this.#add({ ...callOf(event), fence: undefined, waitedMs, heldMs: 0, outcome: 'refused', reason }, now);
        }
        break;
    }
  }

  /** The ones that ended last come last. */
  get calls(): Omit<EndedCall, 'process'>[] {
    const now = this.#clock.monotonic();
    return this.#calls.map(({ number, endedAt, ...call }) => ({
      ...call,
      id: `${this.#id}${number.toString(36)}`,
      agoMs: Math.round(now - endedAt),
    }));
  }

  /** Once for each call: a release may fail after the loss. */
  #left(lease: object, event: Granted, outcome: 'released' | 'lost', reason: EndedCall['reason'], now: number): void {
    const inside = this.#inside.get(lease);
    if (inside) {
      this.#inside.delete(lease);
      this.#add({ ...callOf(event), fence: event.fence, waitedMs: inside.waitedMs, heldMs: now - inside.since, outcome, reason }, now);
    }
  }

  #add(call: Omit<Recorded, 'number' | 'endedAt'>, endedAt: number): void {
    const { waitedMs, heldMs } = call;
    this.#calls.push({ ...call, waitedMs: Math.round(waitedMs), heldMs: Math.round(heldMs), number: this.#count++, endedAt });
    if (this.#calls.length > MOST_CALLS) {
      this.#calls.shift();
    }
  }
}

function callOf({ key, name, site, description }: EventOfLock): Pick<EndedCall, 'key' | 'name' | 'site' | 'description'> {
  return { key, name: brief(name), site: brief(site), description };
}
