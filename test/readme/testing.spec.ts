import { afterEach, jest, test } from '@jest/globals';
import { isAway, isLost, isRefused, locksInOrder, prepare } from './testing.js';

afterEach(() => void jest.useRealTimers());

test('the examples of docs/testing.md do what they say', async () => {
  const app = await prepare();
  app.useLogger(false);
  await locksInOrder(app);
  await isLost(app);
  await isRefused(app, jest);
  await isAway(app, jest);
  await app.close();
});
