import { jest } from '@jest/globals';
import { LiveSurvey } from '../../console/page/live-survey';
import type { Snapshot, StoreAnswer } from '../../console/page/snapshot';
import type { FoundIncident } from '../../lib/operate/peers/survey';
import { surveyOfShop } from './support/survey-of-shop';

jest.useFakeTimers();

const [first, second] = surveyOfShop().ended;

function asked(): { live: LiveSurvey; count: () => number } {
  let count = 0;
  const survey = async (): Promise<StoreAnswer[]> => {
    count++;
    const ended = [first, ...(count > 1 ? [second] : [])] as StoreAnswer['ended'];
    return [{ ...surveyOfShop(), ended, failed: undefined, orphans: [] }];
  };
  return { live: new LiveSurvey(survey), count: () => count };
}

function idsIn(message: string | undefined): string[] {
  return (JSON.parse(message as string) as Snapshot).stores.flatMap(({ ended }) => ended.map(({ id }) => id));
}

test('nothing is asked while nobody looks', async () => {
  const { live, count } = asked();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(count()).toBe(0);
  const leave = live.watch(() => undefined);
  await jest.advanceTimersByTimeAsync(4_500);
  expect(count()).toBe(3);
  leave();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(count()).toBe(3);
  expect(jest.getTimerCount()).toBe(0);
});

test('several viewers share one survey, and each is told of an ended call once', async () => {
  const { live, count } = asked();
  const one: string[] = [];
  const other: string[] = [];
  live.watch((message) => one.push(message));
  await jest.advanceTimersByTimeAsync(0);
  live.watch((message) => other.push(message));
  await jest.advanceTimersByTimeAsync(4_000);
  expect(count()).toBe(3);
  expect(one.map(idsIn)).toEqual([[first?.id], [second?.id], []]);
  expect(other.map(idsIn)).toEqual([[first?.id, second?.id], []]);
});

test('a viewer is sent a whole survey first and then changes, also after one that polls; the versions say what follows what', async () => {
  const { live } = asked();
  const [one, other]: [string[], string[]] = [[], []];
  const leave = live.watch((message) => one.push(message));
  await jest.advanceTimersByTimeAsync(1_500);
  const polled = await live.once();
  live.watch((message) => other.push(message));
  await jest.advanceTimersByTimeAsync(3_000);
  const kindsOf = (messages: readonly string[]): string[] =>
    messages.map((message) => JSON.parse(message) as Snapshot).map(({ kind, version }) => `${kind} ${version}`);
  expect(kindsOf(one)).toEqual(['survey 1', 'changes 2', 'changes 3']);
  expect(kindsOf(other)).toEqual(['survey 2', 'changes 3']);
  expect(polled).toMatchObject({ kind: 'survey', stores: [{ held: { length: surveyOfShop().held.length } }] });
  leave();
});

test('who polls gets a survey that is under way, or one that is a second old at most', async () => {
  const { live, count } = asked();
  await Promise.all([live.once(), live.once()]);
  await live.once();
  expect(count()).toBe(1);
  await jest.advanceTimersByTimeAsync(1_001);
  await live.once();
  expect(count()).toBe(2);
});

describe('incidents', () => {
  const [pattern] = surveyOfShop().incidents;
  const incident = (id: string, agoMs: number, count = 1) => ({ ...(pattern as FoundIncident), id, agoMs, count });
  let spans: number[];
  let answer: FoundIncident[];
  let live: LiveSurvey;

  beforeEach(() => {
    spans = [];
    answer = [];
    live = new LiveSurvey(async (incidentsMs) => {
      spans.push(incidentsMs);
      return [{ ...surveyOfShop(), ended: [], incidents: answer, failed: undefined, orphans: [] }];
    });
  });

  const toldTo = (messages: readonly string[]): string[][] =>
    messages.map((message) =>
      (JSON.parse(message) as Snapshot).stores.flatMap(({ incidents }) =>
        incidents.map(({ id, agoMs, count }) => `${id} ${agoMs} ${count}`),
      ),
    );

  test('are asked for a day back at first and from time to time, else for those that are new; each viewer is told all, and each once', async () => {
    const [one, other]: [string[], string[]] = [[], []];
    answer = [incident('a', 5_000)];
    live.watch((message) => one.push(message));
    await jest.advanceTimersByTimeAsync(0);
    answer = [incident('b', 0)];
    live.watch((message) => other.push(message));
    await jest.advanceTimersByTimeAsync(2_000);
    expect(spans).toEqual([86_400_000, 60_000]);
    expect(toldTo(one)).toEqual([['a 5000 1'], ['b 0 1']]);
    expect(toldTo(other)).toEqual([['a 7000 1', 'b 0 1']]);
    // It happened again.
    answer = [incident('b', 0, 2)];
    await jest.advanceTimersByTimeAsync(2_000);
    answer = [];
    await jest.advanceTimersByTimeAsync(2_000);
    expect(toldTo(one).slice(2)).toEqual([['b 0 2'], []]);
    await jest.advanceTimersByTimeAsync(40_000);
    expect(spans.filter((ms) => ms > 60_000)).toHaveLength(2);
  });

  test('are forgotten where nobody looks any more, and after a day', async () => {
    const told: string[] = [];
    answer = [incident('a', 86_399_000), incident('b', 0)];
    const leave = live.watch((message) => told.push(message));
    await jest.advanceTimersByTimeAsync(0);
    leave();
    answer = [incident('a', 86_399_000)];
    live.watch((message) => told.push(message));
    await jest.advanceTimersByTimeAsync(0);
    answer = [];
    await jest.advanceTimersByTimeAsync(2_000);
    live.watch((message) => told.push(message));
    await jest.advanceTimersByTimeAsync(2_000);
    expect(toldTo(told)).toEqual([['a 86399000 1', 'b 0 1'], ['a 86399000 1'], [], [], []]);
    expect(spans.slice(0, 2)).toEqual([86_400_000, 86_400_000]);
  });
});
