import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rule, type Rule } from '../rule.js';
import type { StoreOffer } from '../store-contract.options.js';
import { eventually, newPlace } from '../trial.js';

const OFFERS: readonly StoreOffer[] = ['open', 'turns', 'tickets', 'operator', 'messages', 'search', 'forced', 'health', 'reservesFences'];

/** How a store begins and ends. */
export const LIFE_CYCLE_RULES: readonly Rule[] = [
  rule('the store offers what its suite lists, so that nothing is left untested', async ({ store, options }) => {
    const { operator } = store;
    const has = (name: StoreOffer): boolean =>
      name === 'search' || name === 'forced'
        ? typeof operator?.[name === 'search' ? 'search' : 'onForced'] === 'function'
        : store[name] !== undefined && store[name] !== false;
    const offered = OFFERS.filter(has);
    assert.deepEqual(
      offered,
      OFFERS.filter((name) => options.offers?.includes(name)),
    );
    assert.equal(store.expires, options.expires ?? true);
  }),

  rule('a store that was closed can be opened again', async (trial) => {
    const store = await trial.reopen(await trial.reopen(trial.store));
    const held = await trial.acquired({}, store);
    assert.deepEqual(await store.renew([held]), [true]);
    assert.equal(await store.release(held), true);
  }),

  rule('a store may be closed twice', async (trial) => {
    const third = await trial.connect();
    await third.close();
    await third.close();
  }),

  rule('the end of one store leaves the locks of the others alone', async (trial) => {
    const third = await trial.connect();
    // Where all are one object, there are no others.
    if (third !== trial.store) {
      const held = await trial.acquired();
      await third.close();
      await trial.refused(trial.hold(), trial.other);
      await trial.expectHeld(held);
    }
  }),

  rule('stores with different prefixes know nothing of the locks of each other', { needs: ['open'] }, async (trial) => {
    const elsewhere = await trial.connect(`contract-${randomUUID()}`);
    // Where all are one object, there is one prefix.
    if (elsewhere === trial.store) {
      return;
    }
    const held = await trial.acquired();
    const other = await trial.acquired({}, elsewhere);
    assert.equal(await elsewhere.release(other), true);
    await trial.expectHeld(held);
    assert.deepEqual(await elsewhere.renew([held]), [false]);
  }),

  rule(
    'a listener of turns may be registered before the store is opened, and stays until the store is closed',
    { needs: ['turns'] },
    async (trial) => {
      const notices: string[] = [];
      const waiting = await trial.connect(undefined, (store) =>
        store.turns.onTurn({ turn: (key, name) => key === trial.key && notices.push(name), recheck: () => undefined }),
      );
      const first = newPlace();
      const held = await trial.acquired();
      await trial.refused(trial.hold(), waiting, first);
      await trial.store.release(held);
      await eventually(() => assert.deepEqual(notices, [first.name]));
      await waiting.turns.leave(trial.key, first.name);

      const reopened = await trial.reopen(waiting);
      const second = newPlace();
      const again = await trial.acquired({}, trial.other);
      await trial.refused(trial.hold(), reopened, second);
      await trial.other.release(again);
      await eventually(() => assert.deepEqual(trial.turnsOf(reopened), [second.name]));
      assert.deepEqual(notices, [first.name]);
    },
  ),

  rule(
    'a listener of forced releases may be registered before the store is opened, and stays until the store is closed',
    { needs: ['operator', 'forced'] },
    async (trial) => {
      const notices: string[] = [];
      const holding = await trial.connect(undefined, (store) => store.operator.onForced((key) => key === trial.key && notices.push(key)));
      const { fence } = await trial.acquired({}, holding);
      assert.equal(await trial.other.operator.forceRelease(trial.key, fence), true);
      await eventually(() => assert.equal(notices.length, 1));

      const reopened = await trial.reopen(holding);
      const later: string[] = [];
      reopened.operator.onForced((key) => key === trial.key && later.push(key));
      const again = await trial.acquired({}, reopened);
      assert.equal(await trial.store.operator.forceRelease(trial.key, again.fence), true);
      await eventually(() => assert.equal(later.length, 1));
      assert.equal(notices.length, 1);
    },
  ),
];
