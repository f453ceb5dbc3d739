import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import type { QuorumLockStoreOptions } from '../../lib/quorum/quorum-lock-store.options';
import { newHold as newHoldWith } from './new-hold';
import { RedisQuorum } from './redis-quorum';
import { until } from './until';

/** Stores of one quorum, which end with the test. */
export class QuorumStores {
  readonly warnings: string[] = [];
  readonly quorum: RedisQuorum;
  readonly #stores: QuorumLockStore[] = [];
  readonly #options: QuorumLockStoreOptions;

  constructor(quorum: RedisQuorum, options: QuorumLockStoreOptions = {}) {
    this.quorum = quorum;
    this.#options = options;
  }

  async open(urls: readonly string[] = this.quorum.proxied): Promise<QuorumLockStore> {
    const store = new QuorumLockStore(urls, this.#options);
    this.#stores.push(store);
    await store.open({ prefix: 'lock', warn: (message) => this.warnings.push(message) });
    return store;
  }

  /** Waits until all servers vote for a store again. */
  async allVote(store: QuorumLockStore): Promise<void> {
    await until('votes of all servers', async () => {
      const probe = newHold(`probe ${randomUUID()}`, 1_000);
      const { fence } = await orAway(store.acquire(probe), { fence: undefined });
      let isEverywhere = false;
      // A grant waits for a majority only; the others have its fence a moment later.
      for (let check = 0; check < 10 && !isEverywhere; check++) {
        isEverywhere = (await this.quorum.fences(probe.key)).every((other) => other === String(fence));
        await sleep(10);
      }
      await orAway(store.release(probe), false);
      return isEverywhere;
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
    await this.quorum.stop();
  }
}

/** A hold whose commands may take longer than core allows them, so that a machine that stalls does not fail them. */
export function newHold(key: string, ttlMs = 5_000, limitMs = Math.min(ttlMs / 2, 2_500)): HoldRecord {
  return newHoldWith(key, { ttlMs, limitMs });
}

/** A hold with its fence, once it is granted. */
export async function acquired(store: QuorumLockStore, key: string, ttlMs = 5_000, limitMs?: number): Promise<HoldRecord> {
  const hold = newHold(key, ttlMs, limitMs);
  const { fence } = await store.acquire(hold);
  if (fence === undefined) {
    throw new Error(`${key} is busy`);
  }
  return { ...hold, fence };
}

/** The result of a command; `away` where the store is unavailable. */
async function orAway<T, U>(command: Promise<T>, away: U): Promise<T | U> {
  try {
    return await command;
  } catch (error) {
    if (error instanceof LockStoreError) {
      return away;
    }
    throw error;
  }
}
