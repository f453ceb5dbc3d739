import { getEventListeners } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Keeps what it is asked for, and takes as long to answer as it is told to. */
class AskedStore extends MemoryLockStore {
  readonly asked: HoldRecord[] = [];
  readonly released: HoldRecord[] = [];
  answersAfterMs = 0;

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.asked.push(hold);
    const reply = await super.acquire(hold, place);
    await sleep(this.answersAfterMs);
    return reply;
  }
  override async release(hold: HoldRecord): Promise<boolean> {
    this.released.push(hold);
    return super.release(hold);
  }
}

let store: AskedStore;
let locks: LockService;
let events: LockEvent[];
let onEvent: (event: LockEvent) => void;
const listener = (event: unknown): void => {
  events.push(event as LockEvent);
  onEvent(event as LockEvent);
};

beforeEach(() => {
  store = new AskedStore();
  locks = makeLocks(store);
  events = [];
  onEvent = () => undefined;
  subscribe(LOCK_CHANNEL, listener);
});
afterEach(async () => {
  unsubscribe(LOCK_CHANNEL, listener);
  await locks.shutdown();
});

const never = (): never => {
  throw new Error('The body ran.');
};

test('a signal that lives on is listened to by no call that has ended', async () => {
  const { signal } = new AbortController();
  const listeners = (): number => getEventListeners(signal, 'abort').length;
  await locks.withLock('k', { signal }, () => undefined);
  expect(listeners()).toBe(0);
  const held = await locks.acquire('k', { signal });
  expect(listeners()).toBe(0);
  const waits = locks.withLock('k', { signal, wait: 100 }, never);
  await sleep(50);
  expect(listeners()).toBeGreaterThan(0);
  await expect(waits).rejects.toMatchObject({ reason: 'busy' });
  expect(listeners()).toBe(0);
  await held.release();
});

test('a signal that aborts while an event tells that the call has its lock is too late', async () => {
  const aborter = new AbortController();
  onEvent = ({ type }) => void (type === 'waited' && aborter.abort());
  const first = locks.withLock('k', () => sleep(50));
  expect(await locks.withLock('k', { signal: aborter.signal }, () => 'ran')).toBe('ran');
  expect(aborter.signal.aborted).toBe(true);
  await first;
});

test('a signal that aborts while a re-entry is told of refuses it, and the outer call goes on', async () => {
  const aborter = new AbortController();
  const locksThatTell = makeLocks(store, { telemetry: [{ entered: ({ how }) => void (how === 'reentered' && aborter.abort()) }] });
  await locksThatTell.withLock('k', async (lock) => {
    const inner = locksThatTell.withLock('k', { signal: aborter.signal, name: 'inner' }, never);
    await expect(inner).rejects.toMatchObject({ reason: 'aborted' });
    expect(lock.isHeld()).toBe(true);
  });
  expect(events.filter(({ type }) => type === 'refused')).toMatchObject([{ name: 'inner', reason: 'aborted' }]);
  await locksThatTell.shutdown();
});

test('a call whose signal has aborted before asks the store for nothing', async () => {
  await expect(locks.withLock('k', { signal: AbortSignal.abort() }, never)).rejects.toMatchObject({ reason: 'aborted' });
  expect(store.asked).toEqual([]);
});

test('a call that is aborted while it asks for its first key asks for no other, and releases just that', async () => {
  store.answersAfterMs = 100;
  const aborter = new AbortController();
  const call = locks.withLock(['a', 'b'], { signal: aborter.signal }, never);
  await sleep(50);
  aborter.abort();
  await expect(call).rejects.toMatchObject({ reason: 'aborted' });
  await sleep(5_000);
  expect(store.asked.map(({ key }) => key)).toEqual(['a']);
  expect(store.released.map(({ id }) => id)).toEqual(store.asked.map(({ id }) => id));
  expect(await store.inspect('a')).toBeNull();
});

test.each<[string, (aborter: AbortController) => unknown]>([
  ['is aborted', (aborter) => aborter.abort()],
  ['is shut down', () => locks.shutdown()],
])('a call that %s while it waits for another process asks the store no more, also one that is polled', async (_, end) => {
  Object.defineProperty(store, 'turns', { value: undefined });
  locks = makeLocks(store);
  const others = makeLocks(store);
  const held = await others.acquire('k');
  const aborter = new AbortController();
  const call = locks.withLock('k', { signal: aborter.signal }, never);
  call.catch(() => undefined);
  await sleep(100);
  const asked = store.asked.length;
  await end(aborter);
  await expect(call).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  await sleep(2_000);
  expect(store.asked).toHaveLength(asked);
  await held.release();
});
