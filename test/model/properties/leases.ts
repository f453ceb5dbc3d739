import { MOST_FENCES } from '../../../lib/core/seam/lock-store.js';
import { leaseDeadline } from '../../../lib/core/seam/time.js';
import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import type { LockTrouble } from '../../../lib/core/words/lock-event.js';
import type { LockedCall } from './locked-call.js';
import type { Process } from './process.js';
import { featuresOf } from './features.js';
import { nameIn, type World } from './world.js';

/** The longest time from a renewal that the store carries out to the next one's answer, besides a third of the ttl. */
const ROUND_TRIP_MS = 10;

/** The wall clock is read in whole milliseconds. */
const WALL_GRAIN_MS = 1;

/** Renewals go before notifications, which follow in the next turn of the event loop: its timer takes a millisecond. */
const TURN_MS = 2;

/** The belief of a process about a hold, by the answers that reached it. */
interface Belief {
  readonly process: Process;
  /** The call that asked for it. */
  readonly by: string;
  readonly id: string;
  readonly key: string;
  /** The fence by which the store knows the lock: the first of its block. */
  readonly storedFence: number;
  /** How many it may serve. */
  readonly fences: number;
  readonly isJoined: boolean;
  /** Until when it may be trusted, by the clock of the process; and until when core knows that it may. */
  deadline: number;
  knownDeadline: number;
  /** The ttl that was granted last. */
  ttlMs: number;
  /** When the last command was sent whose answer confirmed the lease. */
  confirmedAt: number;
  /** Whether the store answered that the lock is gone; `late`: when core perhaps no longer waited for the answer. */
  refuted: 'no' | 'late' | 'yes';
  /** Whether the process was notified that it was forced. */
  forced: boolean;
}

/** The lease of one call on a hold: the call that asked for it, or a call that its lease serves later. */
export interface Lease {
  readonly belief: Belief;
  readonly call: LockedCall;
  readonly fence: number;
  /** The library has told of the loss. */
  lost: boolean;
  /** A transaction kept it when it was lost: the code of its call had ended. */
  lostKept?: boolean;
}

/** Who may trust which lease, and whether they do. */
export class Leases {
  readonly #world: World;
  /** By the ids of holds and the fences at which they were granted. */
  readonly #beliefs = new Map<string, Belief>();
  readonly #leases = new Map<string, Lease>();
  readonly #grantedAt = new Map<string, number>();
  /** The forced releases that processes were told of, also before they knew of the grant. */
  readonly #forced = new Set<string>();
  /** Flushes, operators and clocks that jumped ahead: what was granted before may overlap with what comes after. */
  readonly #pardons: { readonly key: string; readonly at: number }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  of(call: LockedCall, key: string): Lease | undefined {
    const root = call.roots.get(key) ?? call;
    return this.find(root.by, key, call.lock?.fenceOf(key) ?? 0);
  }

  /** The call that has a hold now, where it was served by the lease of another call. */
  holderOf(id: string): LockedCall | undefined {
    return [...this.#leases.values()].findLast(({ belief }) => belief.id === id)?.call;
  }

  /** The lease that a call obtained by itself. */
  find(by: string, key: string, fence: number): Lease | undefined {
    return this.#leases.get(nameOf(by, key, fence));
  }

  /** Whether the library has told that a lease was lost which this call obtained, or was served by. */
  wasLost(call: LockedCall): boolean {
    return [...this.#leases.values()].some((lease) => lease.call === call && lease.lost);
  }

  /** Whether one of them was forced, as its process knows. */
  wasForced(call: LockedCall): boolean {
    return [...this.#leases.values()].some((lease) => lease.call === call && lease.lost && lease.belief.forced);
  }

  /** The store granted a fence, though perhaps nobody will hear of it. */
  granted(key: string, fence: number): void {
    const name = `${key} ${fence}`;
    this.#grantedAt.set(name, this.#grantedAt.get(name) ?? this.#world.now);
  }

  /** The store confirmed a lease; `isLate`: when core perhaps no longer waited for the answer. */
  confirmed(process: Process, hold: HoldRecord, storedFence: number, sentAt: number, isLate: boolean): void {
    const { key, by, id, ttlMs, fence, fences } = hold;
    // A hold whose lease ran out before an answer arrived is granted anew.
    const name = `${id} ${storedFence}`;
    const belief: Belief = this.#beliefs.get(name) ?? {
      process,
      by,
      id,
      key,
      storedFence,
      // An acquire asks for a fence, and a join says which one it means.
      isJoined: fence !== 0,
      fences: fence === 0 ? fences : MOST_FENCES,
      deadline: 0,
      knownDeadline: 0,
      ttlMs,
      confirmedAt: sentAt,
      refuted: 'no',
      forced: this.#forced.has(nameOf(process.id, key, storedFence)),
    };
    this.#beliefs.set(name, belief);
    const deadline = leaseDeadline(process.clock.at(sentAt), ttlMs);
    belief.deadline = Math.max(belief.deadline, deadline);
    // A lease that is over stays so, also where the answer was on its way by then.
    const isOver = belief.knownDeadline > 0 && process.clock.monotonic() >= belief.knownDeadline;
    if (!isLate && (hold.lingering || !isOver)) {
      belief.knownDeadline = Math.max(belief.knownDeadline, deadline);
      belief.ttlMs = ttlMs;
      belief.confirmedAt = sentAt;
    }
  }

  /** The library says that a call has a lock: by a hold of its own, or served by the lease of the call before. */
  began(by: string, key: string, fence: number): void {
    const call = this.#world.callNamed(by);
    const belief = [...this.#beliefs.values()].findLast(
      (each) =>
        // A probe at the end is no call, and nothing serves it.
        (call ? each.process === call.process : each.by === by) &&
        each.key === key &&
        each.storedFence <= fence &&
        fence < each.storedFence + each.fences &&
        (!each.isJoined || each.by === by),
    );
    if (!belief) {
      this.#world.fail(`${by} has "${key}" at fence ${fence}, which the store did not grant.`);
      return;
    }
    this.#leases.set(nameOf(by, key, fence), { belief, call: call as LockedCall, fence, lost: false });
    // Core did wait for a grant that came late.
    belief.knownDeadline ||= belief.deadline;
    if (fence !== belief.storedFence && !belief.isJoined) {
      call?.uses(featuresOf('relay'));
      if (!call?.call.renew) {
        this.#world.fail(`${by} has a fixed lease on "${key}" that was granted to a call before, of which less than its ttl is left.`);
      }
      this.#world.attempt(() => this.#world.server.served(key, belief.process.id));
    }
  }

  gone({ id }: HoldRecord, isLate: boolean): void {
    for (const belief of this.#beliefs.values()) {
      if (belief.id === id && belief.refuted !== 'yes') {
        belief.refuted = isLate ? 'late' : 'yes';
      }
    }
  }

  forced(process: Process, key: string, fence: number): void {
    this.#forced.add(nameOf(process.id, key, fence));
    for (const belief of this.#beliefs.values()) {
      if (belief.process === process && belief.key === key && belief.storedFence === fence) {
        belief.forced = true;
      }
    }
  }

  pardon(...keys: readonly string[]): void {
    this.#world.faults.happened(this.#world.now);
    this.#pardons.push(...keys.map((key) => ({ key, at: this.#world.now })));
  }

  /** Every loss has a cause, and is told once. */
  troubled(process: Process, trouble: LockTrouble): void {
    if (trouble.type !== 'lost') {
      return;
    }
    const { key, by, fence, reason } = trouble;
    const lease = this.find(by, key, fence);
    this.#world.note(() => `${process.id}: ${by} lost ${key} at ${fence}: ${reason}`);
    if (!lease || lease.lost) {
      this.#world.fail(`The loss of "${key}" at fence ${fence} was told ${lease ? 'twice' : 'of a lock that nobody had'}.`);
      return;
    }
    lease.lost = true;
    lease.lostKept = trouble.kept || this.#world.callNamed(by)?.isLeftToTransaction === true;
    if ((reason === 'shutdown' && process.isClosing) || (reason === 'released' && lease.call.hasToGiveUp)) {
      return;
    }
    if (!(reason === 'forced' ? lease.belief.forced : lease.belief.refuted !== 'no' || this.#mayHaveRunOut(lease))) {
      this.#world.fail(`"${key}" at fence ${fence} was lost (${reason}) without a cause.`);
    }
  }

  /**
   * Whether its time is over, also where its process slept through it, and nobody could renew it: the process was kept
   * from the store until less than one repetition before the end.
   */
  #mayHaveRunOut(lease: Lease): boolean {
    const { process, knownDeadline, ttlMs, confirmedAt } = lease.belief;
    const sleptMs = process.clock.sleptBefore(process.now) - process.clock.sleptBefore(confirmedAt);
    const repeatMs = ttlMs / 10 + ROUND_TRIP_MS;
    const endedAt = process.clock.at(process.disturbedUntil);
    const isCaused = this.#world.scenario.isHard ? endedAt + repeatMs + sleptMs >= knownDeadline : process.disturbedUntil >= confirmedAt;
    return process.clock.monotonic() + sleptMs >= knownDeadline && (isFixed(lease) || isCaused);
  }

  /** Looks at every lock that running code sees, or that a transaction keeps. */
  check(inside: Iterable<LockedCall>, kept: Iterable<LockedCall>): void {
    const trusted: Lease[] = [];
    for (const call of [...inside, ...kept]) {
      const isHeld = call.lock?.isHeld() ?? false;
      this.#checkSignal(call);
      if (!isHeld && !call.isInside && call.isSurelyKept && this.#isSound(call)) {
        this.#world.fail(`${call.by} has left its lock before its transaction has ended.`);
      }
      for (const key of call.call.keys) {
        const lease = this.of(call, key);
        if (lease && !call.isReleased) {
          this.#checkTold(lease, call, key, isHeld);
        }
        // Code that sleeps trusts nothing.
        if (isHeld && lease && !call.process.clock.isAsleepAt(this.#world.now)) {
          trusted.push(lease);
        }
      }
    }
    for (const [at, lease] of trusted.entries()) {
      for (const other of trusted.slice(at + 1)) {
        const { key, process } = lease.belief;
        if (other.belief.key === key && other.fence !== lease.fence && !this.#isPardoned(lease, other)) {
          this.#world.fail(
            `Two owners trust "${key}": fence ${lease.fence} in ${process.id}, ${other.fence} in ${other.belief.process.id}.`,
          );
        }
      }
    }
  }

  /**
   * Its signal tells of losses of its own locks only. A leader may be asked to stop, and which lease a guest is in is
   * not known.
   */
  #checkSignal(call: LockedCall): void {
    if (!call.signal?.aborted || call.call.how === 'lead' || call.isGuest) {
      return;
    }
    const isLost = call.call.keys.some((key) => {
      const lease = this.of(call, key);
      return !lease || lease.lost || (call.roots.get(key) ?? call).call.maxHold !== undefined;
    });
    if (!isLost) {
      this.#world.fail(`${call.by} was told of a loss, and has lost nothing.`);
    }
  }

  /** Whether nothing is known against its locks. */
  #isSound(call: LockedCall): boolean {
    const { clock, isClosing } = call.process;
    const now = clock.monotonic();
    const isSound = ({ lost, belief }: Lease): boolean => !lost && belief.refuted === 'no' && !belief.forced && now < belief.deadline;
    return !isClosing && !clock.hasJumped && call.call.keys.every((key) => isSound(this.of(call, key) ?? ({ lost: true } as Lease)));
  }

  #checkTold({ fence, call: root, belief, lost }: Lease, call: LockedCall, key: string, isHeld: boolean): void {
    const { process, deadline, refuted, forced } = belief;
    const now = process.clock.monotonic();
    if (isHeld && now > root.mustEndAt + ROUND_TRIP_MS) {
      this.#world.fail(`${call.by} has "${key}" at fence ${fence}, though the maxHold of ${root.by} is over, and a ttl too.`);
    }
    if (isHeld && (call.lock?.remainingMs() ?? 0) > deadline - now + WALL_GRAIN_MS) {
      this.#world.fail(`${call.by} trusts "${key}" at fence ${fence} for longer than the store has granted it.`);
    }
    if (isHeld && (now >= deadline || refuted === 'yes' || forced || lost)) {
      this.#world.fail(`${call.by} trusts "${key}" at fence ${fence}, though its lease is over.`);
    }
    const shouldKnow = lost || (now > deadline + ROUND_TRIP_MS && process.pausedUntil + TURN_MS < this.#world.now);
    if (shouldKnow && !call.signal?.aborted) {
      this.#world.fail(`${call.by} was not told that it lost "${key}" at fence ${fence}.`);
    }
  }

  #isPardoned(lease: Lease, other: Lease): boolean {
    const [older, newer] = this.#time(lease) < this.#time(other) ? [lease, other] : [other, lease];
    const { belief, call } = older;
    const { process } = belief;
    if (process.clock.sleptBefore(this.#world.now) > 0 && process.clock.wasSetBack) {
      return true;
    }
    return this.#pardons.some(({ key, at }) => {
      const isSound = process.disturbedUntil < at && !isFixed(older);
      const limitMs = isSound ? call.longestTtlMs / 3 + ROUND_TRIP_MS : call.longestTtlMs;
      return key === belief.key && at >= this.#time(older) && at <= this.#time(newer) && this.#world.now <= at + limitMs;
    });
  }

  #time({ belief: { key, storedFence } }: Lease): number {
    return this.#grantedAt.get(`${key} ${storedFence}`) ?? 0;
  }
}

function nameOf(by: string, key: string, fence: number): string {
  return `${nameIn(by)} ${key} ${fence}`;
}

/** Whether it is not renewed, or not for ever. */
function isFixed({ call: { call } }: Lease): boolean {
  return !call.renew || call.maxHold !== undefined;
}
