import { jest } from '@jest/globals';
import { inspect } from 'node:util';
import type { Lock } from '../../../lib/core/words/lock';
import { type Clock, systemClock } from '../../../lib/core/seam/time';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { enterTickets } from '../../../lib/nest/current-tickets';
import { makeLocks } from '../../support/make-locks';
import { saying } from '../../support/saying';

let locks: LockService;

beforeEach(() => {
  locks = makeLocks(new MemoryLockStore());
});
afterEach(() => locks.shutdown());

test('a lock of several keys has one fence per key, and says so where it is asked for one', async () => {
  const lock = await locks.acquire(['b', 'a']);
  expect(() => lock.fence).toThrow(saying(/^The lock on "a", "b" has one fence per key\. Use lock\.fenceOf\(key\)/));
  expect([lock.fenceOf('a'), lock.fenceOf('b')]).toEqual([expect.any(Number), expect.any(Number)]);
});

test.each<[string, (lock: Lock) => string]>([
  ['inspect()', (lock) => inspect(lock, { compact: true, breakLength: Infinity })],
  ['JSON', (lock) => JSON.stringify(lock)],
])('a log shows by %s which keys a lock has, at which fences, and whether it is held', async (_, show) => {
  const lock = await locks.acquire(['b', 'a']);
  const shown = (): string => show(lock).replaceAll(/["' ]/g, '');
  expect(shown()).toBe(`{keys:[a,b],fences:[${lock.fenceOf('a')},${lock.fenceOf('b')}],isHeld:true}`);
  await lock.release();
  expect(shown()).toContain('isHeld:false');
});

test('a handle that is released again and again is a warning, once', async () => {
  const warnings = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const lock = await locks.acquire(['a', 'b']);
  await lock.release();
  expect(warnings).not.toHaveBeenCalled();
  await lock.release();
  await lock.release();
  expect(warnings.mock.calls).toEqual([[expect.stringMatching(/^Lock "a", "b" was released twice.*await using/), 'LockWarning']]);
  warnings.mockRestore();
});

test('a handle that is released again after its minHold has lost nothing, where the thread stood still meanwhile', async () => {
  let ahead = 0;
  const clock: Clock = { monotonic: () => systemClock.monotonic() + ahead, wall: () => systemClock.wall() + ahead };
  const troubles: LockTrouble[] = [];
  const own = makeLocks(new MemoryLockStore(), { clock, onTrouble: (trouble) => troubles.push(trouble) });
  const lock = await own.acquire('k', { ttl: 5_000, minHold: 2_000 });
  await lock.release();
  ahead = 60_000;
  await lock[Symbol.asyncDispose]();
  expect(troubles).toEqual([]);
  await own.shutdown();
});

test.each<[string, (lock: Lock, fn: () => never) => unknown]>([
  ['lock.run()', (lock, fn) => lock.run(fn)],
  ['enterTickets()', (lock, fn) => enterTickets(lock.makeTicket(), fn)],
])('what a function throws at once in %s is thrown', async (_, enter) => {
  const lock = await locks.acquire('k');
  const own = new Error('its own');
  const fail = (): never => {
    throw own;
  };
  expect(() => enter(lock, fail)).toThrow(own);
});

/** Ways in which a function ends that has begun something else. */
const ENDINGS: Readonly<Record<string, () => unknown>> = {
  'returns at once': () => 'done',
  'throws at once': () => {
    throw new Error('failed');
  },
  'returns later': async () => 'done',
  'throws later': async () => Promise.reject(new Error('failed')),
};

describe.each(Object.entries(ENDINGS))('code that was begun in a function which %s', (_, end) => {
  /** Has `code` run in what `enter` runs, but only once that, and `leave`, have ended. */
  async function after(enter: (fn: () => unknown) => unknown, leave: () => Promise<void>, code: () => unknown): Promise<unknown> {
    let goOn!: () => void;
    const ended = new Promise<void>((resolve) => (goOn = resolve));
    let begun: Promise<unknown> | undefined;
    const fn = (): unknown => {
      begun = ended.then(code);
      return end();
    };
    // In a promise, so that what it throws at once is as what it throws later.
    await new Promise((resolve) => resolve(enter(fn))).catch(() => undefined);
    await leave();
    goOn();
    return begun;
  }

  test('of lock.run() acquires anew where it goes on after that function and the release', async () => {
    const lock = await locks.acquire('k');
    const { fence } = lock;
    const next = await after(
      (fn) => lock.run(fn),
      () => lock.release(),
      () => locks.withLock('k', (own) => own.fence),
    );
    expect(next).toBeGreaterThan(fence);
  });

  test('of enterTickets() acquires anew where it goes on after that function', async () => {
    const holder = await locks.acquire('k');
    const ticket = holder.makeTicket();
    const next = await after(
      (fn) => enterTickets(ticket, fn),
      () => holder.release(),
      () => locks.withLock('k', (own) => own.fence),
    );
    expect(next).toBeGreaterThan(holder.fence);
  });
});
