import { Availability } from '../../../lib/core/seam/availability';
import { LockStoreError } from '../../../lib/core/words/errors';
import { ManualClock } from '../../support/manual-clock';

const noAnswer = new LockStoreError('no answer', 'k', { unknown: true });

let clock: ManualClock;
let availability: Availability;

beforeEach(() => {
  clock = new ManualClock();
  availability = new Availability(clock);
});

/** Attempts to acquire that fail, each so many milliseconds after the one before. */
function fail(...afterMs: number[]): void {
  for (const ms of afterMs) {
    clock.now += ms;
    availability.failed(noAnswer, true);
  }
}

describe('a store is away', () => {
  test('when attempts failed for a second, and no sooner', () => {
    fail(0, 999);
    expect(availability.isAway).toBe(false);
    fail(1);
    expect(availability.isAway).toBe(true);
  });

  test('until five seconds after the last failure, where nothing asks it', () => {
    fail(0, 1_000);
    clock.now += 4_999;
    expect(availability.isAway).toBe(true);
    clock.now += 1;
    expect(availability.isAway).toBe(false);
  });

  test.each([5_000, 6_000])('not where two attempts failed with nothing asked for %d ms in between', (ms) => {
    fail(0, ms);
    expect(availability.isAway).toBe(false);
    fail(1_000);
    expect(availability.isAway).toBe(true);
  });
});

test('a call that does not wait for the store hears for how long that has not answered', () => {
  fail(0, 1_500);
  clock.now += 500;
  expect(availability.refusal('k')).toMatchObject({ key: 'k', unknown: false, detail: expect.stringContaining('for 2000 ms') });
});

test('a health check hears for how long nothing was answered', () => {
  expect(availability.silentMs).toBeUndefined();
  fail(0, 2_000);
  clock.now += 500;
  expect(availability.silentMs).toBe(2_500);
});

test('an answer tells how long the outage was that it ends', () => {
  fail(0, 1_500);
  clock.now += 500;
  expect(availability.answered(true)).toBe(2_000);
  expect(availability.answered(true)).toBeUndefined();
});

test('a renewal ends no outage that attempts found, and the next one that renewals find', () => {
  fail(0);
  clock.now += 100;
  expect(availability.answered(false)).toBeUndefined();
  expect(availability.answered(true)).toBe(100);
  availability.failed(noAnswer, false);
  clock.now += 300;
  expect(availability.answered(false)).toBe(300);
});
