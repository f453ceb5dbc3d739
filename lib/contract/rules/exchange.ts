import assert from 'node:assert/strict';
import type { AcquireReply, HoldRecord, Place } from '../../core/seam/lock-store.js';
import { rulesWith, type Rule } from '../rule.js';
import { changed, guestOf, newPlace, notified, type Trial } from '../trial.js';
import { expectTurns, queued } from './turns.js';

const exchangeRule = rulesWith({ needs: ['turns'], withinMs: 1_000 });

/** Releases for `hold` and acquires for `next` in this process. */
async function exchange(
  trial: Trial,
  hold: HoldRecord,
  next: HoldRecord,
  place: Place,
  mayOvertake: boolean,
): Promise<{ released: boolean; reply: AcquireReply }> {
  const { released, reply } = await trial.store.turns.exchange(hold, next, place, mayOvertake);
  return { released, reply: await reply };
}

/** Expects that an exchange released, and granted to `next`; the record has the fence of the grant. */
async function exchanged(trial: Trial, hold: HoldRecord, next: HoldRecord, mayOvertake = true): Promise<HoldRecord> {
  const { released, reply } = await exchange(trial, hold, next, newPlace(), mayOvertake);
  assert.equal(released, true);
  assert.ok(reply.fence !== undefined, 'the exchange was answered with busy: a grant was expected');
  return changed(next, { fence: reply.fence });
}

/** Release and acquire in one command. `trial.store` exchanges, `trial.other` waits. */
export const EXCHANGE_RULES: readonly Rule[] = [
  exchangeRule('an exchange releases and grants, with an owner, a hold and a higher fence of its own', async (trial) => {
    const first = await trial.acquired({ unanswered: true });
    const next = await exchanged(trial, first, trial.hold({ by: 'next' }));
    assert.ok(next.fence > first.fence, `the fence ${next.fence} came after ${first.fence}`);
    assert.deepEqual(await trial.store.renew([next, first]), [true, false]);
    assert.equal((await trial.refused(trial.hold(), trial.other)).holder.by, 'next');
    assert.equal(await trial.store.release(first), true);
    await trial.expectHeld(next);
  }),

  exchangeRule('an exchange of an unanswered hold that is sent twice answers the same', async (trial) => {
    const first = await trial.acquired({ unanswered: true });
    const hold = trial.hold();
    const next = await exchanged(trial, first, hold);
    assert.equal((await exchanged(trial, first, hold)).fence, next.fence);
    assert.equal(await trial.store.release(next), true);
    await trial.expectFree();
  }),

  exchangeRule('an exchange overtakes the queue only where it may', async (trial) => {
    const holder = await trial.acquired();
    const first = await queued(trial);
    const next = await exchanged(trial, holder, trial.hold({ unanswered: true }));
    const last = trial.hold();
    const place = newPlace();
    for (let round = 0; round < 2; round++) {
      const answer = await exchange(trial, next, last, place, false);
      assert.deepEqual([answer.released, answer.reply.fence], [true, undefined]);
    }
    await expectTurns(trial, first);
    const granted = await trial.granted(first.hold, trial.other, first.place);
    await trial.other.release(granted);
    await trial.refused(trial.hold(), trial.other);
    await trial.granted(last, trial.store, place);
  }),

  exchangeRule('an exchange grants where nobody queues, whether or not it may overtake', async (trial) => {
    await exchanged(trial, await trial.acquired(), trial.hold(), false);
  }),

  exchangeRule('an exchange that grants to a place of this process that waits is answered as granted', async (trial) => {
    for (const mayOvertake of [false, true]) {
      const holder = await trial.acquired();
      const { hold, place } = await queued(trial, trial.store);
      // By then the process can be woken where it waits in the database.
      await trial.pass(300);
      const { released, reply } = await exchange(trial, holder, hold, place, mayOvertake);
      assert.equal(released, true);
      assert.ok(reply.fence !== undefined, 'the exchange was answered with busy: a grant was expected');
      await trial.expectHeld(changed(hold, { fence: reply.fence }));
      assert.equal(await trial.store.release(hold), true);
    }
    await trial.expectFree();
  }),

  exchangeRule('an exchange for a hold that has ended hands over, and takes nothing', async (trial) => {
    const holder = await trial.acquired();
    const waiter = await queued(trial);
    const ended = trial.hold({ unanswered: true });
    await trial.store.release(ended);
    const { released, reply } = await exchange(trial, holder, ended, newPlace(), true);
    assert.deepEqual([released, reply.fence], [true, undefined]);
    await expectTurns(trial, waiter);
    const granted = await trial.granted(waiter.hold, trial.other, waiter.place);
    await trial.other.release(granted);
    await trial.expectFree();
  }),

  exchangeRule(
    'an exchange of a lock that is gone says so, and acquires only if the lock is free',
    { needs: ['expiry'] },
    async (trial) => {
      const first = await trial.acquired({ ttlMs: trial.ttl(100) });
      await trial.pass(130);
      const other = await trial.acquired({ by: 'other' }, trial.other);
      const { released, reply } = await exchange(trial, first, trial.hold(), newPlace(), true);
      assert.equal(released, false);
      assert.ok(reply.fence === undefined, 'the exchange was granted: busy was expected');
      assert.equal(reply.holder.by, 'other');
      assert.equal(await trial.other.release(other), true);
    },
  ),

  exchangeRule('an exchange beside a further hold of the same lock queues', { needs: ['tickets'] }, async (trial) => {
    const first = await trial.acquired();
    const guest = guestOf(first);
    assert.equal(await trial.other.tickets.join(guest), true);
    const next = trial.hold();
    const place = newPlace();
    const { released, reply } = await exchange(trial, first, next, place, true);
    assert.deepEqual([released, reply.fence], [true, undefined]);
    await trial.expectHeld(guest, trial.other);
    await trial.other.release(guest);
    await notified(() => assert.deepEqual(trial.turnsOf(trial.store), [place.name]));
    await trial.granted(next, trial.store, place);
  }),
];
