import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError } from '../../lib/core/words/errors';
import type { Lock } from '../../lib/core/words/lock';
import type { LockService } from '../../lib/nest/lock.service';

/** The observations of a load on one key. */
class Seen {
  grants = 0;
  highest = 0;
  /** The longest time from a call to its grant, in milliseconds. */
  longestMs = 0;
  running: Lock | undefined;
}

/**
 * Callers of several services that lock each key over and over, and check that the sections run one at a time and with
 * rising fences.
 */
export class Load {
  readonly seen = new Map<string, Seen>();
  /** Why calls failed, but for a lease that was lost. */
  readonly failures: Error[] = [];
  /** Sections that were entered while another one still trusted its lease. */
  overlaps = 0;
  /** Fences that were not above every one that was known when their call began. */
  disorders = 0;
  losses = 0;
  readonly #loops: Promise<void>[];
  readonly #options: { readonly ttl: number; readonly wait: number };
  #over = false;

  constructor(services: readonly LockService[], keys: readonly string[], options: { readonly ttl: number; readonly wait: number }) {
    this.#options = options;
    this.#loops = keys.flatMap((key) => {
      const seen = new Seen();
      this.seen.set(key, seen);
      return services.map((service) => this.#loop(service, key, seen));
    });
  }

  /** The longest time from a call to its grant, of all keys, in milliseconds. */
  get longestMs(): number {
    return Math.max(...[...this.seen.values()].map((seen) => seen.longestMs));
  }

  /** How many sections were entered. */
  get grants(): number {
    return [...this.seen.values()].reduce((sum, { grants }) => sum + grants, 0);
  }

  /** Resolves when each key was granted once more. */
  async turnRound(): Promise<void> {
    const before = [...this.seen.values()].map((seen) => [seen, seen.grants] as const);
    while (before.some(([seen, grants]) => seen.grants === grants)) {
      await sleep(5);
    }
  }

  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#loops);
  }

  async #loop(service: LockService, key: string, seen: Seen): Promise<void> {
    while (!this.#over) {
      const calledAt = performance.now();
      const floor = seen.highest;
      const call = service.withLock(key, this.#options, async (lock) => {
        seen.longestMs = Math.max(seen.longestMs, performance.now() - calledAt);
        await this.#section(lock, seen, floor);
      });
      await call.catch(async (error: Error) => {
        if (error instanceof LockLostError) {
          this.losses++;
        } else {
          this.failures.push(error);
          await sleep(5);
        }
      });
    }
  }

  async #section(lock: Lock, seen: Seen, floor: number): Promise<void> {
    if (seen.running?.isHeld()) {
      this.overlaps++;
    }
    if (lock.fence <= floor) {
      this.disorders++;
    }
    seen.running = lock;
    seen.grants++;
    seen.highest = Math.max(seen.highest, lock.fence);
    await sleep(5);
    if (seen.running === lock) {
      seen.running = undefined;
    }
  }
}
