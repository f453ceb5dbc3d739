import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { rulesWith, type Rule } from '../rule.js';
import { changed, guestOf, listOf, newPlace, notified, type OfferedStore, type Trial } from '../trial.js';
import { KINDS, twoOf } from './shared-keys/sharing.js';

const operatorRule = rulesWith({ needs: ['operator'] });

/** The fences at which this key was released by force, as a store is notified of them. A message may come twice. */
function forcedOf(trial: Trial, store: OfferedStore): ReadonlySet<number> {
  const fences = new Set<number>();
  store.operator.onForced((key, fence) => key === trial.key && fences.add(fence));
  return fences;
}

/** Rules about the operations of operators. */
export const OPERATOR_RULES: readonly Rule[] = [
  operatorRule('inspect shows the fence, the holds, since when and by whom, in every process', async (trial) => {
    const before = Date.now();
    const held = await trial.acquired({ by: 'worker-3 (pid 7) Balance.credit' });
    for (const store of [trial.store, trial.other]) {
      const { fence, holds, by, since, waiters } = (await store.operator.inspect(trial.key)) ?? assert.fail('nothing is shown');
      assert.deepEqual({ fence, holds, by, waiters }, { fence: held.fence, holds: 1, by: 'worker-3 (pid 7) Balance.credit', waiters: [] });
      // By the clock of the store.
      assert.ok(Math.abs(since.getTime() - before) < 60_000, `since ${since.toISOString()}, at ${new Date(before).toISOString()}`);
    }
  }),

  operatorRule('inspect shows what is left of the lease', { needs: ['expiry'] }, async (trial) => {
    const startedAt = performance.now();
    await trial.acquired({ ttlMs: trial.ttl(5_000) });
    const { remainingMs = 0 } = (await trial.store.operator.inspect(trial.key)) ?? {};
    const least = trial.ttl(5_000) - (performance.now() - startedAt) - trial.ms(500);
    assert.ok(remainingMs > least && remainingMs <= trial.ttl(5_000) + 1, `${remainingMs} ms`);
  }),

  operatorRule('inspect shows no owner and no hold', async (trial) => {
    const held = await trial.acquired();
    const shown = inspect(await trial.store.operator.inspect(trial.key), { depth: null, showHidden: true });
    assert.ok(!shown.includes(held.owner) && !shown.includes(held.id), shown);
  }),

  operatorRule('inspect shows nothing of a free lock', async (trial) => {
    assert.equal(await trial.store.operator.inspect(trial.key), null);
    const held = await trial.acquired();
    await trial.store.release(held);
    assert.equal(await trial.other.operator.inspect(trial.key), null);
  }),

  operatorRule('inspect shows nothing of a lock whose lease has ended', { needs: ['expiry'] }, async (trial) => {
    await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    assert.equal(await trial.store.operator.inspect(trial.key), null);
  }),

  operatorRule('inspect counts the holds', { needs: ['tickets'] }, async (trial) => {
    const held = await trial.acquired();
    const guest = guestOf(held);
    await trial.other.tickets.join(guest);
    await trial.other.tickets.join(guest);
    assert.equal((await trial.store.operator.inspect(trial.key))?.holds, 2);
    await trial.store.release(held);
    assert.equal((await trial.store.operator.inspect(trial.key))?.holds, 1);
  }),

  operatorRule('a renewal may say that another call runs in the lock now', { needs: ['reservesFences'] }, async (trial) => {
    const held = await trial.acquired();
    await trial.store.renew(listOf(changed(held, { by: 'another' })));
    assert.equal((await trial.store.operator.inspect(trial.key))?.by, 'another');
    await trial.store.renew(listOf(changed(held, { by: '' })));
    assert.equal((await trial.store.operator.inspect(trial.key))?.by, 'another');
  }),

  operatorRule('inspect shows who waits, each by host and process id', { needs: ['turns'] }, async (trial) => {
    await trial.acquired();
    await trial.refused(trial.hold(), trial.other, newPlace());
    const { waiters = [] } = (await trial.store.operator.inspect(trial.key)) ?? {};
    assert.equal(waiters.length, 1);
    assert.match(waiters[0] ?? '', new RegExp(`\\b${process.pid}\\b`));
  }),

  operatorRule('a forced release needs the fence, and frees the lock', async (trial) => {
    const held = await trial.acquired();
    assert.equal(await trial.other.operator.forceRelease(trial.key, held.fence - 1), false);
    await trial.expectHeld(held);
    assert.equal(await trial.other.operator.forceRelease(trial.key, held.fence), true);
    assert.equal(await trial.other.operator.forceRelease(trial.key, held.fence), false);
    assert.equal(await trial.other.operator.inspect(trial.key), null);
  }),

  operatorRule('a forced release notifies the process that holds the lock', { needs: ['forced'] }, async (trial) => {
    const notices = forcedOf(trial, trial.store);
    const held = await trial.acquired();
    await trial.other.operator.forceRelease(trial.key, held.fence);
    await notified(() => assert.deepEqual([...notices], [held.fence]));
  }),

  operatorRule('a forced release ends the hold: it neither renews nor releases the next lock', async (trial) => {
    const held = await trial.acquired();
    await trial.other.operator.forceRelease(trial.key, held.fence);
    assert.deepEqual(await trial.store.renew(listOf(held)), [false]);
    const next = await trial.acquired({}, trial.other);
    assert.ok(next.fence > held.fence);
    assert.equal(await trial.store.release(held), false);
    await trial.expectHeld(next, trial.other);
  }),

  operatorRule('a forced release notifies every process that has a hold in the lock', { needs: ['forced', 'tickets'] }, async (trial) => {
    const notices = forcedOf(trial, trial.store);
    const noticesElsewhere = forcedOf(trial, trial.other);
    const held = await trial.acquired();
    await trial.other.tickets.join(guestOf(held));
    assert.equal(await trial.store.operator.forceRelease(trial.key, held.fence), true);
    await notified(() => assert.deepEqual([[...notices], [...noticesElsewhere]], [[held.fence], [held.fence]]));
  }),

  operatorRule('inspect shows that readers are in, who came first, and how many there are', { needs: ['shared'] }, async (trial) => {
    const [first] = await twoOf(trial, 'read', { by: 'first' });
    const { fence, holds, by, shares } = (await trial.other.operator.inspect(trial.key)) ?? assert.fail('nothing is shown');
    assert.deepEqual({ fence, holds, by, shares }, { fence: first.fence, holds: 2, by: 'first', shares: 'read' });
    await trial.store.release(first);
    assert.equal((await trial.store.operator.inspect(trial.key))?.holds, 1);
  }),

  operatorRule('inspect shows no write as shared, and of a semaphore the smallest count', { needs: ['permits'] }, async (trial) => {
    const held = await trial.acquired();
    assert.equal((await trial.other.operator.inspect(trial.key))?.shares, undefined);
    await trial.store.release(held);
    const [first] = await twoOf(trial, 3, {}, { shares: 5 });
    const { holds, shares } = (await trial.other.operator.inspect(trial.key)) ?? assert.fail('nothing is shown');
    assert.deepEqual({ holds, shares }, { holds: 2, shares: 3 });
    await trial.store.release(first);
    assert.equal((await trial.other.operator.inspect(trial.key))?.shares, 5);
  }),

  ...KINDS.map(({ who, offer, shares, rival }) =>
    operatorRule(`${who} is out after a forced release at its fence, as all others in its key`, { needs: [offer] }, async (trial) => {
      const [first, second] = await twoOf(trial, shares);
      assert.equal(await trial.other.operator.forceRelease(trial.key, first.fence - 1), false);
      assert.deepEqual(await trial.store.renew(listOf(first, second)), [true, true]);
      assert.equal(await trial.other.operator.forceRelease(trial.key, first.fence), true);
      assert.equal(await trial.other.operator.forceRelease(trial.key, first.fence), false);
      assert.deepEqual(await trial.store.renew(listOf(first, second)), [false, false]);
      assert.equal(await trial.store.release(first), false);
      assert.equal(await trial.other.operator.inspect(trial.key), null);
      await trial.acquired(rival);
    }),
  ),

  operatorRule('a forced release of readers notifies all their processes', { needs: ['forced', 'shared'] }, async (trial) => {
    const notices = forcedOf(trial, trial.store);
    const noticesElsewhere = forcedOf(trial, trial.other);
    const [{ fence }] = await twoOf(trial, 'read');
    assert.equal(await trial.store.operator.forceRelease(trial.key, fence), true);
    await notified(() => assert.deepEqual([[...notices], [...noticesElsewhere]], [[fence], [fence]]));
  }),

  operatorRule('a forced release of a free lock answers false', async (trial) => {
    assert.equal(await trial.store.operator.forceRelease(trial.key, 1), false);
    const held = await trial.acquired();
    await trial.store.release(held);
    assert.equal(await trial.store.operator.forceRelease(trial.key, held.fence), false);
  }),
];
