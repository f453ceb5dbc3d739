import { jest } from '@jest/globals';
import { HoldNames } from '../../lib/redis/hold-names';
import { newHold } from '../support/new-hold';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('a name is forgotten a minute after its lease, also where a long lease was named before it', () => {
  const names = new HoldNames();
  const [long, short] = [newHold('long', { ttlMs: 86_400_000 }), newHold('short', { ttlMs: 5_000 })];
  names.rename(long);
  names.rename(short);
  jest.advanceTimersByTime(64_000);
  names.rename(newHold('k'));
  const { id } = names.named(short);
  expect(id).not.toBe(short.id);
  // It was used: its time begins anew.
  jest.advanceTimersByTime(64_000);
  names.rename(newHold('k'));
  expect(names.named(short)).toMatchObject({ key: 'short', id });
  jest.advanceTimersByTime(66_000);
  names.rename(newHold('k'));
  expect(names.named(short)).toBe(short);
  expect(names.named(long).id).not.toBe(long.id);
});
