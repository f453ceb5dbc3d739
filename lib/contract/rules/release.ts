import assert from 'node:assert/strict';
import { rule, type Rule } from '../rule.js';
import { changed, guestOf, newOwner } from '../trial.js';

/** Releases, and commands of holds that were released. */
export const RELEASE_RULES: readonly Rule[] = [
  rule('a release frees the lock for every process', async (trial) => {
    const held = await trial.acquired();
    assert.equal(await trial.store.release(held), true);
    await trial.expectFree(trial.other);
    await trial.expectFree(trial.store);
  }),

  rule('a release of an unanswered hold that is sent twice answers the same, and does not touch the next owner', async (trial) => {
    const first = await trial.acquired({ unanswered: true });
    assert.equal(await trial.store.release(first), true);
    const next = await trial.acquired({}, trial.other);
    assert.equal(await trial.store.release(first), true);
    await trial.expectHeld(next, trial.other);
  }),

  rule('a copy of a release, whose hold was answered, does not touch the next owner', async (trial) => {
    const first = await trial.acquired();
    assert.equal(await trial.store.release(first), true);
    const next = await trial.acquired({}, trial.other);
    // The release may find nothing, or a mark that the store has left all the same.
    await trial.store.release(first);
    await trial.store.release(changed(first, { unanswered: true }));
    await trial.expectHeld(next, trial.other);
  }),

  rule('two copies of a release of an unanswered hold that arrive at the same time answer the same', async (trial) => {
    const held = await trial.acquired({ unanswered: true });
    assert.deepEqual(await Promise.all([trial.store.release(held), trial.store.release(held)]), [true, true]);
    await trial.expectFree();
  }),

  rule('a release finds its hold without the fence, since the reply that had the fence may be lost', async (trial) => {
    const held = await trial.acquired();
    assert.equal(await trial.store.release(changed(held, { fence: 0 })), true);
    await trial.expectFree();
  }),

  rule('a release of a hold that was not in answers false, however often it is sent', async (trial) => {
    const stranger = trial.hold({ unanswered: true });
    assert.equal(await trial.store.release(stranger), false);
    assert.equal(await trial.store.release(stranger), false);
    const held = await trial.acquired();
    const late = trial.hold();
    assert.equal(await trial.store.release(late), false);
    assert.equal(await trial.store.release(late), false);
    await trial.expectHeld(held);
  }),

  rule('a release of another owner, or of another hold of this owner, frees nothing', async (trial) => {
    const held = await trial.acquired();
    assert.equal(await trial.store.release(guestOf(held)), false);
    assert.equal(await trial.other.release(guestOf(held, { owner: newOwner() })), false);
    await trial.expectHeld(held);
    await trial.refused();
  }),

  rule('a release concerns its own key only', async (trial) => {
    const held = await trial.acquired();
    const elsewhere = await trial.acquired({ key: `${trial.key} elsewhere`, owner: held.owner });
    assert.equal(await trial.store.release(elsewhere), true);
    await trial.expectHeld(held);
  }),

  rule('an acquire that arrives after its own release is refused, and the lock stays free', async (trial) => {
    const late = trial.hold({ unanswered: true });
    assert.equal(await trial.store.release(late), false);
    await trial.refused(late);
    await trial.pass(500);
    await trial.refused(late);
    await trial.expectFree();
  }),

  rule('an acquire that arrives again after its hold was released is refused, and the lock stays free', async (trial) => {
    const held = await trial.acquired({ unanswered: true });
    assert.equal(await trial.store.release(held), true);
    await trial.refused(held);
    await trial.pass(500);
    await trial.refused(held);
    await trial.expectFree(trial.other);
    await trial.refused(held);
  }),

  rule('a late acquire does not disturb the owner that came after it', async (trial) => {
    const first = await trial.acquired({ unanswered: true });
    await trial.store.release(first);
    const next = await trial.acquired({}, trial.other);
    await trial.refused(first);
    await trial.expectHeld(next, trial.other);
    assert.equal(await trial.other.release(next), true);
  }),
];
