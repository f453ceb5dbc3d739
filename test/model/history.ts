import type { HoldRecord, StoredLock } from '../../lib/core/lock-store.js';
import type { QueuedPlace } from '../../lib/stores/kit/key-state.js';
import type { TableReply } from '../../lib/stores/kit/lock-table.js';
import { Idleness } from './idleness.js';
import { Order } from './order.js';
import type { Simulation } from './simulation.js';

/** How long a server remembers a release. */
const DONE_MS = 10_000;

/** What a process believes of its lease. */
export interface Trust {
  readonly hold: HoldRecord;
  readonly process: string;
  until: number;
  ended: boolean;
}

/** What happened in a run, seen from everywhere at once. Throws where it may not have happened. */
export class History {
  /** Without faults, the order is checked, and the bounds are a few messages. */
  readonly faults: number[] = [];
  /** The hold that the server granted last, and whose it is. */
  last = { fence: 0, hold: '', process: '' };
  readonly #order = new Order();
  readonly #idleness = new Idleness();
  /** By hold. */
  readonly #fences = new Map<string, number>();
  readonly #grantedAt = new Map<string, number>();
  readonly #releasedAt = new Map<string, number>();
  #trusts: Trust[] = [];
  /** What was granted before may overlap with what came after it: the server has forgotten it, or was told to. */
  #pardonedAt = -Infinity;

  constructor(
    readonly simulation: Simulation,
    readonly trace: string[] | undefined,
  ) {}

  get #now(): number {
    return this.simulation.timeline.now;
  }

  note(text: () => string): void {
    this.trace?.push(`${this.#now.toFixed(1)} ${text()}`);
  }

  fault(name: string): void {
    this.note(() => `fault: ${name}`);
    this.faults.push(this.#now);
  }

  pardon(): void {
    this.#pardonedAt = this.#now;
  }

  attempted(hold: HoldRecord, process: string, place: QueuedPlace | undefined, reply: TableReply, passed: boolean): void {
    this.note(() => `${passed ? 'pass' : 'acquire'} ${hold.id} at ${place?.name} polls=${place?.polls}: ${JSON.stringify(reply)}`);
    if (reply.fence === undefined) {
      if (reply.joined && place) {
        this.#order.joined(place);
      }
    } else if (this.#fences.get(hold.id) !== reply.fence) {
      this.#granted(hold, process, reply.fence);
      if (this.faults.length === 0) {
        this.#order.granted(process, place, passed);
      }
    }
  }

  released(hold: HoldRecord): void {
    this.note(() => `release ${hold.id}`);
    this.#releasedAt.set(hold.id, this.#releasedAt.get(hold.id) ?? this.#now);
  }

  left(name: string): void {
    this.note(() => `leave ${name}`);
    this.#order.left(name);
  }

  turned(place: string): void {
    this.note(() => `turn ${place}`);
    this.#idleness.turned(place);
  }

  skipped(place: string): void {
    if (this.faults.length === 0) {
      throw new Error(`the place ${place} in the queue was lost without a fault`);
    }
  }

  observed(stored: StoredLock | null): void {
    this.#idleness.observed(this.simulation, stored?.remainingMs);
  }

  /** A process trusts its lease until then; at most one owner may. */
  trusts(trust: Trust, until: number): void {
    trust.until = Math.max(trust.until, until);
    this.note(() => `${trust.process} trusts ${trust.hold.id} until ${trust.until.toFixed(1)}`);
    this.#trusts = this.#trusts.filter((other) => other !== trust && !other.ended && other.until > this.#now);
    for (const other of this.#trusts) {
      if ([other, trust].every(({ hold }) => (this.#grantedAt.get(hold.id) ?? 0) > this.#pardonedAt)) {
        throw new Error(`two trusting owners: ${other.hold.id} until ${other.until.toFixed(1)} and ${trust.hold.id}`);
      }
    }
    this.#trusts.push(trust);
  }

  ended(trust: Trust): void {
    this.note(() => `${trust.process} ends ${trust.hold.id}`);
    trust.ended = true;
  }

  #granted(hold: HoldRecord, process: string, fence: number): void {
    if (fence <= this.last.fence) {
      throw new Error(`fences do not rise: ${fence} after ${this.last.fence}`);
    }
    if ((this.#releasedAt.get(hold.id) ?? -Infinity) > Math.max(this.#now - DONE_MS, this.#pardonedAt)) {
      throw new Error(`${hold.id} was granted after its own release`);
    }
    this.last = { fence, hold: hold.id, process };
    this.#fences.set(hold.id, fence);
    this.#grantedAt.set(hold.id, this.#grantedAt.get(hold.id) ?? this.#now);
  }
}
