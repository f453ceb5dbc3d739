import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord, Place, Shares } from '../../core/seam/lock-store.js';
import { rulesWith, type Rule } from '../rule.js';
import { changed, guestOf, listOf, newPlace, notified, type OfferedStore, type Trial } from '../trial.js';

/**
 * For how long a lock is reserved for a place, in milliseconds: a rule of the contract, which the suite does not
 * stretch.
 */
export const CLAIM_MS = 1_000;

/** A rule whose claims hold as long as the lock stays reserved. */
const turnRule = rulesWith({ needs: ['turns'], withinMs: CLAIM_MS });

/** A hold that waits in the queue of its key. */
export interface Waiter {
  readonly hold: HoldRecord;
  readonly place: Place;
}

/** Queues behind the holder, for a write unless it would share the key. */
export async function queued(trial: Trial, store: OfferedStore = trial.other, shares?: Shares): Promise<Waiter> {
  const waiter = { hold: trial.hold({ shares }), place: newPlace(shares) };
  await trial.refused(waiter.hold, store, waiter.place);
  return waiter;
}

/** A holder in this process, and two that queue behind it in the other. */
async function twoQueued(trial: Trial): Promise<{ holder: HoldRecord; first: Waiter; second: Waiter }> {
  return { holder: await trial.acquired(), first: await queued(trial), second: await queued(trial) };
}

/** Queues behind a holder whose lease then ends. */
async function queuedUntilTheLeaseEnds(trial: Trial): Promise<Waiter> {
  const holder = await trial.acquired();
  const waiter = await queued(trial);
  const [isIn] = await trial.store.renew(listOf(changed(holder, { ttlMs: trial.ttl(100), lingering: true })));
  assert.equal(isIn, true);
  await trial.pass(130);
  return waiter;
}

/** Expects that the other process is notified of the turns of these, in this order, and of no others. */
export async function expectTurns(trial: Trial, ...waiters: readonly Waiter[]): Promise<void> {
  const names = waiters.map(({ place }) => place.name);
  await notified(() => assert.deepEqual(trial.turnsOf(trial.other), names));
}

/** The order of waiters in the queue. `trial.store` holds, `trial.other` waits. */
export const TURN_RULES: readonly Rule[] = [
  turnRule('a released lock is reserved for the first in the queue, which is notified, and for no other', async (trial) => {
    const { holder, first, second } = await twoQueued(trial);
    await trial.store.release(holder);
    await expectTurns(trial, first);
    await trial.refused(trial.hold(), trial.store);
    await trial.refused(second.hold, trial.other, second.place);
    await trial.granted(first.hold, trial.other, first.place);
    await expectTurns(trial, first);
  }),

  turnRule('a lock that nobody queues for is reserved for nobody', async (trial) => {
    const holder = await trial.acquired();
    await trial.refused(trial.hold(), trial.other);
    await trial.store.release(holder);
    await trial.expectFree();
  }),

  turnRule('a busy answer to a place says how soon to ask again, if it says so at all', async (trial) => {
    await trial.acquired();
    const { recheckMs = 1 } = await trial.refused(trial.hold(), trial.other, newPlace());
    assert.ok(recheckMs > 0, `${recheckMs} ms`);
  }),

  turnRule('a newcomer that finds the lock free while others queue hands it to the first of them', { needs: ['expiry'] }, async (trial) => {
    const first = await queuedUntilTheLeaseEnds(trial);
    await trial.refused(trial.hold(), trial.store);
    await expectTurns(trial, first);
    await trial.granted(first.hold, trial.other, first.place);
  }),

  turnRule('the first in the queue takes a lock whose lease has ended', { needs: ['expiry'] }, async (trial) => {
    const first = await queuedUntilTheLeaseEnds(trial);
    const second = await queued(trial);
    await trial.refused(second.hold, trial.other, second.place);
    await trial.granted(first.hold, trial.other, first.place);
  }),

  turnRule('a turn that nobody claims for a second goes to the next in the queue', { withinMs: 2 * CLAIM_MS }, async (trial) => {
    const { holder, first, second } = await twoQueued(trial);
    await trial.store.release(holder);
    await sleep(CLAIM_MS + 50);
    await trial.refused(first.hold, trial.other, first.place);
    await trial.granted(second.hold, trial.other, second.place);
  }),

  turnRule('an attempt that is sent twice keeps its place', async (trial) => {
    const { holder, first, second } = await twoQueued(trial);
    await trial.refused(first.hold, trial.other, first.place);
    await trial.store.release(holder);
    await expectTurns(trial, first);
    const next = await trial.granted(first.hold, trial.other, first.place);
    await trial.other.release(next);
    await expectTurns(trial, first, second);
  }),

  turnRule('a grant that is sent twice answers the same fence', async (trial) => {
    const { holder, first } = await twoQueued(trial);
    await trial.store.release(holder);
    const granted = await trial.granted(first.hold, trial.other, first.place);
    assert.equal((await trial.granted(first.hold, trial.other, first.place)).fence, granted.fence);
  }),

  turnRule('a place that leaves is not notified, and leaving again takes nobody else away', async (trial) => {
    const { holder, first, second } = await twoQueued(trial);
    await trial.other.turns.leave(trial.key, first.place.name);
    await trial.other.turns.leave(trial.key, first.place.name);
    await trial.store.release(holder);
    await expectTurns(trial, second);
  }),

  turnRule('a place that leaves with its turn hands it to the next', async (trial) => {
    const { holder, first, second } = await twoQueued(trial);
    await trial.store.release(holder);
    await expectTurns(trial, first);
    await trial.other.turns.leave(trial.key, first.place.name);
    await expectTurns(trial, first, second);
    await trial.other.turns.leave(trial.key, second.place.name);
    await trial.expectFree();
  }),

  turnRule('leaving a place takes no later one away, nor a lock', async (trial) => {
    const holder = await trial.acquired();
    const first = await queued(trial);
    await trial.other.turns.leave(trial.key, first.place.name);
    const again = newPlace();
    await trial.refused(first.hold, trial.other, again);
    await trial.other.turns.leave(trial.key, first.place.name);
    await trial.store.release(holder);
    await trial.refused(trial.hold(), trial.store);
    const granted = await trial.granted(first.hold, trial.other, again);
    await trial.other.turns.leave(trial.key, again.name);
    await trial.expectHeld(granted, trial.other);
  }),

  turnRule('a release that is sent twice hands over once', async (trial) => {
    const { holder, first } = await twoQueued(trial);
    await trial.store.release(holder);
    await trial.store.release(holder);
    await trial.pass(50);
    await expectTurns(trial, first);
    await trial.granted(first.hold, trial.other, first.place);
  }),

  turnRule('an acquire of a hold that has ended neither takes the lock nor queues', async (trial) => {
    const holder = await trial.acquired();
    const late = trial.hold({ unanswered: true });
    await trial.other.release(late);
    await trial.refused(late, trial.other, newPlace());
    await trial.store.release(holder);
    await trial.expectFree();
  }),

  turnRule('a notice comes outside the contexts of the callers', async (trial) => {
    const context = new AsyncLocalStorage<string>();
    const contexts = new Set<string | undefined>();
    trial.other.turns.onTurn({ turn: (key) => key === trial.key && contexts.add(context.getStore()), recheck: () => undefined });
    const holder = await trial.acquired();
    await context.run('the context of a waiting call', () => queued(trial));
    await trial.store.release(holder);
    await notified(() => assert.deepEqual([...contexts], [undefined]));
  }),

  turnRule('a join enters before the queue', { needs: ['tickets'] }, async (trial) => {
    const holder = await trial.acquired();
    await queued(trial);
    assert.equal(await trial.other.tickets.join(guestOf(holder)), true);
  }),

  turnRule('a forced release hands over', { needs: ['operator'] }, async (trial) => {
    const { fence } = await trial.acquired();
    const first = await queued(trial);
    assert.equal(await trial.store.operator.forceRelease(trial.key, fence), true);
    await trial.refused(trial.hold(), trial.store);
    await trial.granted(first.hold, trial.other, first.place);
  }),
];
