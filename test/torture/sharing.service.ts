import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock, DistributedSemaphore, LockService, currentLock, type Lock, type Permit } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lend } from './account.service.js';
import { Attempt } from './attempt.js';
import { now, type HistoryFile } from './history.js';
import type { Random } from '../support/random.js';

/** Counts of permits: which of them counts changes all the time, and at each moment from one process to another. */
const COUNTS = [3, 1, 6, 2, 4];
/** For how long a process has the same count, in milliseconds. */
const COUNT_MS = 1_700;

type Way = readonly [weight: number, run: () => Promise<void>];

/** The work of the workers that several do at once: with locks of read mode, and with permits. */
@Injectable()
export class SharingService {
  constructor(
    @Inject(LockService) private readonly locks: LockService,
    @Inject('HISTORY') private readonly history: HistoryFile,
    @Inject('RANDOM') private readonly random: Random,
    @Inject('LEND') private readonly lend: Lend,
  ) {}

  /** Runs one call that reads, by one of the ways. */
  read(key: string, other: string): Promise<void> {
    const reading = (attempt: Attempt, options = {}): Promise<void> =>
      this.locks.withLock(key, { ...options, mode: 'read' }, (lock) => this.#stay(lock, attempt));
    return this.#choose([
      [40, () => this.#try([key], 'read', (attempt) => this.look(key, attempt))],
      [10, () => this.#try([key], 'read', (attempt) => this.lookTwice(key, attempt))],
      [10, () => this.#readInside(key)],
      [10, () => this.#try([key, other].toSorted(), 'read', (attempt) => this.compare(key, other, attempt))],
      [10, () => this.#giveUp([key], 'read', reading)],
      [8, () => this.#abort([key], 'read', reading)],
      [6, () => this.#try([key], 'read', (attempt) => this.#byHand(this.locks.tryAcquire(key, { mode: 'read' }), attempt), 0)],
      [6, () => this.#try([key], 'read', (attempt) => this.#lendTicket(key, attempt))],
    ]);
  }

  /** Takes a permit, by one of the ways. */
  take(key: string): Promise<void> {
    const permits = COUNTS[(Math.floor(now() / COUNT_MS) + process.pid) % COUNTS.length] as number;
    const taking = (attempt: Attempt, options = {}): Promise<void> =>
      this.locks.withPermit(key, permits, options, (permit) => this.#stay(permit, attempt));
    return this.#choose([
      [40, () => this.#try([key], permits, (attempt) => this.serve(key, permits, attempt))],
      [10, () => this.#try([key], permits, (attempt) => this.#takeInside(key, permits, attempt))],
      [15, () => this.#giveUp([key], permits, taking)],
      [15, () => this.#abort([key], permits, taking)],
      [10, () => this.#try([key], permits, (attempt) => this.#byHand(this.locks.tryAcquirePermit(key, permits), attempt), 0)],
      [10, () => this.#try([key], permits, (attempt) => this.#byHand(this.locks.acquirePermit(key, permits), attempt))],
    ]);
  }

  @DistributedLock({ key: (key: string) => key, mode: 'read' })
  async look(_key: string, attempt: Attempt): Promise<void> {
    await this.#stay(currentLock() as Lock, attempt);
  }

  /** Children started in parallel, which run in parallel. */
  @DistributedLock({ key: (key: string) => key, mode: 'read' })
  async lookTwice(key: string, attempt: Attempt): Promise<void> {
    await attempt.inside(currentLock() as Lock, async () => {
      await Promise.all([0, 1].map(() => this.#enter(key, attempt, (inner) => this.look(key, inner))));
    });
  }

  async compare(key: string, other: string, attempt: Attempt): Promise<void> {
    await this.locks.withLock([key, other], { mode: 'read' }, (lock) => this.#stay(lock, attempt));
  }

  /** The permit does not pass through the method: its body has none to write down. */
  @DistributedSemaphore({ key: (key: string) => key, permits: (_key: string, permits: number) => permits })
  async serve(key: string, permits: number, attempt: Attempt): Promise<void> {
    await this.locks.withPermit(key, permits, (permit) => this.#stay(permit, attempt));
  }

  /** Reads in a lock of write mode. */
  async #readInside(key: string): Promise<void> {
    await Attempt.run(this.history, [key], undefined, (attempt) =>
      this.locks.withLock(key, (lock) => attempt.inside(lock, () => this.#enter(key, attempt, (inner) => this.look(key, inner)))),
    );
  }

  async #takeInside(key: string, permits: number, attempt: Attempt): Promise<void> {
    await this.locks.withPermit(key, permits, (permit) =>
      attempt.inside(permit, () =>
        Attempt.run(this.history, [key], attempt.owner, (inner) => this.serve(key, permits, inner), { shares: permits }),
      ),
    );
  }

  async #lendTicket(key: string, attempt: Attempt): Promise<void> {
    await this.locks.withLock(key, { mode: 'read' }, (lock) =>
      attempt.inside(lock, async () => {
        await this.lend(key, attempt.owner, lock.makeTicket(), 'read');
        await sleep(this.#sectionMs());
        attempt.trust(lock);
      }),
    );
  }

  #giveUp(keys: readonly string[], shares: 'read' | number, call: (attempt: Attempt, options: object) => Promise<void>): Promise<void> {
    const wait = this.random.whole(0, 400);
    return this.#try(keys, shares, (attempt) => call(attempt, { wait }), wait);
  }

  async #abort(
    keys: readonly string[],
    shares: 'read' | number,
    call: (attempt: Attempt, options: object) => Promise<void>,
  ): Promise<void> {
    const controller = new AbortController();
    const afterMs = this.random.between(0, 400);
    const timer = setTimeout(() => controller.abort(new Error('the client has gone')), afterMs);
    await this.#try(keys, shares, (attempt) => call(attempt, { signal: controller.signal }), afterMs);
    clearTimeout(timer);
  }

  async #byHand(asked: Promise<Lock | Permit | null>, attempt: Attempt): Promise<void> {
    const held = await asked;
    if (!held) {
      return;
    }
    try {
      await held.run(() => this.#stay(held, attempt));
    } finally {
      await held.release();
    }
    // A handle has no call that could reject: its holder asks.
    if (held.signal.aborted) {
      throw held.signal.reason;
    }
  }

  async #enter(key: string, outer: Attempt, call: (attempt: Attempt) => Promise<void>): Promise<void> {
    await Attempt.run(this.history, [key], outer.owner, call, { shares: 'read' });
  }

  #try(keys: readonly string[], shares: 'read' | number, call: (attempt: Attempt) => Promise<void>, waitMs?: number): Promise<void> {
    return Attempt.run(this.history, [...new Set(keys)], undefined, call, { shares, ...(waitMs === undefined ? {} : { waitMs }) });
  }

  async #stay(held: Lock | Permit, attempt: Attempt): Promise<void> {
    await attempt.inside(held, () => sleep(this.#sectionMs()));
  }

  /** Mostly long enough for others to come in beside it; some last longer than a lease. */
  #sectionMs(): number {
    return this.random.chance(0.01) ? this.random.between(400, 1_500) : this.random.between(5, 80);
  }

  async #choose(ways: readonly Way[]): Promise<void> {
    let choice = this.random.between(0, 100);
    for (const [weight, run] of ways) {
      if ((choice -= weight) < 0) {
        return run();
      }
    }
  }
}
