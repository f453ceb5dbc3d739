import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Shares } from '../../../core/seam/lock-store.js';
import type { Place } from '../../../core/seam/lock-store.js';
import { rulesWith, type Rule } from '../../rule.js';
import { changed, listOf, newPlace, notified, type Trial } from '../../trial.js';
import { KINDS, twoOf, type Kind } from './sharing.js';
import { CLAIM_MS, expectTurns, queued, type Waiter } from '../turns.js';

/** Waits for the notices of places that are notified together, in any order, and expects no others. */
async function expectTurnsOfAll(notices: readonly string[], ...places: readonly Place[]): Promise<void> {
  const names = places.map(({ name }) => name).toSorted();
  await notified(() => assert.deepEqual([...notices].toSorted(), names));
}

function rulesOf({ who, offer, shares, rival }: Kind): readonly Rule[] {
  const turnRule = rulesWith({ needs: ['turns', offer], withinMs: CLAIM_MS });
  return [
    turnRule(`${who} that queues gets its turn in order, and keeps its place when it asks again`, async (trial) => {
      const notices = trial.turnsOf(trial.other);
      const holder = await trial.acquired(rival);
      const first = await queued(trial, trial.other, rival.shares);
      const second = await queued(trial, trial.other, shares);
      await trial.refused(first.hold, trial.other, first.place);
      await trial.refused(second.hold, trial.other, second.place);
      await trial.store.release(holder);
      await expectTurns(notices, first.place);
      await trial.refused(second.hold, trial.other, second.place);
      const granted = await trial.granted(first.hold, trial.other, first.place);
      await trial.other.release(granted);
      await expectTurns(notices, first.place, second.place);
      await trial.granted(second.hold, trial.other, second.place);
    }),

    turnRule(`${who} that leaves with its turn hands it to the next`, async (trial) => {
      const notices = trial.turnsOf(trial.other);
      const holder = await trial.acquired(rival);
      const first = await queued(trial, trial.other, shares);
      const second = await queued(trial, trial.other, rival.shares);
      await trial.store.release(holder);
      await expectTurns(notices, first.place);
      await trial.other.turns.leave(trial.key, first.place.name);
      await expectTurns(notices, first.place, second.place);
      await trial.granted(second.hold, trial.other, second.place);
    }),

    rulesWith({ needs: ['turns', offer], withinMs: 2 * CLAIM_MS })(
      `${who} that does not claim its turn for a second loses it to the next`,
      async (trial) => {
        const holder = await trial.acquired(rival);
        const first = await queued(trial, trial.other, shares);
        const second = await queued(trial, trial.other, rival.shares);
        await trial.store.release(holder);
        await trial.refused(second.hold, trial.other, second.place);
        await sleep(CLAIM_MS + 50);
        await trial.granted(second.hold, trial.other, second.place);
        await trial.refused(first.hold, trial.other, first.place);
      },
    ),

    rulesWith({ needs: ['turns', offer, 'expiry'], withinMs: CLAIM_MS })(
      `${who} whose lease is over makes room for the first in the queue, and for no newcomer`,
      async (trial) => {
        const notices = trial.turnsOf(trial.other);
        const holder = await trial.acquired({ shares });
        const waiter = await queued(trial, trial.other, rival.shares);
        await trial.store.renew(listOf(changed(holder, { ttlMs: trial.ttl(100), lingering: true })));
        await trial.pass(130);
        await trial.refused(trial.hold({ shares }), trial.store);
        await expectTurns(notices, waiter.place);
        await trial.granted(waiter.hold, trial.other, waiter.place);
      },
    ),
  ];
}

const readerRule = rulesWith({ needs: ['turns', 'shared'], withinMs: CLAIM_MS });
const permitRule = rulesWith({ needs: ['turns', 'permits'], withinMs: CLAIM_MS });

/** Queues that many behind the holders, each for its own process. */
async function queuedAs(trial: Trial, ...all: readonly (Shares | undefined)[]): Promise<Waiter[]> {
  const waiters: Waiter[] = [];
  for (const shares of all) {
    waiters.push(await queued(trial, trial.other, shares));
  }
  return waiters;
}

/** The order of those who would share a key. `trial.store` holds, `trial.other` waits. */
export const TURN_RULES_OF_SHARERS: readonly Rule[] = [
  ...KINDS.flatMap(rulesOf),

  readerRule('a reader that comes does not overtake a write that queues', async (trial) => {
    const notices = trial.turnsOf(trial.other);
    const [first, second] = await twoOf(trial, 'read');
    const [write, reader] = (await queuedAs(trial, undefined, 'read')) as [Waiter, Waiter];
    await trial.refused(trial.hold({ shares: 'read' }), trial.store);
    await trial.store.release(first);
    await trial.refused(trial.hold({ shares: 'read' }), trial.store, newPlace('read'));
    await trial.other.release(second);
    await expectTurns(notices, write.place);
    await trial.refused(trial.hold({ shares: 'read' }), trial.store);
    await trial.refused(reader.hold, trial.other, reader.place);
    await trial.granted(write.hold, trial.other, write.place);
  }),

  readerRule('after a write all readers at the head are notified, up to the next write, and come in at one fence', async (trial) => {
    const notices = trial.turnsOf(trial.other);
    const holder = await trial.acquired();
    const waiters = await queuedAs(trial, 'read', 'read', undefined, 'read');
    const [first, second, write, last] = waiters as [Waiter, Waiter, Waiter, Waiter];
    await trial.store.release(holder);
    await expectTurnsOfAll(notices, first.place, second.place);
    await trial.refused(last.hold, trial.other, last.place);
    const one = await trial.granted(first.hold, trial.other, first.place);
    const other = await trial.granted(second.hold, trial.other, second.place);
    assert.equal(one.fence, other.fence);
    await trial.other.release(one);
    await trial.refused(write.hold, trial.other, write.place);
    await trial.other.release(other);
    await expectTurnsOfAll(notices, first.place, second.place, write.place);
    await trial.granted(write.hold, trial.other, write.place);
  }),

  readerRule('a write that leaves the queue lets the readers in that are behind it', async (trial) => {
    const notices = trial.turnsOf(trial.other);
    await trial.acquired({ shares: 'read' });
    const [write, reader] = (await queuedAs(trial, undefined, 'read')) as [Waiter, Waiter];
    await trial.other.turns.leave(trial.key, write.place.name);
    await expectTurns(notices, reader.place);
    await trial.granted(reader.hold, trial.other, reader.place);
  }),

  permitRule('a release of a permit notifies one of the queue, and nobody else gets its room', async (trial) => {
    const notices = trial.turnsOf(trial.other);
    const [first] = await twoOf(trial, 2);
    const [next, last] = (await queuedAs(trial, 2, 2)) as [Waiter, Waiter];
    await trial.store.release(first);
    await expectTurns(notices, next.place);
    await trial.refused(trial.hold({ shares: 2 }), trial.store);
    await trial.refused(last.hold, trial.other, last.place);
    await trial.granted(next.hold, trial.other, next.place);
    await trial.refused(last.hold, trial.other, last.place);
    await expectTurns(notices, next.place);
  }),

  permitRule('a release that makes room for several permits notifies as many as fit', async (trial) => {
    const notices = trial.turnsOf(trial.other);
    const holder = await trial.acquired({ shares: 1 });
    const [first, second, third] = (await queuedAs(trial, 2, 2, 2)) as [Waiter, Waiter, Waiter];
    await trial.store.release(holder);
    await expectTurnsOfAll(notices, first.place, second.place);
    await trial.refused(third.hold, trial.other, third.place);
    await trial.granted(second.hold, trial.other, second.place);
    const granted = await trial.granted(first.hold, trial.other, first.place);
    await trial.refused(third.hold, trial.other, third.place);
    await trial.other.release(granted);
    await expectTurnsOfAll(notices, first.place, second.place, third.place);
  }),
];
