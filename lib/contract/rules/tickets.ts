import assert from 'node:assert/strict';
import { isLockError } from '../../core/words/errors.js';
import { rulesWith, type Rule } from '../rule.js';
import { guestOf, listOf, newOwner } from '../trial.js';

/** The most holds in one lock. */
const MOST_HOLDS = 1_000;

const ticketRule = rulesWith({ needs: ['tickets'] });

/** Whether an error says that no more holds fit into the lock. */
function isFull(error: unknown): boolean {
  return isLockError(error) && error.code === 'LOCK_CONFIGURATION';
}

/** Further holds in a running lock. */
export const TICKET_RULES: readonly Rule[] = [
  ticketRule('a join from another process adds a hold, and the lock is free when the last hold has left', async (trial) => {
    const first = await trial.acquired();
    const guest = guestOf(first, { by: 'guest' });
    assert.equal(await trial.other.tickets.join(guest), true);
    assert.equal(await trial.store.release(first), true);
    await trial.refused(trial.hold(), trial.other);
    assert.deepEqual(await trial.other.renew(listOf(guest, first)), [true, false]);
    assert.equal(await trial.other.release(guest), true);
    await trial.expectFree();
  }),

  ticketRule('a guest that leaves first leaves the lock to its owner', async (trial) => {
    const first = await trial.acquired();
    const guest = guestOf(first);
    assert.equal(await trial.other.tickets.join(guest), true);
    assert.equal(await trial.other.release(guest), true);
    await trial.expectHeld(first);
    await trial.refused(trial.hold(), trial.other);
  }),

  ticketRule('a join that is sent twice is one hold', async (trial) => {
    const first = await trial.acquired();
    const guest = guestOf(first);
    assert.deepEqual(await Promise.all([trial.store.tickets.join(guest), trial.store.tickets.join(guest)]), [true, true]);
    assert.equal(await trial.store.tickets.join(guest), true);
    assert.equal(await trial.store.release(guest), true);
    assert.equal(await trial.store.release(first), true);
    await trial.expectFree();
  }),

  ticketRule('a join with another owner or fence is refused, and adds no hold', async (trial) => {
    const first = await trial.acquired();
    for (const stranger of [guestOf(first, { owner: newOwner() }), guestOf(first, { fence: first.fence - 1 })]) {
      assert.equal(await trial.store.tickets.join(stranger), false);
      assert.deepEqual(await trial.store.renew(listOf(stranger)), [false]);
    }
    assert.equal(await trial.store.release(first), true);
    await trial.expectFree();
  }),

  ticketRule('a join of a lock that has ended is refused, and creates none', async (trial) => {
    const first = await trial.acquired();
    assert.equal(await trial.store.release(first), true);
    assert.equal(await trial.store.tickets.join(guestOf(first)), false);
    await trial.expectFree();
    const next = await trial.acquired();
    assert.equal(await trial.store.tickets.join(guestOf(first)), false);
    assert.equal(await trial.store.tickets.join(guestOf(next, { fence: first.fence })), false);
  }),

  ticketRule('a join that arrives after its own release is refused', async (trial) => {
    const first = await trial.acquired();
    const late = guestOf(first, { unanswered: true });
    assert.equal(await trial.store.release(late), false);
    assert.equal(await trial.store.tickets.join(late), false);
    const guest = guestOf(first, { unanswered: true });
    assert.equal(await trial.store.tickets.join(guest), true);
    assert.equal(await trial.store.release(guest), true);
    assert.equal(await trial.store.tickets.join(guest), false);
    await trial.expectHeld(first);
  }),

  ticketRule('a join of a reader adds one beside it, at its fence and with a lease of its own', { needs: ['shared'] }, async (trial) => {
    const first = await trial.acquired({ shares: 'read' });
    const guest = guestOf(first, { unanswered: true });
    assert.equal(await trial.other.tickets.join(guest), true);
    assert.equal(await trial.other.tickets.join(guest), true);
    for (const stranger of [guestOf(first, { owner: newOwner() }), guestOf(first, { fence: first.fence - 1 })]) {
      assert.equal(await trial.store.tickets.join(stranger), false);
    }
    assert.equal(await trial.store.release(first), true);
    await trial.refused(trial.hold(), trial.store);
    assert.deepEqual(await trial.other.renew(listOf(guest, first)), [true, false]);
    assert.equal(await trial.other.release(guest), true);
    assert.equal(await trial.other.tickets.join(guest), false);
    assert.equal(await trial.other.tickets.join(guestOf(first)), false);
    await trial.expectFree();
  }),

  ticketRule(`a lock takes ${MOST_HOLDS} holds and no more, until one of them has left`, async (trial) => {
    const first = await trial.acquired({ ttlMs: trial.ttl(60_000), limitMs: 15_000 });
    const guests = Array.from({ length: MOST_HOLDS - 1 }, () => guestOf(first));
    for (const guest of guests) {
      assert.equal(await trial.store.tickets.join(guest), true);
    }
    const late = guestOf(first);
    await assert.rejects(trial.store.tickets.join(late), isFull, 'a hold too many');
    // A command that is sent twice answers as it did first; a stranger does not learn how many there are.
    const guest = guests[0]!;
    assert.equal(await trial.store.tickets.join(guest), true);
    assert.equal(await trial.store.tickets.join(guestOf(late, { owner: newOwner() })), false);
    assert.equal(await trial.store.release(guest), true);
    assert.equal(await trial.store.tickets.join(late), true);
  }),
];
