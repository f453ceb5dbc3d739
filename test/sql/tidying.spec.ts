import { jest } from '@jest/globals';
import { Tidying } from '../../lib/sql/tidying';

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

test('a run that failed is followed by another one, though no mark was made since', async () => {
  jest.useFakeTimers();
  let runs = 0;
  const tidying = new Tidying(async () => {
    if (++runs === 2) {
      throw new Error('It is away.');
    }
    return false;
  });
  tidying.marked();
  await jest.advanceTimersByTimeAsync(120_000);
  expect(runs).toBe(3);
  expect(jest.getTimerCount()).toBe(0);
});

test('a store that is closed while there is more to delete asks its pool for nothing any more', async () => {
  jest.useFakeTimers();
  let runs = 0;
  const tidying = new Tidying(async () => {
    if (++runs === 3) {
      tidying.stop();
    }
    return runs < 10;
  });
  tidying.marked();
  await jest.advanceTimersByTimeAsync(120_000);
  expect(runs).toBe(3);
});
