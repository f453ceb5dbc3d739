import assert from 'node:assert/strict';
import { rule, type Need, type Rule } from './rule.js';
import { changed, guestOf, listOf, newOwner, type Trial } from './trial.js';

/** A rule about leases that end by time. */
function leaseRule(name: string, withinMs: number, check: (trial: Trial) => Promise<void>, ...needs: readonly Need[]): Rule {
  return rule(name, check, { needs: ['expiry', ...needs], withinMs });
}

/** Expects that less than `mostMs`, and nearly all of it, is left of the lease. */
async function expectLeft(trial: Trial, mostMs: number): Promise<void> {
  const leftMs = await trial.remainingMs();
  const most = trial.ttl(mostMs);
  const least = most - trial.ms(500);
  assert.ok(leftMs > least && leftMs <= most + 1, `${leftMs} ms are left, not ${least} to ${most} ms`);
}

/** How long a lock stays taken without its holder. */
export const LEASE_RULES: readonly Rule[] = [
  leaseRule('a busy answer says what is left of the lease', 500, async (trial) => {
    await trial.acquired({ ttlMs: trial.ttl(3_000) });
    // The servers of a quorum may grant some milliseconds one after the other.
    await trial.pass(150);
    await expectLeft(trial, 2_900);
  }),

  leaseRule('a lock stays taken until its lease ends', 300, async (trial) => {
    await trial.acquired({ ttlMs: trial.ttl(300) });
    await trial.pass(150);
    await trial.refused(trial.hold(), trial.other);
  }),

  leaseRule('a lease ends by itself, and the lock is free in every process', 4_000, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    await trial.expectFree(trial.other);
    assert.deepEqual(await trial.store.renew(listOf(held)), [false]);
  }),

  leaseRule('a lock whose lease has ended belongs to the next owner: the one before renews and releases nothing', 4_000, async (trial) => {
    const first = await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    const next = await trial.acquired({}, trial.other);
    assert.deepEqual(await trial.store.renew(listOf(first)), [false]);
    assert.equal(await trial.store.release(first), false);
    assert.equal(await trial.store.release(first), false);
    await trial.expectHeld(next, trial.other);
  }),

  leaseRule('an acquire that is sent again has a whole lease from then on, and never a shorter one', 900, async (trial) => {
    const first = await trial.acquired({ ttlMs: trial.ttl(1_000) });
    await trial.pass(550);
    assert.equal((await trial.store.acquire(changed(first, { fence: 0 }))).fence, first.fence);
    await expectLeft(trial, 1_000);
    assert.equal((await trial.store.acquire(changed(first, { fence: 0, ttlMs: trial.ttl(100) }))).fence, first.fence);
    await expectLeft(trial, 1_000);
  }),

  leaseRule('a renewal makes the lease longer, and never shorter', 500, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(500) });
    assert.deepEqual(await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(5_000) }))), [true]);
    await expectLeft(trial, 5_000);
    assert.deepEqual(await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(200) }))), [true]);
    await expectLeft(trial, 5_000);
  }),

  leaseRule('a renewal that is refused does not make the lease longer', 500, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(1_000) });
    const long = changed(held, { ttlMs: trial.ttl(10_000) });
    const strangers = [changed(long, { owner: newOwner() }), changed(long, { fence: held.fence - 1 }), guestOf(long)];
    assert.deepEqual(await trial.store.renew(listOf(...strangers)), [false, false, false]);
    await expectLeft(trial, 1_000);
  }),

  leaseRule('a lease that was made longer stays so, whoever finds it busy', 500, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(500) });
    await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(9_000) })));
    await trial.refused(trial.hold({ ttlMs: trial.ttl(100) }), trial.other);
    await expectLeft(trial, 9_000);
  }),

  leaseRule('the renewal of a hold that lingers makes the lease end after exactly its time', 500, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(9_000) });
    const lingering = changed(held, { ttlMs: trial.ttl(2_000), lingering: true });
    assert.deepEqual(await trial.store.renew(listOf(lingering)), [true]);
    await expectLeft(trial, 2_000);
    assert.equal(await trial.store.release(held), true);
    assert.deepEqual(await trial.store.renew(listOf(lingering)), [false]);
  }),

  leaseRule(
    'the renewal of a hold that lingers leaves the lease as it is while other holds are in the lock',
    500,
    async (trial) => {
      const held = await trial.acquired({ ttlMs: trial.ttl(9_000) });
      const guest = guestOf(held);
      assert.equal(await trial.store.tickets.join(guest), true);
      const lingering = changed(held, { ttlMs: trial.ttl(3_000), lingering: true });
      assert.deepEqual(await trial.store.renew(listOf(lingering)), [true]);
      await expectLeft(trial, 9_000);
      assert.equal(await trial.store.release(guest), true);
      assert.deepEqual(await trial.store.renew(listOf(lingering)), [true]);
      await expectLeft(trial, 3_000);
    },
    'tickets',
  ),

  leaseRule(
    'a join never makes the lease shorter, and may make it longer',
    500,
    async (trial) => {
      const held = await trial.acquired({ ttlMs: trial.ttl(3_000) });
      await trial.store.tickets.join(guestOf(held, { ttlMs: trial.ttl(100) }));
      await expectLeft(trial, 3_000);
      await trial.other.tickets.join(guestOf(held, { ttlMs: trial.ttl(9_000) }));
      await expectLeft(trial, 9_000);
    },
    'tickets',
  ),

  leaseRule(
    'the end of a guest leaves the lease as it is',
    500,
    async (trial) => {
      const held = await trial.acquired({ ttlMs: trial.ttl(3_000) });
      const guest = guestOf(held, { ttlMs: trial.ttl(9_000) });
      assert.equal(await trial.other.tickets.join(guest), true);
      assert.equal(await trial.other.release(guest), true);
      await expectLeft(trial, 9_000);
    },
    'tickets',
  ),

  rule(
    'a lock stays taken past its lease, until it is released',
    async (trial) => {
      const held = await trial.acquired({ ttlMs: trial.ttl(50) });
      await trial.pass(150);
      await trial.refused(trial.hold(), trial.other);
      assert.equal(await trial.store.release(held), true);
      await trial.expectFree();
    },
    { needs: ['no expiry'] },
  ),
];
