import { jest } from '@jest/globals';
import { Demotions } from '../../lib/redis/connection/demotions';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** When a connection is made anew within so many milliseconds, where each of them brings a refusal. */
function connectionsIn(demotions: Demotions, ms: number): number[] {
  const found: number[] = [];
  for (let at = 0; at < ms; at++) {
    if (demotions.refused()) {
      found.push(at);
    }
    jest.advanceTimersByTime(1);
  }
  return found;
}

test('a server that stays a replica is left at once, and then less and less often, so that it can answer in between', () => {
  expect(connectionsIn(new Demotions(), 5_000)).toEqual([0, 100, 300, 700, 1_500, 2_500, 3_500, 4_500]);
});

test('one that took writes meanwhile is left at once', () => {
  const demotions = new Demotions();
  connectionsIn(demotions, 5_000);
  jest.advanceTimersByTime(6_000);
  expect(connectionsIn(demotions, 200)).toEqual([0, 100]);
});
