import { jest } from '@jest/globals';
import { LiveSurvey } from '../../console/page/live-survey';
import type { Snapshot } from '../../console/page/snapshot';
import { surveyOfShop } from './support/survey-of-shop';

jest.useFakeTimers();

const [first, second] = surveyOfShop().ended;

function asked(): { live: LiveSurvey; count: () => number } {
  let count = 0;
  const survey = async (): Promise<Snapshot> => {
    count++;
    const ended = [first, ...(count > 1 ? [second] : [])] as Snapshot['stores'][number]['ended'];
    return { kind: 'survey', stores: [{ ...surveyOfShop(), ended, failed: undefined }] };
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

test('who polls gets a survey that is under way, or one that is a second old at most', async () => {
  const { live, count } = asked();
  await Promise.all([live.once(), live.once()]);
  await live.once();
  expect(count()).toBe(1);
  await jest.advanceTimersByTimeAsync(1_001);
  await live.once();
  expect(count()).toBe(2);
});
