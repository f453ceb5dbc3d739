import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/seam/time.js';
import { MOST_FENCES } from '../../core/seam/lock-store.js';
import type { CycleCall } from '../../core/words/cycle-call.js';
import { failureCode, type LockError } from '../../core/words/errors.js';
import { printable } from '../../core/words/shown.js';
import type { EventOfLock, ForcedBy, LockEvent, RefusedReason } from '../../core/words/lock-event.js';
import { brief, namesOf } from './shape.js';
import type { FoundIncident, LockIncident } from './survey.js';

/** For how long incidents are kept, in milliseconds. */
const KEPT_MS = 24 * 3_600_000;
/** How many are kept. */
const MOST_INCIDENTS = 500;
/**
 * Refusals of one name for one reason, and outages of a store for one, that follow each other within this are one
 * incident, in milliseconds.
 */
const TOGETHER_MS = 60_000;
/** The longest text of an error that is kept. */
const LONGEST_ERROR = 1_000;
/** How many calls of a cycle are kept. */
const MOST_CALLS = 16;

/**
 * The reasons of refusals that nobody wanted. A call that waited for a busy lock and gave up counts too; a call with
 * `wait: 0` does not, since it wanted no wait.
 */
const REFUSALS: ReadonlySet<RefusedReason> = new Set<RefusedReason>(['tooManyWaiters', 'store', 'lost', 'configuration']);

/**
 * How long ago at most a lock was lost, or its forced release was told, where both belong together, in milliseconds.
 */
const SAME_MS = 60_000;
/** How many forced releases are remembered until their losses are known. */
const MOST_NOTICES = 20;

/** The message in which a process tells the others of a lock that it released by force. */
export interface ForcedNotice extends ForcedBy {
  readonly key: string;
  /** The fence as `inspect` shows it. */
  readonly fence: number;
}

type LostEvent = Extract<LockEvent, { type: 'lost' }>;

type Facts = Omit<FoundIncident, 'process' | 'agoMs' | 'id' | 'count' | 'key' | 'name' | 'site'>;
type Kept = Facts &
  Pick<FoundIncident, 'id' | 'name' | 'site'> & {
    key: string;
    count: number;
    at: number;
    lastedMs?: number | undefined;
    forcedBy?: ForcedBy | undefined;
  };

/** Keeps the incidents of this process, for whoever asks later. Calls that go well cost nothing here. */
export class IncidentLog {
  readonly #clock: Clock;
  readonly #id = randomUUID().slice(0, 8);
  readonly #kept: Kept[] = [];
  /**
   * The incidents that further ones may be added to: refusals by name and reason, outages by the answer of the store,
   * and their ends.
   */
  readonly #repeated = new Map<string, Kept>();
  /** Forced losses of this process that nobody has explained yet, and notices that explain none yet. */
  readonly #unexplained: { readonly kept: Kept; readonly event: LostEvent }[] = [];
  readonly #notices: { readonly notice: ForcedNotice; readonly at: number }[] = [];
  readonly #onExplained: (event: LostEvent, forcedBy: ForcedBy) => void;
  #number = 0;

  /** `onExplained` is told who released a lock by force that was lost in this process. */
  constructor(clock: Clock, onExplained: (event: LostEvent, forcedBy: ForcedBy) => void) {
    this.#clock = clock;
    this.#onExplained = onExplained;
  }

  record(event: LockEvent): void {
    switch (event.type) {
      case 'lost':
        this.#lost(event, this.#add(event, { type: 'lost', fence: event.fence, reason: event.reason, lastedMs: event.heldMs }));
        break;
      case 'releaseFailed':
        this.#add(event, { type: 'releaseFailed', fence: event.fence, reason: event.error.code, error: textOf(event.error) });
        break;
      case 'forced':
        this.#add(event, { type: 'forced', fence: event.fence, forcedBy: event.forcedBy });
        break;
      case 'cycle':
        this.#add(event, { type: 'cycle', scope: event.scope, calls: event.calls.slice(0, MOST_CALLS).map(briefCall) });
        break;
      case 'storeUnavailable':
        this.#together(`outage ${failureCode(event.error)}`, event, {
          type: 'storeUnavailable',
          reason: event.error.code,
          error: textOf(event.error),
        });
        break;
      case 'storeAnswered':
        this.#together('answer', event, { type: 'storeAnswered', lastedMs: event.awayMs });
        break;
      case 'waited':
        if (event.gaveUp === 'busy' && !event.skipped) {
          this.#refused(event, 'busy');
        }
        break;
      case 'refused':
        if (REFUSALS.has(event.reason) && !event.skipped) {
          this.#refused(event, event.reason);
        }
        break;
    }
  }

  /**
   * A process released a lock by force, this one or another. The lock may have been lost here before or after this
   * message arrives.
   */
  heard(notice: ForcedNotice): void {
    const lost = this.#unexplained.find(({ kept, event }) => isSame(notice, event) && this.#isRecent(kept.at));
    if (lost) {
      this.#unexplained.splice(this.#unexplained.indexOf(lost), 1);
      this.#explain(lost.event, lost.kept, notice);
    } else {
      this.#notices.push({ notice, at: this.#clock.monotonic() });
      this.#notices.splice(0, this.#notices.length - MOST_NOTICES);
    }
  }

  /** The incidents of the last `ms` milliseconds, the last one last. */
  lately(ms: number): Omit<FoundIncident, 'process'>[] {
    const now = this.#clock.monotonic();
    const recent = this.#kept.filter(({ at }) => now - at <= Math.min(ms, KEPT_MS)).toSorted((one, other) => one.at - other.at);
    return recent.map((kept) => told(kept, now));
  }

  #lost(event: LostEvent, kept: Kept): void {
    if (event.reason !== 'forced') {
      return;
    }
    const heard = this.#notices.find(({ notice, at }) => isSame(notice, event) && this.#isRecent(at));
    if (heard) {
      this.#explain(event, kept, heard.notice);
    } else {
      this.#unexplained.push({ kept, event });
      this.#unexplained.splice(0, this.#unexplained.length - MOST_NOTICES);
    }
  }

  #explain(event: LostEvent, kept: Kept, notice: ForcedNotice): void {
    const { by, reason, process } = notice;
    kept.forcedBy = { by: by && brief(by), reason: reason && brief(reason), process: brief(process) };
    this.#onExplained(event, kept.forcedBy);
  }

  #isRecent(at: number): boolean {
    return this.#clock.monotonic() - at < SAME_MS;
  }

  #refused(event: Extract<LockEvent, { type: 'refused' | 'waited' }>, reason: RefusedReason): void {
    const holder = event.holder && brief(event.holder.by);
    this.#together(`${reason} ${event.name}`, event, { type: 'refused', reason, lastedMs: event.waitedMs, holder });
  }

  /**
   * Adds to the last incident of the kind, where that was not long ago: it has the facts of the last, and the longest
   * time.
   */
  #together(of: string, event: EventOfLock, facts: Facts & { readonly lastedMs?: number }): void {
    const { key, site, description } = event;
    const before = this.#repeated.get(of);
    const now = this.#clock.monotonic();
    if (before && now - before.at < TOGETHER_MS) {
      const lastedMs = facts.lastedMs === undefined ? undefined : Math.max(facts.lastedMs, before.lastedMs ?? 0);
      Object.assign(before, facts, { key, site: brief(site), description, at: now, count: before.count + 1, lastedMs });
    } else {
      this.#repeated.set(of, this.#add(event, facts));
    }
  }

  #add(event: EventOfLock, facts: Facts): Kept {
    const id = `${this.#id}${(this.#number++).toString(36)}`;
    const kept: Kept = { ...facts, ...namesOf(event), id, count: 1, at: this.#clock.monotonic() };
    this.#kept.push(kept);
    if (this.#kept.length > MOST_INCIDENTS) {
      this.#drop();
    }
    return kept;
  }

  /** Drops the oldest refusal: a storm of them must not hide a loss. Where there is none, the oldest incident. */
  #drop(): void {
    const oldest = this.#kept.findIndex(({ type }) => type === 'refused');
    const [dropped] = this.#kept.splice(Math.max(0, oldest), 1);
    for (const [of, kept] of this.#repeated) {
      if (kept === dropped) {
        this.#repeated.delete(of);
      }
    }
  }
}

/** The text of an error without its key, which the incident has. */
function textOf({ key, detail }: LockError): string {
  return detail.replaceAll(`Lock "${printable(key)}": `, '').slice(0, LONGEST_ERROR);
}

function briefCall(call: CycleCall): CycleCall {
  return { ...call, site: brief(call.site) };
}

/**
 * Whether a lock was lost by that release: a lease has the fence of its grant, and a call has one of the fences that
 * the grant reserved.
 */
function isSame({ key, fence }: ForcedNotice, event: LostEvent): boolean {
  return event.key === key && event.fence >= fence && event.fence < fence + MOST_FENCES;
}

function told({ at, lastedMs, ...incident }: Kept, now: number): Omit<FoundIncident, 'process'> {
  return { ...incident, lastedMs: lastedMs === undefined ? undefined : Math.round(lastedMs), agoMs: Math.round(now - at) };
}

/**
 * Incidents that were told when they were asked for, with their times by the clock of this process; the last one first.
 */
export function withTimes(found: readonly FoundIncident[], askedAt: number): LockIncident[] {
  return found
    .map(({ agoMs, ...incident }) => ({ ...incident, at: new Date(askedAt - agoMs) }))
    .toSorted((one, other) => other.at.getTime() - one.at.getTime());
}
