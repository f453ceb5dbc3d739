import { jest } from '@jest/globals';
import { Tidying } from '../../../lib/stores/sql/tidying';

afterEach(() => {
  jest.useRealTimers();
});

test('a done mark that is made after the end starts nothing, and one after the next start does', async () => {
  jest.useFakeTimers();
  let runs = 0;
  const tidying = new Tidying(() => {
    runs++;
    return Promise.resolve(false);
  });
  tidying.stop();
  tidying.marked();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(runs).toBe(0);
  tidying.start();
  tidying.marked();
  await jest.advanceTimersByTimeAsync(60_000);
  // One more, since the last marks expire after the first.
  expect(runs).toBe(2);
  expect(jest.getTimerCount()).toBe(0);
});
