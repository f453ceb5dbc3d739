import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Shares } from '../../../core/seam/lock-store.js';
import { rulesWith, type Rule } from '../../rule.js';
import { changed, listOf, newPlace, notified, type Trial } from '../../trial.js';
import { KINDS, twoOf, type Kind } from './sharing.js';
import { CLAIM_MS, expectTurns, queued, type Waiter } from '../turns.js';

/** Expects that the other process is notified of the turns of these, in any order, and of no others. */
async function expectTurnsOfAll(trial: Trial, ...waiters: readonly Waiter[]): Promise<void> {
  const names = waiters.map(({ place }) => place.name).toSorted();
  await notified(() => assert.deepEqual([...trial.turnsOf(trial.other)].toSorted(), names));
}

function rulesOf({ who, offer, shares, rival }: Kind): readonly Rule[] {
  const turnRule = rulesWith({ needs: ['turns', offer], withinMs: CLAIM_MS });
  return [
    turnRule(`${who} that queues gets its turn in order, and keeps its place when it asks again`, async (trial) => {
      const holder = await trial.acquired(rival);
      const first = await queued(trial, trial.other, rival.shares);
      const second = await queued(trial, trial.other, shares);
      await trial.refused(first.hold, trial.other, first.place);
      await trial.refused(second.hold, trial.other, second.place);
      await trial.store.release(holder);
      await expectTurns(trial, first);
      await trial.refused(second.hold, trial.other, second.place);
      const granted = await trial.granted(first.hold, trial.other, first.place);
      await trial.other.release(granted);
      await expectTurns(trial, first, second);
      await trial.granted(second.hold, trial.other, second.place);
    }),

    turnRule(`${who} that leaves with its turn hands it to the next`, async (trial) => {
      const holder = await trial.acquired(rival);
      const first = await queued(trial, trial.other, shares);
      const second = await queued(trial, trial.other, rival.shares);
      await trial.store.release(holder);
      await expectTurns(trial, first);
      await trial.other.turns.leave(trial.key, first.place.name);
      await expectTurns(trial, first, second);
      await trial.granted(second.hold, trial.other, second.place);
    }),

    turnRule(`${who} that does not claim its turn for a second loses it to the next`, { withinMs: 2 * CLAIM_MS }, async (trial) => {
      const holder = await trial.acquired(rival);
      const first = await queued(trial, trial.other, shares);
      const second = await queued(trial, trial.other, rival.shares);
      await trial.store.release(holder);
      await trial.refused(second.hold, trial.other, second.place);
      await sleep(CLAIM_MS + 50);
      await trial.granted(second.hold, trial.other, second.place);
      await trial.refused(first.hold, trial.other, first.place);
    }),

    turnRule(
      `${who} whose lease is over makes room for the first in the queue, and for no newcomer`,
      { needs: ['expiry'] },
      async (trial) => {
        const holder = await trial.acquired({ shares });
        const waiter = await queued(trial, trial.other, rival.shares);
        await trial.store.renew(listOf(changed(holder, { ttlMs: trial.ttl(100), lingering: true })));
        await trial.pass(130);
        await trial.refused(trial.hold({ shares }), trial.store);
        await expectTurns(trial, waiter);
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
    const [first, second] = await twoOf(trial, 'read');
    const [write, reader] = (await queuedAs(trial, undefined, 'read')) as [Waiter, Waiter];
    await trial.refused(trial.hold({ shares: 'read' }), trial.store);
    await trial.store.release(first);
    await trial.refused(trial.hold({ shares: 'read' }), trial.store, newPlace('read'));
    await trial.other.release(second);
    await expectTurns(trial, write);
    await trial.refused(trial.hold({ shares: 'read' }), trial.store);
    await trial.refused(reader.hold, trial.other, reader.place);
    await trial.granted(write.hold, trial.other, write.place);
  }),

  readerRule('after a write all readers at the head are notified, up to the next write, and come in at one fence', async (trial) => {
    const holder = await trial.acquired();
    const waiters = await queuedAs(trial, 'read', 'read', undefined, 'read');
    const [first, second, write, last] = waiters as [Waiter, Waiter, Waiter, Waiter];
    await trial.store.release(holder);
    await expectTurnsOfAll(trial, first, second);
    await trial.refused(last.hold, trial.other, last.place);
    const one = await trial.granted(first.hold, trial.other, first.place);
    const other = await trial.granted(second.hold, trial.other, second.place);
    assert.equal(one.fence, other.fence);
    await trial.other.release(one);
    await trial.refused(write.hold, trial.other, write.place);
    await trial.other.release(other);
    await expectTurnsOfAll(trial, first, second, write);
    await trial.granted(write.hold, trial.other, write.place);
  }),

  readerRule('a write that leaves the queue lets the readers in that are behind it', async (trial) => {
    await trial.acquired({ shares: 'read' });
    const [write, reader] = (await queuedAs(trial, undefined, 'read')) as [Waiter, Waiter];
    await trial.other.turns.leave(trial.key, write.place.name);
    await expectTurns(trial, reader);
    await trial.granted(reader.hold, trial.other, reader.place);
  }),

  permitRule('a release of a permit notifies one of the queue, and nobody else gets its room', async (trial) => {
    const [first] = await twoOf(trial, 2);
    const [next, last] = (await queuedAs(trial, 2, 2)) as [Waiter, Waiter];
    await trial.store.release(first);
    await expectTurns(trial, next);
    await trial.refused(trial.hold({ shares: 2 }), trial.store);
    await trial.refused(last.hold, trial.other, last.place);
    await trial.granted(next.hold, trial.other, next.place);
    await trial.refused(last.hold, trial.other, last.place);
    await expectTurns(trial, next);
  }),

  permitRule('a release that makes room for several permits notifies as many as fit', async (trial) => {
    const holder = await trial.acquired({ shares: 1 });
    const [first, second, third] = (await queuedAs(trial, 2, 2, 2)) as [Waiter, Waiter, Waiter];
    await trial.store.release(holder);
    await expectTurnsOfAll(trial, first, second);
    await trial.refused(third.hold, trial.other, third.place);
    await trial.granted(second.hold, trial.other, second.place);
    const granted = await trial.granted(first.hold, trial.other, first.place);
    await trial.refused(third.hold, trial.other, third.place);
    await trial.other.release(granted);
    await expectTurnsOfAll(trial, first, second, third);
  }),
];
