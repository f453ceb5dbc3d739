import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { LockNotAcquiredError } from '../../../lib/core/words/errors';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

let locks: LockService;
/** Another process. */
let others: LockService;
let events: LockEvent[];
const listener = (event: unknown): void => void events.push(event as LockEvent);

beforeEach(async () => {
  const store = new MemoryLockStore();
  [locks, others] = [makeLocks(store, { wait: 60_000 }), makeLocks(store, { wait: 60_000 })];
  events = [];
  subscribe(LOCK_CHANNEL, listener);
  // A process does not begin with its first lock.
  await sleep(30_000);
});
afterEach(async () => {
  unsubscribe(LOCK_CHANNEL, listener);
  await Promise.all([locks.shutdown(), others.shutdown()]);
});

/** A call that has one lock, and wants another one after a while. */
const nest = (holds: string, waitsFor: string, afterMs: number): Promise<unknown> =>
  locks.withLock(holds, { by: `has ${holds}` }, async () => {
    await sleep(afterMs);
    return locks.withLock(waitsFor, { by: `wants ${waitsFor}` }, () => 'entered');
  });

test('a call that closes a cycle of three is refused at once, and told who waits for what, since when, and how to end it', async () => {
  const [first, second, last] = [nest('a', 'b', 100), nest('b', 'c', 200), nest('c', 'a', 300)];
  const refusal = (await last.catch((error: unknown) => error)) as LockNotAcquiredError;
  expect(refusal).toBeInstanceOf(LockNotAcquiredError);
  expect(refusal).toMatchObject({ reason: 'cycle', key: 'a', waitedMs: 0 });
  expect(refusal.detail).toMatch(
    /calls of this process wait for each other \((a → b → c → a)\)\. Take the locks in one order, or all at once/,
  );
  const step = (holds: string, waitsFor: string, waitedMs: number): object => ({
    holds,
    waitsFor,
    waitedMs,
    heldMs: 300,
    site: `wants ${waitsFor}`,
  });
  const calls = [step('a', 'b', 200), step('b', 'c', 100), step('c', 'a', 0)];
  expect(refusal.cycle).toMatchObject(calls);
  expect(await Promise.all([first, second])).toEqual(['entered', 'entered']);
  expect(events.filter(({ type }) => type === 'cycle')).toMatchObject([{ key: 'a', scope: 'process', keys: ['a', 'b', 'c', 'a'], calls }]);
});

test('calls inside locks that wait for each other in a row are no cycle', async () => {
  const held = locks.withLock('a', () => sleep(500));
  expect(await Promise.all([nest('b', 'a', 100), nest('c', 'b', 200), nest('d', 'c', 300), held])).toEqual([
    'entered',
    'entered',
    'entered',
    undefined,
  ]);
});

test('calls inside locks that wait for another process, also behind each other, are no cycle', async () => {
  const held = await others.acquire('a');
  const waiting = [nest('b', 'a', 100), nest('c', 'a', 200), nest('d', 'a', 300), nest('e', 'c', 400)];
  await sleep(500);
  await held.release();
  expect(await Promise.all(waiting)).toEqual(['entered', 'entered', 'entered', 'entered']);
});

test('a call that has had what it waited for is part of no cycle', async () => {
  const first = locks.withLock('b', () => sleep(100));
  const holder = locks.withLock('a', async () => {
    await sleep(10);
    await locks.withLock('b', () => undefined);
    await sleep(500);
  });
  await sleep(50);
  const calls = [first, holder, nest('b', 'a', 100)];
  expect(await Promise.all(calls)).toEqual([undefined, undefined, 'entered']);
});

test.each<[string, () => Promise<unknown>, unknown]>([
  ['tryAcquire', () => locks.tryAcquire('b'), null],
  ['onBusy: skip', () => locks.withLock('b', { onBusy: 'skip' }, () => 'entered'), undefined],
  ['wait: 0', () => locks.withLock('b', { wait: 0 }, () => 'entered').catch(({ reason }: LockNotAcquiredError) => reason), 'busy'],
])('a call that does not wait closes no cycle where another one waits for its lock: %s', async (_how, take, outcome) => {
  const holder = locks.withLock('b', async () => {
    await sleep(50);
    return locks.withLock('a', () => 'entered');
  });
  const taken = locks.withLock('a', async () => {
    await sleep(100);
    return take();
  });
  expect(await Promise.all([taken, holder])).toEqual([outcome, 'entered']);
});

test('a call that does not wait closes no cycle, and is no part of one in the same turn of the event loop', async () => {
  let go = (): void => undefined;
  const gate = new Promise<void>((resolve) => (go = resolve));
  const tries = locks.withLock('a', async () => {
    await gate;
    return locks.withLock('b', { wait: 0 }, () => 'entered').catch((error: LockNotAcquiredError) => error.reason);
  });
  const waits = locks.withLock('b', async () => {
    await gate;
    return locks.withLock('a', () => 'entered');
  });
  await sleep(10);
  go();
  expect(await Promise.all([tries, waits])).toEqual(['busy', 'entered']);
});
