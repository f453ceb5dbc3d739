import assert from 'node:assert/strict';
import { rulesWith, type Rule } from '../../rule.js';
import { changed } from '../../trial.js';
import { expectLeft } from '../leases.js';
import { twoOf } from './sharing.js';

const permitRule = rulesWith({ needs: ['permits'] });

/** How many permits are given. */
export const PERMIT_RULES: readonly Rule[] = [
  permitRule(
    'as many have a permit as there are, in all processes; each release makes room for one, and a copy of it for none',
    async (trial) => {
      const [first] = await twoOf(trial, 3);
      const third = await trial.acquired({ shares: 3 });
      await trial.refused(trial.hold({ shares: 3 }), trial.store);
      await trial.refused(trial.hold({ shares: 3 }), trial.other);
      assert.equal(await trial.store.release(first), true);
      await trial.store.release(first);
      await trial.acquired({ shares: 3 }, trial.other);
      await trial.refused(trial.hold({ shares: 3 }), trial.store);
      await trial.expectHeld(third);
    },
  ),

  permitRule('of many that ask at once, in two processes, as many get a permit as there are', async (trial) => {
    const asked = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? trial.store : trial.other).acquire(trial.hold({ shares: 3 })));
    const grants = (await Promise.all(asked)).filter(({ fence }) => fence !== undefined);
    assert.equal(grants.length, 3);
  }),

  permitRule('the smallest count counts, of the one who comes and of those who are in', async (trial) => {
    const [first] = await twoOf(trial, 5);
    await trial.refused(trial.hold({ shares: 2 }), trial.other);
    const small = await trial.acquired({ shares: 3 }, trial.other);
    await trial.refused(trial.hold({ shares: 5 }), trial.store);
    assert.equal(await trial.store.release(first), true);
    const third = await trial.acquired({ shares: 5 });
    await trial.refused(trial.hold({ shares: 5 }), trial.store);
    await trial.expectHeld(third);
    assert.equal(await trial.other.release(small), true);
  }),

  permitRule('a count ends with the last hold that has it', async (trial) => {
    const [first, second] = await twoOf(trial, 2);
    assert.equal(await trial.store.release(first), true);
    await trial.acquired({ shares: 3 });
    await trial.refused(trial.hold({ shares: 3 }));
    assert.equal(await trial.other.release(second), true);
    const last = await trial.acquired({ shares: 3 });
    await trial.acquired({ shares: 3 });
    await trial.refused(trial.hold({ shares: 3 }));
    await trial.expectHeld(last);
  }),

  permitRule('a permit whose lease is over makes room for one, and its late release for none', { needs: ['expiry'] }, async (trial) => {
    const [first] = await twoOf(trial, 2, { ttlMs: trial.ttl(100), unanswered: true });
    await trial.pass(130);
    await trial.acquired({ shares: 2 });
    await trial.refused(trial.hold({ shares: 2 }), trial.other);
    assert.equal(await trial.store.release(first), false);
    assert.equal(await trial.store.release(changed(first, { unanswered: false })), false);
    await trial.refused(trial.hold({ shares: 2 }), trial.other);
  }),

  permitRule('a busy answer names the count of the holder that it names, or no count', async (trial) => {
    await trial.acquired({ shares: 1, by: 'first' });
    const { holder, permits = 1 } = await trial.refused(trial.hold({ shares: 2 }), trial.other);
    assert.deepEqual({ by: holder.by, permits }, { by: 'first', permits: 1 });
  }),

  permitRule('a busy answer says when the next permit is over at the latest', { needs: ['expiry'], withinMs: 2_500 }, async (trial) => {
    const given = async (): Promise<void> => void (await twoOf(trial, 2, { ttlMs: trial.ttl(9_000) }, { ttlMs: trial.ttl(3_000) }));
    await expectLeft(trial, 3_000, given, async () => trial.remainingMs({ shares: 2 }));
  }),
];
