import { expect } from '@jest/globals';
import { follow } from '../../console/page/app/connection/follow';
import { hotNames } from '../../console/page/app/model/hot-names';
import { freedRow, lockRows, type LockRow } from '../../console/page/app/model/lock-rows';
import { merge } from '../../console/page/app/model/merge';
import { NOTHING, type State, type StoreState } from '../../console/page/app/model/state';
import { timeline } from '../../console/page/app/model/timeline';
import { troubleWords } from '../../console/page/app/model/trouble-words';
import { waitForest } from '../../console/page/app/model/wait-forest';
import { waitsForStore } from '../../console/page/app/model/waits-for-store';
import { SurveySequence } from '../../console/page/survey-sequence';
import type { PeerHealth, Survey } from '../../lib/operate/peers/survey';
import { surveyOfShop } from './support/survey-of-shop';

/** The time of the browser when a survey comes. */
const NOW = 1_795_390_000_000;

/** The state of a browser after surveys that came one after the other, a second apart; the last one at `NOW`. */
function stateAfter(...surveys: readonly Survey[]): State {
  return surveys.reduce((state, survey, place) => {
    const at = NOW - (surveys.length - 1 - place) * 1_000;
    const snapshot = new SurveySequence().next([{ ...survey, failed: undefined, orphans: [] }], 0, 0).whole();
    return merge(state, follow(undefined, snapshot, at)?.stores ?? [], at);
  }, NOTHING);
}

const rowsOf = ({ stores }: State): LockRow[] => stores.flatMap((store) => lockRows(store, NOW));
const rowOf = (state: State, key: string): LockRow | undefined => rowsOf(state).find((row) => row.key === key);

describe('of a process that does not answer any more', () => {
  const shop = surveyOfShop();
  const [, , gone] = shop.processes;
  const without: Survey = {
    ...shop,
    held: shop.held.filter(({ process }) => process !== gone?.id),
    waiting: shop.waiting.filter(({ process }) => process !== gone?.id),
    processes: shop.processes.filter((process) => process !== gone),
  };

  test('the locks stay in the list where it is missed, and are forgotten where it has closed', () => {
    const missed = stateAfter(shop, { ...without, silent: [...shop.silent, gone?.id as string] });
    expect(rowOf(missed, 'report:daily')).toMatchObject({ answers: false, holders: [{ isSilent: true }] });
    expect(rowOf(stateAfter(shop, without), 'report:daily')).toBeUndefined();
  });
});

describe('a semaphore', () => {
  const shop = surveyOfShop();
  const [pattern] = shop.held as [Survey['held'][number]];
  const [here, there] = shop.processes.map(({ id }) => id) as [string, string];
  const permit = { ...pattern, key: 'erp', shares: 5 };
  const full: Survey = {
    ...shop,
    held: [{ ...permit, process: here }, ...[5, 4, 5].map((shares) => ({ ...permit, shares, process: there }))],
  };

  test('is one row, with how many of its permits are used', () => {
    expect(rowsOf(stateAfter(full)).filter(({ key }) => key === 'erp')).toEqual([expect.objectContaining({ count: 4, shares: 4 })]);
  });

  test('keeps the permits of a process that does not answer any more, beside those of others', () => {
    const held = full.held.filter(({ process }) => process === here);
    const processes = shop.processes.filter(({ id }) => id !== there);
    const state = stateAfter(full, { ...full, held, processes, silent: [there] });
    expect(rowOf(state, 'erp')).toMatchObject({ count: 4, answers: true });
  });

  test('that calls wait for names one of its holders, and says how many others there are', () => {
    const waiting = [{ ...(shop.waiting[0] as Survey['waiting'][number]), key: 'erp', holds: [] }];
    const [store] = stateAfter({ ...full, waiting }).stores as [StoreState];
    expect(waitForest(store)).toEqual([expect.objectContaining({ key: 'erp', others: 3 })]);
  });
});

describe('a lock that its store says is free', () => {
  const row = rowOf(stateAfter(surveyOfShop()), 'balance:42') as LockRow;

  test('is held by nobody, whoever is said to have got it before', () => {
    const freed = freedRow(row, NOW);
    expect(freed).toMatchObject({ holders: [], fence: undefined, since: undefined, until: undefined, name: 'balance:<id>' });
    expect(freed.waiting).toEqual(row.waiting);
  });

  test('is held by who got it since', () => {
    expect(freedRow(row, NOW - 60_000)).toBe(row);
  });
});

describe('of a store that is not well', () => {
  const shop = surveyOfShop();
  const saying = (says: Partial<PeerHealth>): Survey => ({
    ...shop,
    processes: shop.processes.map((process) => ({ ...process, health: { ...(process.health as PeerHealth), ...says } })),
  });
  const troublesOf = (state: State) => state.stores.flatMap(({ troubles }) => troubles);

  test('each reason is as old as the processes say, and not as the tab', () => {
    const reasonMs = { membersAway: 61_000, noMajority: 62_000, polls: 63_000 };
    const state = stateAfter(saying({ status: 'down', reasons: ['noMajority', 'membersAway', 'polls'], reasonMs }));
    expect(troublesOf(state).map(({ reason, since }) => [reason, NOW - since])).toEqual([
      ['noMajority', 62_000],
      ['membersAway', 61_000],
      ['polls', 63_000],
    ]);
  });

  test('that locks work is not said where no call gets one', () => {
    const members = [{ reachable: true, voting: true }, { reachable: false }, { reachable: false }] as const;
    const wordsIn = (reasons: PeerHealth['reasons'], more: Partial<PeerHealth> = {}): string =>
      troublesOf(stateAfter(saying({ status: 'down', reasons, members, ...more })))
        .flatMap((trouble, _at, all) => troubleWords(trouble, all))
        .join(' ');
    for (const reason of ['noMajority', 'unreachable', 'failing', 'readOnly', 'full', 'tooFewReplicas'] as const) {
      expect(wordsIn([reason, 'membersAway'], { majority: 2 })).not.toMatch(/work/);
      expect(wordsIn([reason, 'membersAway'])).not.toMatch(/work/);
    }
    expect(wordsIn(['membersAway'], { majority: 2 })).toContain('Locks work while enough of the others vote.');
    expect(wordsIn(['membersAway'])).toContain('those of the others work');
  });

  test('a call waits for the store where its process gets no lock of it', () => {
    const waitsFor = (says: Partial<PeerHealth>): boolean[] => {
      const [store] = stateAfter(saying(says)).stores as [StoreState];
      return [...new Set(store.waiting.map((call) => waitsForStore(store, call)))];
    };
    expect(waitsFor({ status: 'degraded', reasons: ['unreachable'], reachable: false })).toEqual([true]);
    expect(waitsFor({ status: 'down', reasons: ['noMajority'] })).toEqual([true]);
    expect(waitsFor({ status: 'down', reasons: ['readOnly'] })).toEqual([true]);
    expect(waitsFor({ status: 'degraded', reasons: ['polls', 'membersAway', 'clockSkew'] })).toEqual([false]);
    expect(waitsFor({ status: 'up', reasons: [] })).toEqual([false]);
  });
});

test('a call that was aborted did not give up', () => {
  const shop = surveyOfShop();
  const [pattern] = shop.ended;
  const ended = (['busy', 'aborted', 'tooManyWaiters'] as const).map((reason, at) => ({
    ...(pattern as Survey['ended'][number]),
    ...({ id: `${at}`, key: 'k', name: 'n', outcome: 'refused', waitedMs: 100, heldMs: 0, agoMs: 0, reason } as const),
  }));
  const state = stateAfter({ ...shop, held: [], waiting: [], ended });
  const [hot] = hotNames(state, NOW);
  expect(hot).toMatchObject({ name: 'n', refused: 2, acquired: 0, waitedMs: 300 });
  const bars = timeline(state.stores[0] as StoreState, 'k', NOW - 60_000, NOW).flatMap((lane) => lane.bars);
  expect(bars.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual(['refused busy', 'wait aborted', 'refused tooManyWaiters']);
});

describe('a lost call', () => {
  const GRANT = 1_795_390_000_000_000;
  const common = { key: 'k', name: 'n', waitedMs: 0, reason: undefined, fence: GRANT } as const;
  const lost = { ...common, id: 'lost', site: 'Lost.run', process: 'one', outcome: 'lost', heldMs: 2_000, agoMs: 10_000 } as const;
  const next = { ...common, site: 'Next.run', process: 'two', outcome: 'released', heldMs: 400 } as const;
  const shop = surveyOfShop();
  const barsOf = (state: State): string[] =>
    timeline(state.stores[0] as StoreState, 'k', NOW - 60_000, NOW).flatMap(({ bars }) =>
      bars.map(({ kind, from, to }) => `${kind} ${Math.round(from - NOW)} to ${Math.round(to - NOW)}`),
    );
  const of = (...ended: Survey['ended']): Survey => ({ ...shop, held: [], waiting: [], ended });

  test('is beside each that had the lock while its code ran on, whatever the clocks of their processes say', () => {
    const [first, second, third] = [2_100, 2_700, 9_000].map((ms, at) => ({
      ...next,
      id: `${at}`,
      fence: GRANT + ms * 1_000,
      agoMs: 500 * (3 - at),
    })) as [Survey['ended'][number], Survey['ended'][number], Survey['ended'][number]];
    const [red, ...hatched] = barsOf(stateAfter(of({ ...lost, ranOnMs: 1_000 }, first, second, third))).filter(
      (bar) => !bar.startsWith('hold'),
    );
    expect(red).toBe('lost -12000 to -9000');
    expect(hatched.toSorted()).toEqual(['overlap -9300 to -9000', 'overlap -9900 to -9500']);
  });

  test('begins with its code, where other calls of its process had had the grant before, and so does the next one', () => {
    const served = { ...lost, fence: GRANT + 1, servedMs: 5_000, heldMs: 2_000 };
    const after = { ...next, id: 'next', fence: GRANT + 6_500_001, servedMs: 300, agoMs: 0 };
    expect(barsOf(stateAfter(of(served, after)))).toContain('overlap -10200 to -10000');
  });

  test('is one, also where it was known before its code had ended', () => {
    const { ended } = stateAfter(of(lost), of({ ...lost, id: 'later', instead: 'lost', ranOnMs: 700 })).stores[0] as StoreState;
    expect(ended.map(({ id, ranOnMs }) => [id, ranOnMs])).toEqual([['later', 700]]);
  });
});
