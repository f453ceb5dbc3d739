import assert from 'node:assert/strict';
import type { HoldRecord } from '../../core/seam/lock-store.js';
import { rule, type Rule } from '../rule.js';
import { changed, eventually, guestOf, listOf, newOwner } from '../trial.js';

/** As many holds as core may send at once. */
const MANY = 200;
/** How many holds are acquired at once: the speed of grants is not under test. */
const SOME = 20;

/** Renewals, whatever becomes of the lease. */
export const RENEW_RULES: readonly Rule[] = [
  rule('a renewal of a lock that is held answers true, also when it is sent again', async (trial) => {
    const held = await trial.acquired();
    assert.deepEqual(await trial.store.renew(listOf(held)), [true]);
    assert.deepEqual(await trial.store.renew(listOf(held)), [true]);
    await trial.refused(trial.hold(), trial.other);
  }),

  rule('a renewal with another owner, fence or hold is refused, and neither ends the lock nor lengthens its lease', async (trial) => {
    const held = await trial.acquired();
    const longer = changed(held, { ttlMs: trial.ttl(10_000) });
    const strangers = [changed(longer, { owner: newOwner() }), changed(longer, { fence: held.fence - 1 }), guestOf(longer)];
    assert.deepEqual(await trial.store.renew(listOf(...strangers)), [false, false, false]);
    assert.deepEqual(await trial.store.renew(listOf(changed(longer, { fence: held.fence + 1 }))), [false]);
    const remainingMs = await trial.remainingMs();
    assert.ok(!trial.store.expires || remainingMs <= held.ttlMs, 'the renewal of a stranger made the lease longer');
    await trial.expectHeld(held);
  }),

  rule('a renewal never creates a lock', async (trial) => {
    assert.deepEqual(await trial.store.renew(listOf(trial.hold({ fence: 1 }))), [false]);
    const held = await trial.acquired();
    await trial.store.release(held);
    assert.deepEqual(await trial.store.renew(listOf(held)), [false]);
    await trial.expectFree();
  }),

  rule('the renewal of a released hold does not renew the next lock', async (trial) => {
    const first = await trial.acquired();
    await trial.store.release(first);
    const next = await trial.acquired();
    assert.deepEqual(await trial.store.renew(listOf(first, changed(first, { fence: next.fence }))), [false, false]);
    await trial.expectHeld(next);
  }),

  rule('renewals of several locks are answered one by one, in their order', async (trial) => {
    const held = await trial.acquired();
    const second = await trial.acquired({ key: `${trial.key} second` });
    const stranger = trial.hold({ key: `${trial.key} of nobody`, fence: 1 });
    assert.deepEqual(await trial.store.renew(listOf(stranger, held, stranger, second, held)), [false, true, false, true, true]);
  }),

  rule(`${MANY} locks can be renewed at once`, async (trial) => {
    const keys = Array.from({ length: MANY }, (_, at) => `${trial.key} ${at}`);
    const held: HoldRecord[] = [];
    while (held.length < MANY) {
      held.push(...(await Promise.all(keys.slice(held.length, held.length + SOME).map((key) => trial.acquired({ key })))));
    }
    assert.equal(await trial.store.release(held[MANY / 2]!), true);
    const expected = held.map((_, at) => at !== MANY / 2);
    // An answer that a busy server did not give in time is unknown, and asked for once more.
    await eventually(async () => assert.deepEqual(await trial.store.renew(listOf(...held)), expected));
  }),
];
