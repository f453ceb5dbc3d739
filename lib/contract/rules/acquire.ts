import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { rule, type Rule } from '../rule.js';
import { changed, eventually, type OfferedStore, type Trial } from '../trial.js';

/** Who holds a lock may be called anything. */
const ODD_NAME = 'wörker-3 (pid 7) {a} "b" \'c\' %d \\ 🔑\tBalance.credit';

/**
 * In a quorum, a server that granted later than the others may answer: it has to count most of the time since the
 * grant.
 */
const MOSTLY = 0.7;

/** Attempts to get a lock. */
export const ACQUIRE_RULES: readonly Rule[] = [
  rule('a free lock is granted, with a fence that is a safe integer above 0', async (trial) => {
    const { fence } = await trial.acquired();
    assert.ok(Number.isSafeInteger(fence) && fence > 0, `the fence is ${fence}`);
  }),

  rule('a lock is busy for every other owner in every process, and the answer says who holds it and since when', async (trial) => {
    const startedAt = performance.now();
    await trial.acquired({ by: ODD_NAME });
    const grantedAt = performance.now();
    for (const store of [trial.store, trial.other]) {
      await eventually(async () => {
        const least = Math.max(trial.ms(250), MOSTLY * (performance.now() - grantedAt));
        const { by, heldMs } = (await trial.refused(trial.hold(), store)).holder;
        const most = performance.now() - startedAt + 10;
        assert.equal(by, ODD_NAME);
        assert.ok(heldMs >= least && heldMs <= most, `held for ${heldMs} ms, not ${least} to ${most} ms`);
      });
    }
  }),

  rule('an attempt that was busy leaves nothing behind', async (trial) => {
    const held = await trial.acquired();
    const attempt = trial.hold();
    await trial.refused(attempt, trial.other);
    assert.equal(await trial.store.release(held), true);
    assert.deepEqual(await trial.other.renew([changed(attempt, { fence: held.fence })]), [false]);
    await trial.expectFree();
  }),

  rule('of many owners that ask at once, in two processes, one gets the lock', async (trial) => {
    const attempts = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? trial.store : trial.other).acquire(trial.hold()));
    const grants = (await Promise.all(attempts)).filter(({ fence }) => fence !== undefined);
    assert.equal(grants.length, 1);
  }),

  rule('owners in two processes are never in together, and have rising fences', async (trial) => {
    const section = new Section();
    await Promise.all(Array.from({ length: 6 }, (_, at) => section.work(trial, at % 2 === 0 ? trial.store : trial.other)));
    assert.deepEqual({ most: section.most, entries: section.entries }, { most: 1, entries: 6 * ENTRIES });
  }),

  rule('an acquire that is sent twice is granted once: the same fence, and free with one release', async (trial) => {
    const held = await trial.acquired();
    assert.equal((await trial.store.acquire(changed(held, { fence: 0 }))).fence, held.fence);
    assert.equal(await trial.store.release(held), true);
    await trial.expectFree();
  }),

  rule('two copies of an acquire that arrive at the same time are granted once', async (trial) => {
    const hold = trial.hold();
    const [first, second] = await Promise.all([trial.store.acquire(hold), trial.store.acquire(hold)]);
    assert.ok(first.fence !== undefined && first.fence === second.fence, `the fences are ${first.fence} and ${second.fence}`);
    assert.equal(await trial.store.release(hold), true);
    await trial.expectFree();
  }),

  rule('times need not be whole milliseconds', async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(5_000) - 0.3, limitMs: 999.9 });
    assert.deepEqual(await trial.store.renew([changed(held, { ttlMs: trial.ttl(6_000) - 1 / 3 })]), [true]);
    assert.equal(await trial.store.release(held), true);
  }),

  rule('the longest lease that the store names is granted', async (trial) => {
    const { longestLeaseMs = trial.ms(10_000) } = trial.store;
    assert.ok(longestLeaseMs > 0);
    const held = await trial.acquired({ ttlMs: longestLeaseMs });
    assert.deepEqual(await trial.store.renew([held]), [true]);
  }),
];

/** How often each worker enters. */
const ENTRIES = 3;

/** The section that a lock protects, for workers that poll as core does. */
class Section {
  most = 0;
  entries = 0;
  #inside = 0;
  #lastFence = 0;

  async work(trial: Trial, store: OfferedStore): Promise<void> {
    for (let entry = 0; entry < ENTRIES; entry++) {
      const hold = trial.hold();
      let { fence } = await store.acquire(hold);
      while (fence === undefined) {
        await sleep(5 + Math.random() * 20);
        ({ fence } = await store.acquire(hold));
      }
      await this.#enter(fence);
      await store.release(changed(hold, { fence }));
    }
  }

  async #enter(fence: number): Promise<void> {
    this.#inside++;
    this.most = Math.max(this.most, this.#inside);
    assert.ok(fence > this.#lastFence, `the fence ${fence} came after ${this.#lastFence}`);
    this.#lastFence = fence;
    await sleep(2);
    this.#inside--;
    this.entries++;
  }
}
