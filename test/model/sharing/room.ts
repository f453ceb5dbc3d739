import type { HoldRecord, Shares } from '../../../lib/core/seam/lock-store.js';
import { sharesOfPlace } from '../../../lib/core/seam/shares.js';
import type { QueuedPlace } from '../../../lib/kit/key-state.js';
import type { TableReply } from '../../../lib/kit/lock-table.js';
import { CLAIM_MS } from '../../../lib/kit/protocol.js';
import { mayShare } from '../../explorer/sharing.js';

interface Member {
  readonly shares: Shares | undefined;
  endsAt: number;
}

/** Those who share one key, as the server's answers tell: each answer is checked against what they may do. */
export class Room {
  readonly #now: () => number;
  /** Whether nothing has gone wrong, so that the order of the queue holds. */
  readonly #isCalm: () => boolean;
  /** By hold and owner. */
  readonly #holds = new Map<string, Member>();
  /** Places that have room reserved. */
  readonly #claims = new Map<string, Member>();
  /** When the places that queue came. */
  readonly #queue = new Map<string, number>();
  readonly #released = new Map<string, boolean>();
  #fence = 0;
  #lastFence = 0;

  constructor(now: () => number, isCalm: () => boolean) {
    this.#now = now;
    this.#isCalm = isCalm;
  }

  /** When the writer came that has queued longest; undefined where none does. */
  get writerSince(): number | undefined {
    return [...this.#queue].find(([name]) => sharesOfPlace(name) === undefined)?.[1];
  }

  get holds(): readonly string[] {
    this.#tidy();
    return [...this.#holds.keys()];
  }

  woken({ name }: QueuedPlace): void {
    this.#queue.delete(name);
    this.#claims.set(name, { shares: sharesOfPlace(name), endsAt: this.#now() + CLAIM_MS });
  }

  left(name: string): void {
    this.#queue.delete(name);
    this.#claims.delete(name);
  }

  acquired(hold: HoldRecord, place: QueuedPlace | undefined, reply: TableReply, overtakes: boolean): void {
    this.#tidy();
    const name = nameOf(hold);
    const before = [...this.#queue.keys()];
    const isNext = (before[0] ?? place?.name) === place?.name;
    const { fence } = reply;
    if (fence === undefined) {
      const { joined, otherKind, late } = reply;
      if (joined && place) {
        this.#queue.set(place.name, this.#now());
      }
      const isBusy = otherKind !== undefined || late === true || this.#released.has(name) || !isNext || !this.#fits(hold.shares);
      expect(isBusy || !this.#isCalm(), `${name} waits, although there is room and nobody is before it`);
      return;
    }
    expect(!this.#released.has(name), `${name} came in after its own release`);
    const isIn = this.#holds.has(name);
    const isReserved = place !== undefined && this.#claims.delete(place.name);
    if (isIn) {
      expect(fence === this.#fence, `${name} is in, and asked again: it has another fence`);
    } else {
      expect(this.#fits(hold.shares), `${name} came in, and there was no room`);
      expect(overtakes || isReserved || isNext || !this.#isCalm(), `${name} came in before ${before[0]}, which had queued before it`);
      const isBeside = hold.shares !== undefined && this.#holds.size > 0;
      expect(isBeside ? fence === this.#fence : fence > this.#lastFence, `${name} has the fence ${fence}, after ${this.#lastFence}`);
      this.#lastFence = Math.max(this.#lastFence, fence + hold.fences - 1);
      this.#fence = fence;
    }
    this.left(place?.name ?? '');
    this.#lengthen(hold);
  }

  renewed(hold: HoldRecord, held: boolean): void {
    this.#tidy();
    const isIn = this.#holds.has(nameOf(hold)) && hold.fence === this.#fence;
    expect(held === isIn, `the renewal of ${nameOf(hold)} was answered ${held}`);
    if (held) {
      this.#lengthen(hold);
    }
  }

  released(hold: HoldRecord, answer: boolean): void {
    this.#tidy();
    const name = nameOf(hold);
    const first = hold.unanswered ? this.#released.get(name) : undefined;
    expect(answer === (first ?? this.#holds.has(name)), `the release of ${name} was answered ${answer}`);
    if (hold.unanswered && first === undefined) {
      this.#released.set(name, answer);
    }
    if (first === undefined) {
      this.#holds.delete(name);
    }
  }

  /** Whoever leaves wakes all that fit: the first in the queue does not wait while there is room for it. */
  look(): void {
    this.#tidy();
    const [head] = this.#queue.keys();
    expect(head === undefined || !this.#isCalm() || !this.#fits(sharesOfPlace(head)), `${head} was not woken, although there is room`);
  }

  #fits(shares: Shares | undefined): boolean {
    const others = [...this.#holds.values(), ...this.#claims.values()].map((member) => member.shares);
    return others.every((other) => other !== undefined) && mayShare(shares, others);
  }

  #lengthen({ id, owner, shares, ttlMs }: HoldRecord): void {
    const name = nameOf({ id, owner });
    this.#holds.set(name, { shares, endsAt: Math.max(this.#holds.get(name)?.endsAt ?? 0, this.#now() + ttlMs) });
  }

  #tidy(): void {
    for (const members of [this.#holds, this.#claims]) {
      for (const [name, { endsAt }] of members) {
        if (endsAt <= this.#now()) {
          members.delete(name);
        }
      }
    }
  }
}

function nameOf({ id, owner }: Pick<HoldRecord, 'id' | 'owner'>): string {
  return `${id} of ${owner}`;
}

function expect(isRight: boolean, what: string): void {
  if (!isRight) {
    throw new Error(what);
  }
}
