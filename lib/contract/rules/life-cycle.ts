import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rule, type Rule } from '../rule.js';
import type { StoreOffer } from '../store-contract.options.js';
import { newPlace, notified, type OfferedStore } from '../trial.js';

const OFFERS: readonly StoreOffer[] = [
  'open',
  'turns',
  'tickets',
  'operator',
  'messages',
  'search',
  'forced',
  'health',
  'reservesFences',
  'shared',
  'permits',
];

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
    'a listener of turns may be registered before the store is opened, and stays until its signal aborts, also over a close',
    { needs: ['turns'] },
    async (trial) => {
      // A message may come twice.
      const notices = new Set<string>();
      const over = new AbortController();
      const listener = { turn: (key: string, name: string) => key === trial.key && notices.add(name), recheck: () => undefined };
      const waiting = await trial.connect(undefined, (store) => store.turns.onTurn(listener, over.signal));
      /** Gives a turn to a place of that store, which the store notifies of it. */
      const giveTurn = async (store: OfferedStore, holder: OfferedStore): Promise<string> => {
        const { name } = newPlace();
        const held = await trial.acquired({}, holder);
        await trial.refused(trial.hold(), store, { name });
        await holder.release(held);
        await notified(() => assert.equal(trial.turnsOf(store).at(-1), name));
        await store.turns.leave(trial.key, name);
        return name;
      };
      const first = await giveTurn(waiting, trial.store);
      assert.deepEqual([...notices], [first]);
      const reopened = await trial.reopen(waiting);
      const second = await giveTurn(reopened, trial.other);
      // Where a store is not opened, another store takes its place.
      assert.deepEqual([...notices], reopened === waiting ? [first, second] : [first]);
      over.abort();
      assert.ok(!notices.has(await giveTurn(reopened, trial.other)), 'the listener is still called');
    },
  ),

  rule(
    'a listener of forced releases may be registered before the store is opened, and stays until its signal aborts, also over a close',
    { needs: ['operator', 'forced'] },
    async (trial) => {
      // A message may come twice.
      const notices = new Set<number>();
      const over = new AbortController();
      const holding = await trial.connect(undefined, (store) =>
        store.operator.onForced((key, fence) => key === trial.key && notices.add(fence), over.signal),
      );
      const all = new Set<number>();
      /** Releases a lock of that store by force, of which the store is notified. */
      const force = async (store: OfferedStore, by: OfferedStore): Promise<number> => {
        const { fence } = await trial.acquired({}, store);
        assert.equal(await by.operator.forceRelease(trial.key, fence), true);
        await notified(() => assert.ok(all.has(fence)));
        return fence;
      };
      const listen = (store: OfferedStore): void => store.operator.onForced((key, fence) => key === trial.key && all.add(fence));
      listen(holding);
      const first = await force(holding, trial.other);
      assert.deepEqual([...notices], [first]);
      const reopened = await trial.reopen(holding);
      listen(reopened);
      const second = await force(reopened, trial.store);
      assert.deepEqual([...notices], reopened === holding ? [first, second] : [first]);
      over.abort();
      assert.ok(!notices.has(await force(reopened, trial.store)), 'the listener is still called');
    },
  ),
];
