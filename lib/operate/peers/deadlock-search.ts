import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Acquisition } from '../../core/entering/acquisition.js';
import type { Clock } from '../../core/seam/time.js';
import type { Lease } from '../../core/leases/lease.js';
import type { Leases } from '../../core/leases/leases.js';
import type { Lines } from '../../core/leases/lines.js';
import { MOST_FENCES, type StoredLock } from '../../core/seam/lock-store.js';
import { OncePerKey } from '../../core/words/once-per-key.js';
import type { Messenger } from './messenger.js';
import { cycleCallOf, yielding, MOST_STEPS, type Probe, type ProbeStep } from './probe-message.js';
import { brief } from './shape.js';

/**
 * How many probes of a process wait for an answer of the store at most: further probes are dropped, and sent anew
 * later.
 */
const MOST_CHASES = 64;
/** How many probes are sent each time that calls are looked at. */
const MOST_STARTED = 32;

/**
 * The calls of this process that are inside a lock and wait for another one, in whichever store: a cycle may lead
 * through several stores.
 */
const WAITING = new Map<Acquisition, DeadlockSearch>();

interface DeadlockSearchParts {
  readonly clock: Clock;
  readonly leases: Leases;
  readonly lines: Lines;
  /** For how long a call waits before it looks for a deadlock, in milliseconds. */
  readonly afterMs: number;
  /** The stored facts of a lock; may reject. */
  readonly inspect: (key: string) => Promise<StoredLock | null>;
  readonly messenger: Messenger;
}

/**
 * Finds calls of several processes that wait for each other: edge chasing for the AND model (Chandy, Misra, Haas:
 * Distributed deadlock detection, 1983). Only a call that is inside a lock and has waited for another one for a second
 * sends probes. A writer waits for all readers, and a permit is waited for where one holder has it.
 *
 * A cycle that a probe has found may have been none: its edges were seen one after the other. So the probe goes around
 * once more. A wait and a hold that are the same in both laps lasted all the while between the laps, so all of them
 * existed at the end of the first lap.
 *
 * Every process that finds the cycle chooses the same call to give way: the one that got its lock last.
 */
export class DeadlockSearch {
  readonly #parts: DeadlockSearchParts;
  /** When each of the calls looks next. */
  readonly #due = new Map<Acquisition, number>();
  readonly #seen = new OncePerKey();
  #chases = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: DeadlockSearchParts) {
    this.#parts = parts;
  }

  /** A call that is inside a lock begins to wait for another lock, or goes on to wait. */
  watch(acquisition: Acquisition): void {
    if (!this.#due.has(acquisition)) {
      WAITING.set(acquisition, this);
      this.#due.set(acquisition, this.#next());
      this.#arm();
    }
  }

  /** A call has the lock that it waited for, or gave up. */
  forget(acquisition: Acquisition): void {
    if (this.#due.delete(acquisition)) {
      WAITING.delete(acquisition);
    }
  }

  /** A probe asks for a lock of this process. */
  heard(probe: Probe): void {
    for (const lease of this.#parts.leases.running) {
      if (lease.key === probe.key && lease.storedFence === probe.fence) {
        reach(probe, lease, undefined);
      }
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** The probe is at a call of this search that waits inside `lease`, which the call before waits for. */
  step(probe: Probe, blocked: Acquisition, lease: Lease): void {
    const call = blocked.inCycle(lease, blocked.waitedFor as string);
    const step = { ...call, site: brief(call.site), wait: blocked.waitId, fence: lease.fence };
    const { id, lap, origin, path, cycle } = probe;
    if (lap > 1 && !isSame(cycle[path.length], step)) {
      return;
    }
    if (lap === 3 && step.wait === yielding(cycle).wait) {
      void this.#giveWay(blocked, lease, probe);
      return;
    }
    const isBack = step.wait === origin;
    // A probe takes many ways where many calls wait inside one lock: each call passes it on once.
    if ((path.length + 1 >= MOST_STEPS && !isBack) || !this.#seen.isNew(`${id} ${lap} ${step.wait}`)) {
      return;
    }
    const further = { ...probe, path: [...path, step] };
    if (isBack) {
      this.#cameBack(further, blocked, lease);
    } else {
      void this.#chase(further, blocked);
    }
  }

  /**
   * Bound to the context in which the store was opened: the timer must not keep the context of the call that armed it.
   */
  readonly #look = AsyncResource.bind((): void => {
    this.#timer = undefined;
    const now = this.#parts.clock.monotonic();
    const due = [...this.#due].filter(([, at]) => at <= now).slice(0, MOST_STARTED);
    for (const [acquisition] of due) {
      // At the end of the map: the others come first the next time.
      this.#due.delete(acquisition);
      this.#due.set(acquisition, this.#next());
      void this.#chase(
        { kind: 'probe', id: randomUUID(), lap: 1, origin: acquisition.waitId, key: '', fence: 0, path: [], cycle: [] },
        acquisition,
      );
    }
    if (this.#due.size > 0) {
      this.#arm();
    }
  });

  #arm(): void {
    this.#timer ??= setTimeout(this.#look, this.#parts.afterMs / 4).unref();
  }

  /** Not all at the same time: one search is enough for all calls of a cycle. */
  #next(): number {
    const { clock, afterMs } = this.#parts;
    return clock.monotonic() + afterMs * (0.8 + 0.4 * Math.random());
  }

  /** Takes the probe to the holder of the lock that a call of this search waits for. */
  async #chase(probe: Probe, waiting: Acquisition): Promise<void> {
    const { messenger } = this.#parts;
    const key = waiting.waitedFor as string;
    const here = this.#leaseFor(waiting, key);
    if (here) {
      reach(probe, here, waiting);
    }
    // Others may be inside by a ticket. A call that waits inside a lease waits for calls of that lease only.
    const isAllHere = waiting.waitedInside || (here && !here.hasTicket);
    if (isAllHere || this.#chases >= MOST_CHASES) {
      return;
    }
    this.#chases++;
    try {
      const stored = await this.#parts.inspect(key);
      // A permit is free when any of its holders leaves: of several, none is surely waited for.
      const isWaitedFor = typeof stored?.shares !== 'number' || stored.holds === 1;
      for (const process of isWaitedFor ? (stored?.processes ?? []) : []) {
        messenger.send({ ...probe, key, fence: (stored as StoredLock).fence }, process);
      }
    } catch {
      // The store is away: the search begins anew later.
    } finally {
      this.#chases--;
    }
  }

  /** The lease of this process that a call waits for. */
  #leaseFor({ frame, waitedInside }: Acquisition, key: string): Lease | undefined {
    const { leases, lines } = this.#parts;
    return waitedInside ? leases.running.find(({ calls }) => calls.hasWaiting(frame)) : lines.lineOf(key)?.lease;
  }

  #cameBack(probe: Probe, origin: Acquisition, lease: Lease): void {
    const cycle = probe.path;
    if (probe.lap === 1) {
      void this.#chase({ ...probe, lap: 2, path: [], cycle }, origin);
    } else if (probe.lap === 2 && yielding(cycle).wait === probe.origin) {
      void this.#giveWay(origin, lease, { ...probe, cycle });
    } else if (probe.lap === 2) {
      void this.#chase({ ...probe, lap: 3, path: [], cycle }, origin);
    }
  }

  async #giveWay(acquisition: Acquisition, lease: Lease, { cycle }: Probe): Promise<void> {
    const { waitId } = acquisition;
    const next = cycle[(cycle.findIndex(({ wait }) => wait === waitId) + 1) % cycle.length] as ProbeStep;
    const isReal = await this.#agrees(acquisition.waitedFor as string, lease, next).catch(() => false);
    if (!isReal || !this.#due.has(acquisition) || acquisition.waitId !== waitId || acquisition.withdrawn) {
      return;
    }
    const calls = cycle.map(cycleCallOf);
    acquisition.withdraw(acquisition.refused(acquisition.waitedFor as string, 'cycle', undefined, { scope: 'fleet', calls }));
  }

  /**
   * Whether the store agrees with a cycle, which may be a stranger's: the next call has the lock that this call waits
   * for, and somebody waits for `lease`, which this call is inside of. A lock of another store is not checked, nor is a
   * wait for a lock that others are inside of too.
   */
  async #agrees(key: string, lease: Lease, next: ProbeStep): Promise<boolean> {
    const { leases, lines, inspect } = this.#parts;
    const wanted = await inspect(key);
    if (!wanted || next.holds !== key || next.fence < wanted.fence || next.fence >= wanted.fence + MOST_FENCES) {
      return false;
    }
    if (!leases.running.includes(lease) || !lines.keepQueues || lines.isWantedHere(lease)) {
      return true;
    }
    const held = await inspect(lease.key);
    return held !== null && (held.waiters.length > 0 || (lease.hasTicket && held.holds > 1));
  }
}

/**
 * The probe is at a lock that this process holds: it goes on from every call that waits inside the lock. `from` is the
 * call of this process that the probe came from.
 */
function reach(probe: Probe, lease: Lease, from: Acquisition | undefined): void {
  for (const [blocked, search] of lease.calls.isEmpty ? [] : [...WAITING]) {
    if (lease.calls.isHeldUp(from?.frame, blocked.frame)) {
      search.step(probe, blocked, lease);
    }
  }
}

/** Whether a step of the second lap equals the step of the first lap: the same wait, inside the same hold. */
function isSame(before: ProbeStep | undefined, now: ProbeStep): boolean {
  return before !== undefined && before.wait === now.wait && before.holds === now.holds && before.fence === now.fence;
}
