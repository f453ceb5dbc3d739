import assert from 'node:assert/strict';
import { rule, rulesWith, type Rule } from '../rule.js';
import { changed, eventually, guestOf, listOf, newOwner, type Trial } from '../trial.js';

/** A rule about leases that end by time. */
const leaseRule = rulesWith({ needs: ['expiry'] });

/**
 * By how much the rest of a lease may be less than the time that has passed would leave, in milliseconds, before the
 * suite stretches it.
 */
const SLACK_MS = 250;
/** Past the end of a lease, a clock of the store may be that much ahead, in milliseconds. */
const AHEAD_MS = 20;

/**
 * Runs `given`, which sets a lease of `ttlMs`. Then expects that the rest of the lease is `ttlMs` less the time that
 * `given` took, as `read` says it: by default a busy answer.
 */
export async function expectLeft(
  trial: Trial,
  ttlMs: number,
  given: () => Promise<void>,
  read: () => Promise<number> = () => trial.remainingMs(),
): Promise<void> {
  const givenAt = performance.now();
  await given();
  const leftMs = await read();
  const most = trial.ttl(ttlMs);
  const least = most - (performance.now() - givenAt) - trial.ms(SLACK_MS);
  assert.ok(leftMs > least && leftMs <= most + 1, `${leftMs} ms are left, not ${least} to ${most} ms`);
}

/** How long a lock stays taken without its holder. */
export const LEASE_RULES: readonly Rule[] = [
  leaseRule('a busy answer says what is left of the lease', { withinMs: 2_000 }, async (trial) => {
    await expectLeft(trial, 3_000, async () => void (await trial.acquired({ ttlMs: trial.ttl(3_000) })));
    // The servers of a quorum may grant one after the other.
    await eventually(async () => {
      const leftMs = await trial.remainingMs();
      assert.ok(leftMs <= trial.ttl(3_000) - trial.ms(100), `${leftMs} ms are left, and do not become less`);
    });
  }),

  leaseRule('a lock stays taken until its lease ends', async (trial) => {
    const startedAt = performance.now();
    await trial.acquired({ ttlMs: trial.ttl(300) });
    for (let isTaken = true; isTaken;) {
      await trial.pass(20);
      isTaken = (await trial.other.acquire(trial.hold())).fence === undefined;
    }
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs >= trial.ttl(300) - AHEAD_MS, `it was free after ${tookMs} ms`);
  }),

  leaseRule('a lease ends by itself, and the lock is free in every process', async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    // A server of a quorum that stood still at the grant may keep its vote for a moment longer.
    await eventually(() => trial.expectFree(trial.other));
    assert.deepEqual(await trial.store.renew(listOf(held)), [false]);
  }),

  leaseRule('a lock whose lease has ended belongs to the next owner: the one before renews and releases nothing', async (trial) => {
    const first = await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    let next = first;
    // A server of a quorum that stood still at the grant may keep its vote for a moment longer.
    await eventually(async () => void (next = await trial.acquired({}, trial.other)));
    assert.deepEqual(await trial.store.renew(listOf(first)), [false]);
    assert.equal(await trial.store.release(first), false);
    assert.equal(await trial.store.release(first), false);
    await trial.expectHeld(next, trial.other);
  }),

  leaseRule('an acquire that is sent again has a whole lease from then on, and never a shorter one', { withinMs: 2_500 }, async (trial) => {
    const first = await trial.acquired({ ttlMs: trial.ttl(3_000) });
    await trial.pass(550);
    await expectLeft(trial, 3_000, async () => {
      assert.equal((await trial.store.acquire(changed(first, { fence: 0 }))).fence, first.fence);
      assert.equal((await trial.store.acquire(changed(first, { fence: 0, ttlMs: trial.ttl(100) }))).fence, first.fence);
    });
  }),

  leaseRule('a renewal makes the lease longer, and never shorter', { withinMs: 1_500 }, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(2_000) });
    await expectLeft(trial, 5_000, async () => {
      assert.deepEqual(await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(5_000) }))), [true]);
      assert.deepEqual(await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(200) }))), [true]);
    });
  }),

  leaseRule('a renewal that is refused does not make the lease longer', { withinMs: 2_500 }, async (trial) => {
    await expectLeft(trial, 3_000, async () => {
      const held = await trial.acquired({ ttlMs: trial.ttl(3_000) });
      const long = changed(held, { ttlMs: trial.ttl(10_000) });
      const strangers = [changed(long, { owner: newOwner() }), changed(long, { fence: held.fence - 1 }), guestOf(long)];
      assert.deepEqual(await trial.store.renew(listOf(...strangers)), [false, false, false]);
    });
  }),

  leaseRule('a lease that was made longer stays so, whoever finds it busy', { withinMs: 1_500 }, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(2_000) });
    await expectLeft(trial, 9_000, async () => {
      await trial.store.renew(listOf(changed(held, { ttlMs: trial.ttl(9_000) })));
      await trial.refused(trial.hold({ ttlMs: trial.ttl(100) }), trial.other);
    });
  }),

  leaseRule('the renewal of a hold that lingers makes the lease end after exactly its time', { withinMs: 2_500 }, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(9_000) });
    const lingering = changed(held, { ttlMs: trial.ttl(3_000), lingering: true });
    await expectLeft(trial, 3_000, async () => assert.deepEqual(await trial.store.renew(listOf(lingering)), [true]));
    assert.equal(await trial.store.release(held), true);
    assert.deepEqual(await trial.store.renew(listOf(lingering)), [false]);
  }),

  leaseRule(
    'the renewal of a hold that lingers leaves the lease as it is while other holds are in the lock',
    { needs: ['tickets'], withinMs: 2_500 },
    async (trial) => {
      let lingering = trial.hold();
      let guest = lingering;
      await expectLeft(trial, 9_000, async () => {
        const held = await trial.acquired({ ttlMs: trial.ttl(9_000) });
        guest = guestOf(held);
        assert.equal(await trial.store.tickets.join(guest), true);
        lingering = changed(held, { ttlMs: trial.ttl(3_000), lingering: true });
        assert.deepEqual(await trial.store.renew(listOf(lingering)), [true]);
      });
      assert.equal(await trial.store.release(guest), true);
      await expectLeft(trial, 3_000, async () => assert.deepEqual(await trial.store.renew(listOf(lingering)), [true]));
    },
  ),

  leaseRule('a join never makes the lease shorter, and may make it longer', { needs: ['tickets'], withinMs: 2_500 }, async (trial) => {
    let held = trial.hold();
    await expectLeft(trial, 3_000, async () => {
      held = await trial.acquired({ ttlMs: trial.ttl(3_000) });
      await trial.store.tickets.join(guestOf(held, { ttlMs: trial.ttl(100) }));
    });
    await expectLeft(trial, 9_000, async () => void (await trial.other.tickets.join(guestOf(held, { ttlMs: trial.ttl(9_000) }))));
  }),

  leaseRule('the end of a guest leaves the lease as it is', { needs: ['tickets'], withinMs: 2_500 }, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(3_000) });
    const guest = guestOf(held, { ttlMs: trial.ttl(9_000) });
    await expectLeft(trial, 9_000, async () => {
      assert.equal(await trial.other.tickets.join(guest), true);
      assert.equal(await trial.other.release(guest), true);
    });
  }),

  rule('a lock stays taken past its lease, until it is released', { needs: ['no expiry'] }, async (trial) => {
    const held = await trial.acquired({ ttlMs: trial.ttl(50) });
    await trial.pass(150);
    await trial.refused(trial.hold(), trial.other);
    assert.equal(await trial.store.release(held), true);
    await trial.expectFree();
  }),
];
