import assert from 'node:assert/strict';
import type { HoldRecord, Shares } from '../../../core/seam/lock-store.js';
import { isLockError } from '../../../core/words/errors.js';
import { rulesWith, type Rule } from '../../rule.js';
import { changed, guestOf, listOf, newOwner, type OfferedStore, type Trial } from '../../trial.js';
import { expectLeft } from '../leases.js';

/** A kind of hold that shares its key. */
export interface Kind {
  /** One of them, in the names of its rules. */
  readonly who: string;
  readonly offer: 'shared' | 'permits';
  readonly shares: Shares;
  /** One who comes in only where none of them is in. */
  readonly rival: { readonly shares?: Shares };
}

/** Both kinds. The rules of this file are the same for both. */
export const KINDS: readonly Kind[] = [
  { who: 'a reader', offer: 'shared', shares: 'read', rival: {} },
  { who: 'a permit', offer: 'permits', shares: 2, rival: { shares: 1 } },
];

/** Lets one in for each process. */
export async function twoOf(
  trial: Trial,
  shares: Shares,
  first: Partial<HoldRecord> = {},
  second: Partial<HoldRecord> = {},
): Promise<[HoldRecord, HoldRecord]> {
  return [await trial.acquired({ shares, ...first }), await trial.acquired({ shares, ...second }, trial.other)];
}

/** Expects that the key is refused for what it is. */
export async function expectOtherKind(trial: Trial, store: OfferedStore, shares?: Shares): Promise<void> {
  await assert.rejects(store.acquire(trial.hold({ shares })), (error) => isLockError(error) && error.code === 'LOCK_CONFIGURATION');
}

function rulesOf({ who, offer, shares, rival }: Kind): readonly Rule[] {
  const rule = rulesWith({ needs: [offer] });
  const leaseRule = rulesWith({ needs: [offer, 'expiry'], withinMs: 2_500 });

  /** Expects that nobody is in, and leaves it so. */
  const expectFree = async (trial: Trial): Promise<void> => {
    assert.equal(await trial.other.release(await trial.acquired(rival, trial.other)), true);
  };
  /** Expects that somebody is in. */
  const expectTaken = async (trial: Trial): Promise<void> => void (await trial.refused(trial.hold(rival)));
  const isPermit = offer === 'permits';
  const readsLease = { needs: isPermit ? (['operator'] as const) : [] };
  /** Expects that the only one who is in has a lease of that time. To a permit, a busy answer may say less. */
  const expectLeaseOf = (trial: Trial, ttlMs: number, given: () => Promise<void>): Promise<void> =>
    expectLeft(trial, ttlMs, given, async () =>
      isPermit ? ((await trial.store.operator.inspect(trial.key))?.remainingMs ?? 0) : trial.remainingMs(rival),
    );

  return [
    rule(
      `${who} that comes in beside others has their fence, above all fences before, and the next ones have a higher one`,
      async (trial) => {
        const before = await trial.acquired();
        await trial.store.release(before);
        const [first, second] = await twoOf(trial, shares);
        assert.ok(first.fence > before.fence && first.fence === second.fence, `${first.fence}, ${second.fence} after ${before.fence}`);
        await trial.store.release(first);
        const third = await trial.acquired({ shares });
        assert.equal(third.fence, second.fence);
        await trial.other.release(second);
        await trial.store.release(third);
        const next = await trial.acquired({ shares }, trial.other);
        assert.ok(next.fence > third.fence, `${next.fence} after ${third.fence}`);
      },
    ),

    rule(`${who} that asks twice is in once: the same fence, and out with one release`, async (trial) => {
      const [first, second] = await twoOf(trial, shares);
      assert.equal((await trial.store.acquire(changed(first, { fence: 0 }))).fence, first.fence);
      assert.equal(await trial.store.release(first), true);
      assert.equal(await trial.other.release(second), true);
      await expectFree(trial);
    }),

    rule(`${who} that asks twice at the same time is in once`, async (trial) => {
      const hold = trial.hold({ shares });
      const [first, second] = await Promise.all([trial.store.acquire(hold), trial.store.acquire(hold)]);
      assert.ok(first.fence !== undefined && first.fence === second.fence, `the fences are ${first.fence} and ${second.fence}`);
      assert.equal(await trial.store.release(hold), true);
      await expectFree(trial);
    }),

    rule(`${who} that is unanswered and is released twice gets the same answer, and takes nobody else out`, async (trial) => {
      const [first, second] = await twoOf(trial, shares, { unanswered: true });
      assert.deepEqual([await trial.store.release(first), await trial.store.release(first)], [true, true]);
      await trial.expectHeld(second, trial.other);
      assert.equal(await trial.other.release(second), true);
      await expectFree(trial);
    }),

    rule(`${who} that was released while it was unanswered does not come in again`, async (trial) => {
      const late = trial.hold({ shares, unanswered: true });
      assert.equal(await trial.store.release(late), false);
      await trial.refused(late);
      const [first, second] = await twoOf(trial, shares, { unanswered: true });
      assert.equal(await trial.store.release(first), true);
      await trial.refused(first);
      assert.equal(await trial.other.release(second), true);
      await trial.refused(first);
      await expectFree(trial);
    }),

    rule(`${who} that was released is not renewed: the answer is false, and it stays out`, async (trial) => {
      const [first, second] = await twoOf(trial, shares);
      assert.equal(await trial.store.release(first), true);
      assert.deepEqual(await trial.store.renew(listOf(first, first)), [false, false]);
      assert.equal(await trial.other.release(second), true);
      assert.deepEqual(await trial.store.renew(listOf(first)), [false]);
      await expectFree(trial);
      const next = await trial.acquired({ shares });
      assert.deepEqual(await trial.store.renew(listOf(first, changed(first, { fence: next.fence }))), [false, false]);
      assert.equal(await trial.store.release(next), true);
      await expectFree(trial);
    }),

    rule(
      `${who} is known by its owner and its hold, and for a renewal by its fence: strangers get false, and change nothing`,
      async (trial) => {
        const [first, second] = await twoOf(trial, shares);
        const strangers = [changed(first, { owner: newOwner() }), guestOf(first)];
        assert.deepEqual(await trial.store.renew(listOf(...strangers, changed(first, { fence: first.fence - 1 }))), [false, false, false]);
        for (const stranger of strangers) {
          assert.equal(await trial.store.release(stranger), false);
        }
        assert.deepEqual(await trial.store.renew(listOf(first, second)), [true, true]);
        assert.equal(await trial.store.release(changed(first, { fence: 0 })), true);
        assert.equal(await trial.other.release(second), true);
        await expectFree(trial);
      },
    ),

    leaseRule(`${who} is out when its lease is over, whoever else is in: its renewal and its release answer false`, async (trial) => {
      const [first, second] = await twoOf(trial, shares, { ttlMs: trial.ttl(100) });
      assert.deepEqual(await trial.other.renew(listOf(second)), [true]);
      await trial.pass(130);
      assert.deepEqual(await trial.store.renew(listOf(first, second)), [false, true]);
      assert.equal(await trial.store.release(first), false);
      await trial.expectHeld(second, trial.other);
      assert.equal(await trial.other.release(second), true);
      await expectFree(trial);
    }),

    leaseRule(`${who} that asks again when its lease is over is in again, beside the others`, async (trial) => {
      const [first, second] = await twoOf(trial, shares, { ttlMs: trial.ttl(100) });
      await trial.pass(130);
      assert.equal((await trial.store.acquire(changed(first, { fence: 0, ttlMs: trial.ttl(5_000) }))).fence, second.fence);
      assert.equal(await trial.other.release(second), true);
      await expectTaken(trial);
      assert.equal(await trial.store.release(first), true);
      await expectFree(trial);
    }),

    leaseRule(`${who} has a longer lease by a renewal or by asking again, and never a shorter one`, readsLease, async (trial) => {
      let held = trial.hold();
      await expectLeaseOf(trial, 4_000, async () => {
        held = await trial.acquired({ shares, ttlMs: trial.ttl(2_000) });
        assert.deepEqual(await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(4_000) }))), [true]);
        assert.deepEqual(await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(100) }))), [true]);
      });
      await expectLeaseOf(trial, 9_000, async () => {
        for (const ttlMs of [trial.ttl(9_000), trial.ttl(100)]) {
          assert.equal((await trial.store.acquire(changed(held, { fence: 0, ttlMs }))).fence, held.fence);
        }
      });
    }),

    leaseRule(`${who} that lingers has its lease set to exactly its time, and no other lease`, readsLease, async (trial) => {
      const [first, second] = await twoOf(trial, shares, { ttlMs: trial.ttl(9_000) }, { ttlMs: trial.ttl(9_000) });
      assert.deepEqual(await trial.store.renew(listOf(changed(first, { ttlMs: trial.ttl(100), lingering: true }))), [true]);
      await trial.pass(130);
      assert.deepEqual(await trial.store.renew(listOf(first, second)), [false, true]);
      await expectTaken(trial);
      await expectLeaseOf(trial, 3_000, async () => {
        assert.deepEqual(await trial.other.renew(listOf(changed(second, { ttlMs: trial.ttl(3_000), lingering: true }))), [true]);
      });
    }),
  ];
}

/** Holds that share a key: rules that readers and permits have in common. */
export const SHARING_RULES: readonly Rule[] = [
  ...KINDS.flatMap(rulesOf),

  rulesWith({ needs: ['permits'] })('a semaphore refuses to be a lock, and a lock to be a semaphore, until nobody is in', async (trial) => {
    const permit = await trial.acquired({ shares: 2 });
    await expectOtherKind(trial, trial.store);
    await expectOtherKind(trial, trial.other);
    await trial.expectHeld(permit);
    assert.equal(await trial.store.release(permit), true);
    const held = await trial.acquired({}, trial.other);
    await expectOtherKind(trial, trial.store, 2);
    await expectOtherKind(trial, trial.other, 2);
    await trial.expectHeld(held, trial.other);
    assert.equal(await trial.other.release(held), true);
    await trial.acquired({ shares: 2 });
  }),

  rulesWith({ needs: ['shared', 'permits'] })('a semaphore refuses to be read, and a key that is read to be a semaphore', async (trial) => {
    const permit = await trial.acquired({ shares: 2 });
    await expectOtherKind(trial, trial.other, 'read');
    assert.equal(await trial.store.release(permit), true);
    const reader = await trial.acquired({ shares: 'read' });
    await expectOtherKind(trial, trial.other, 2);
    await trial.expectHeld(reader);
  }),
];
