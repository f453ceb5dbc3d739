import assert from 'node:assert/strict';
import { rulesWith, type Rule } from '../../rule.js';
import { expectLeft } from '../leases.js';
import { twoOf } from './sharing.js';

const readerRule = rulesWith({ needs: ['shared'] });

/** Readers and writes of a key. */
export const READER_RULES: readonly Rule[] = [
  readerRule('readers are in together, in all processes', async (trial) => {
    const [first, second] = await twoOf(trial, 'read');
    const third = await trial.acquired({ shares: 'read' });
    assert.deepEqual(await trial.store.renew([first, third]), [true, true]);
    await trial.expectHeld(second, trial.other);
  }),

  readerRule('a write waits for all readers, and its fence is above theirs', async (trial) => {
    const [first, second] = await twoOf(trial, 'read');
    await trial.refused(trial.hold(), trial.store);
    await trial.refused(trial.hold(), trial.other);
    assert.equal(await trial.store.release(first), true);
    await trial.refused(trial.hold(), trial.store);
    await trial.refused(trial.hold(), trial.other);
    assert.equal(await trial.other.release(second), true);
    const { fence } = await trial.acquired();
    assert.ok(fence > second.fence, `the fence ${fence} came after ${second.fence}`);
  }),

  readerRule('a reader waits for a write, also for one whose hold joined nobody', async (trial) => {
    const held = await trial.acquired();
    await trial.refused(trial.hold({ shares: 'read' }), trial.store);
    await trial.refused(trial.hold({ shares: 'read', owner: held.owner }), trial.other);
    await trial.expectHeld(held);
    assert.equal(await trial.store.release(held), true);
    const { fence } = await trial.acquired({ shares: 'read' });
    assert.ok(fence > held.fence, `the fence ${fence} came after ${held.fence}`);
  }),

  readerRule('of readers and writes that ask at once, in two processes, either one write gets in or all readers', async (trial) => {
    const asked = Array.from({ length: 20 }, (_, at) => trial.hold(at % 4 < 2 ? { shares: 'read' } : {}));
    const replies = await Promise.all(asked.map((hold, at) => (at % 2 === 0 ? trial.store : trial.other).acquire(hold)));
    const granted = asked.filter((_, at) => replies[at]?.fence !== undefined);
    const writes = granted.filter(({ shares }) => shares === undefined).length;
    assert.deepEqual([writes, granted.length], writes > 0 ? [1, 1] : [0, 10]);
  }),

  readerRule(
    'a busy answer to a write says who reads, and how long the last of them may',
    { needs: ['expiry'], withinMs: 2_500 },
    async (trial) => {
      await expectLeft(trial, 9_000, async () => {
        await twoOf(trial, 'read', { by: 'reader', ttlMs: trial.ttl(9_000) }, { by: 'reader', ttlMs: trial.ttl(3_000) });
      });
      assert.equal((await trial.refused()).holder.by, 'reader');
    },
  ),
];
