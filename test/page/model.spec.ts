import { expect } from '@jest/globals';
import { follow } from '../../console/page/app/connection/follow';
import { hotNames } from '../../console/page/app/model/hot-names';
import { freedRow, lockRows, type LockRow } from '../../console/page/app/model/lock-rows';
import { merge } from '../../console/page/app/model/merge';
import { NOTHING, type State, type StoreState } from '../../console/page/app/model/state';
import { timeline } from '../../console/page/app/model/timeline';
import { SurveySequence } from '../../console/page/survey-sequence';
import type { Survey } from '../../lib/peers/survey';
import { surveyOfShop } from './support/survey-of-shop';

/** The time of the browser when a survey comes. */
const NOW = 1_795_390_000_000;

/** What a browser knows after surveys that came one after the other, a second apart; the last one at `NOW`. */
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
