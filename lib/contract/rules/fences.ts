import assert from 'node:assert/strict';
import { rule, type Rule } from '../rule.js';
import { changed, eventually, type OfferedStore, type Trial } from '../trial.js';

/** Acquires and releases, and expects a fence above the one before. */
async function nextFence(trial: Trial, store: OfferedStore, last: number): Promise<number> {
  const held = await trial.acquired({}, store);
  assert.ok(held.fence > last, `the fence ${held.fence} came after ${last}`);
  assert.ok(Number.isSafeInteger(held.fence), `the fence is ${held.fence}`);
  assert.equal(await store.release(held), true);
  return held.fence;
}

/** Fences rise for each key, whatever happens between two grants. */
export const FENCE_RULES: readonly Rule[] = [
  rule('fences rise with every grant, whichever process gets it', async (trial) => {
    let last = 0;
    for (let round = 0; round < 30; round++) {
      last = await nextFence(trial, round % 3 === 0 ? trial.other : trial.store, last);
    }
  }),

  rule('fences rise over the end of a lease', { needs: ['expiry'] }, async (trial) => {
    const first = await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    // On a quorum, a grant that came late is taken back first.
    await eventually(() => nextFence(trial, trial.other, first.fence).then(() => undefined));
    // The lock of this very attempt has ended, so that a repetition is a new grant.
    const reply = await trial.store.acquire(changed(first, { fence: 0 }));
    assert.ok(reply.fence === undefined || reply.fence > first.fence, `the fence ${reply.fence} was granted again`);
  }),

  rule('fences rise over a store that is closed and opened again', async (trial) => {
    const last = await nextFence(trial, trial.store, 0);
    await nextFence(trial, await trial.reopen(trial.store), last);
  }),

  rule('a grant reserves as many fences as it is asked for', { needs: ['reservesFences'] }, async (trial) => {
    let next = 0;
    for (let round = 0; round < 50; round++) {
      const fences = round % 3 === 0 ? 1 : 16;
      const held = await trial.acquired({ fences });
      assert.ok(held.fence >= next, `the fence ${held.fence} was reserved by the grant before: the next one is ${next}`);
      next = held.fence + fences;
      await trial.store.release(held);
    }
  }),

  rule('fences rise over a forced release', { needs: ['operator'] }, async (trial) => {
    const { fence } = await trial.acquired();
    assert.equal(await trial.store.operator.forceRelease(trial.key, fence), true);
    await nextFence(trial, trial.other, fence);
  }),
];

/**
 * Rules that a restart of the database must not break. They are tested last: the database may need a while to be as it
 * was.
 */
export const RESTART_RULES: readonly Rule[] = [
  rule(
    'fences rise over a restart of the database, after which the store works again by itself',
    { needs: ['restart'], withinMs: Infinity },
    async (trial) => {
      const last = await nextFence(trial, trial.store, 0);
      await trial.options.restart?.();
      await eventually(async () => void (await nextFence(trial, trial.store, last)), 10_000);
    },
  ),
];
