import { jest } from '@jest/globals';
import { Lifecycle } from '../../../lib/core/seam/lifecycle';

let lifecycle: Lifecycle;
let isClosed: boolean;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  lifecycle = new Lifecycle();
  isClosed = false;
});
afterEach(() => {
  jest.useRealTimers();
});

/** Begins to close it, and lets so many milliseconds pass. */
async function close(ms = 0): Promise<void> {
  void lifecycle.close(async () => undefined).then(() => (isClosed = true));
  await jest.advanceTimersByTimeAsync(ms);
}

test('to close it waits until each call that runs has ended', async () => {
  lifecycle.begin();
  lifecycle.begin();
  await close();
  lifecycle.end();
  await jest.advanceTimersByTimeAsync(10_000);
  expect([lifecycle.isClosing, lifecycle.isSettling, isClosed]).toEqual([true, false, false]);
  lifecycle.end();
  await jest.advanceTimersByTimeAsync(0);
  expect(isClosed).toBe(true);
});

test('to close it waits for background work, which is not repeated', async () => {
  lifecycle.inBackground(new Promise((resolve) => setTimeout(resolve, 600)));
  await close(599);
  expect([lifecycle.isSettling, lifecycle.closed.aborted, isClosed]).toEqual([true, false, false]);
  await jest.advanceTimersByTimeAsync(1);
  expect([lifecycle.closed.aborted, isClosed]).toEqual([true, true]);
});

test('to close it waits for a second for background work that does not end, which is not repeated afterwards', async () => {
  lifecycle.inBackground(new Promise(() => undefined));
  await close(999);
  expect(isClosed).toBe(false);
  await jest.advanceTimersByTimeAsync(1);
  expect([isClosed, lifecycle.isSettling, lifecycle.isClosing]).toEqual([true, true, true]);
});
