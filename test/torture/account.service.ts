import { Inject, Injectable } from '@nestjs/common';
import { currentLock, DistributedLock, LockService, type Lock, type LockMode } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import { Attempt } from './attempt.js';
import { NESTED_LEASES } from './faults.js';
import type { HistoryFile } from './history.js';
import type { Random } from '../support/random.js';
import type { Registers } from './registers.js';

/** Lets a lock's ticket be used in another process; resolves when that one has left, or after a while. */
export type Lend = (key: string, owner: string, ticket: string, mode?: LockMode) => Promise<void>;

/** The work of the workers with locks. Each method is one way to use the library. */
@Injectable()
export class AccountService {
  constructor(
    @Inject(LockService) private readonly locks: LockService,
    @Inject('HISTORY') private readonly history: HistoryFile,
    @Inject('REGISTERS') private readonly registers: Registers,
    @Inject('RANDOM') private readonly random: Random,
    @Inject('LEND') private readonly lend: Lend,
  ) {}

  /** Runs one call on a key, by one of the ways. */
  async use(key: string, other: string): Promise<void> {
    const ways = [
      [29, () => this.#try([key], (attempt) => this.credit(key, attempt))],
      [15, () => this.#try([key], (attempt) => this.creditTwice(key, attempt))],
      [10, () => this.#try([key], (attempt) => this.creditInParallel(key, attempt))],
      [8, () => this.#try([key, other].toSorted(), (attempt) => this.transfer(key, other, attempt))],
      [8, () => this.giveUpSoon(key, this.random.whole(0, 150))],
      [8, () => this.abort(key, this.random.between(0, 200))],
      [8, () => this.#try([key], (attempt) => this.tryOnce(key, attempt), 0)],
      [6, () => this.#try([key], (attempt) => this.byHand(key, attempt))],
      [8, () => this.#try([key], (attempt) => this.lendTicket(key, attempt))],
    ] as const;
    let choice = this.random.between(0, 100);
    for (const [weight, run] of ways) {
      if ((choice -= weight) < 0) {
        return run();
      }
    }
  }

  @DistributedLock({ key: (key: string) => key })
  async credit(key: string, attempt: Attempt): Promise<void> {
    const lock = currentLock() as Lock;
    await attempt.inside(lock, () => this.#increment(lock, key, attempt));
  }

  /** A nested call, decorated as well. */
  @DistributedLock({ key: (key: string) => key })
  async creditTwice(key: string, attempt: Attempt): Promise<void> {
    const lock = currentLock() as Lock;
    await attempt.inside(lock, async () => {
      await this.#increment(lock, key, attempt);
      await this.#enter(key, attempt, (inner) => this.credit(key, inner));
    });
  }

  /** Children started in parallel. */
  @DistributedLock({ key: (key: string) => key })
  async creditInParallel(key: string, attempt: Attempt): Promise<void> {
    const lock = currentLock() as Lock;
    await attempt.inside(lock, async () => {
      await Promise.all([0, 1, 2].map(() => this.#enter(key, attempt, (inner) => this.credit(key, inner))));
    });
  }

  async transfer(from: string, to: string, attempt: Attempt): Promise<void> {
    await this.locks.withLock([from, to], (lock) =>
      attempt.inside(lock, async () => {
        await this.#increment(lock, from, attempt);
        await this.#increment(lock, to, attempt);
      }),
    );
  }

  async giveUpSoon(key: string, wait: number): Promise<void> {
    const call = (attempt: Attempt): Promise<void> =>
      this.locks.withLock(key, { wait }, (lock) => attempt.inside(lock, () => this.#increment(lock, key, attempt)));
    await this.#try([key], call, wait);
  }

  async abort(key: string, afterMs: number): Promise<void> {
    const { signal, abort } = abortAfter(afterMs);
    const call = (attempt: Attempt): Promise<void> =>
      this.locks.withLock(key, { signal }, (lock) => attempt.inside(lock, () => this.#increment(lock, key, attempt)));
    await this.#try([key], call, afterMs);
    clearTimeout(abort);
  }

  /** A fixed lease that ends before its code does. */
  async outlive(locks: LockService, key: string, ms: number, listener: () => void): Promise<void> {
    const call = (attempt: Attempt): Promise<void> =>
      locks.withLock(key, { renew: false }, (lock) =>
        attempt.inside(lock, async () => {
          lock.signal.addEventListener('abort', listener, { once: true });
          await sleep(ms);
        }),
      );
    await Attempt.run(this.history, [key], undefined, call, { isFixed: true });
  }

  /** The nested call asks for a ttl of which a tenth is longer than the rest of the lease when it is renewed first. */
  async nest(key: string, leaseMs: number): Promise<void> {
    await this.#try([key], (attempt) =>
      this.locks.withLock(key, (lock) =>
        attempt.inside(lock, async () => {
          const nested = (inner: Attempt): Promise<void> =>
            this.locks.withLock(key, { ttl: NESTED_LEASES * leaseMs }, (own) => inner.inside(own, () => sleep(leaseMs / 20)));
          await this.#enter(key, attempt, nested);
          await sleep(1.3 * leaseMs);
        }),
      ),
    );
  }

  /** Has a key for a while, after something that happens as soon as it has it. */
  async hold(key: string, ms: number, first: () => void = () => undefined, locks = this.locks): Promise<void> {
    await this.#try([key], (attempt) =>
      locks.withLock(key, (lock) =>
        attempt.inside(lock, async () => {
          first();
          await sleep(ms);
        }),
      ),
    );
  }

  async tryOnce(key: string, attempt: Attempt): Promise<void> {
    const lock = await this.locks.tryAcquire(key);
    if (lock) {
      await this.#leaveByHand(lock, key, attempt);
    }
  }

  async byHand(key: string, attempt: Attempt): Promise<void> {
    await this.#leaveByHand(await this.locks.acquire(key), key, attempt);
  }

  async lendTicket(key: string, attempt: Attempt): Promise<void> {
    await this.locks.withLock(key, (lock) =>
      attempt.inside(lock, async () => {
        await this.lend(key, attempt.owner, lock.makeTicket());
        await this.#work(lock, attempt);
      }),
    );
  }

  /** Enters another process's lock, and works beside its holder. */
  async borrow(key: string, owner: string, ticket: string, mode: LockMode): Promise<void> {
    const call = (attempt: Attempt): Promise<void> =>
      this.locks.withLock(key, { ticket, mode }, (lock) => attempt.inside(lock, () => this.#work(lock, attempt)));
    await Attempt.run(this.history, [key], owner, call, mode === 'read' ? { shares: mode } : {});
  }

  #try(keys: readonly string[], call: (attempt: Attempt) => Promise<unknown>, waitMs?: number): Promise<void> {
    return Attempt.run(this.history, [...new Set(keys)], undefined, call, { waitMs });
  }

  /** A nested call; what it throws is that of the call it is in. */
  async #enter(key: string, outer: Attempt, call: (attempt: Attempt) => Promise<void>): Promise<void> {
    await Attempt.run(this.history, [key], outer.owner, call);
  }

  async #leaveByHand(lock: Lock, key: string, attempt: Attempt): Promise<void> {
    try {
      await lock.run(() => attempt.inside(lock, () => this.#increment(lock, key, attempt)));
    } finally {
      await lock.release();
    }
    // A handle has no call that could reject: its holder asks.
    if (lock.signal.aborted) {
      throw lock.signal.reason;
    }
  }

  async #increment(lock: Lock, key: string, attempt: Attempt): Promise<void> {
    await this.registers.increment(key, attempt.owner, lock.fenceOf(key), this.#sectionMs());
    attempt.trust(lock);
  }

  /** Longer than a repeated command takes. */
  async #work(lock: Lock, attempt: Attempt): Promise<void> {
    await sleep(this.random.between(10, 200));
    attempt.trust(lock);
  }

  /** Mostly short; some last longer than a lease. */
  #sectionMs(): number {
    return this.random.chance(0.01) ? this.random.between(400, 1_500) : this.random.between(1, 20);
  }
}

function abortAfter(ms: number): { signal: AbortSignal; abort: NodeJS.Timeout } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: setTimeout(() => controller.abort(new Error('the client has gone')), ms) };
}
