import { hash } from 'node:crypto';
import type { Clock } from '../../../lib/core/seam/time';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockSource } from '../../../lib/core/words/lock-telemetry';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { enterTickets } from '../../../lib/nest/current-tickets';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Keeps what it is asked for, and takes as long for it as it is told to. */
class AskedStore extends MemoryLockStore {
  readonly asked: HoldRecord[] = [];
  readonly released: string[] = [];
  onAcquire: (key: string) => unknown = () => undefined;
  joinMs = 0;

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.asked.push(hold);
    const reply = await super.acquire(hold, place);
    await this.onAcquire(hold.key);
    return reply;
  }
  override async join(hold: HoldRecord): Promise<boolean> {
    await sleep(this.joinMs);
    return super.join(hold);
  }
  override async release(hold: HoldRecord): Promise<boolean> {
    this.released.push(hold.key);
    return super.release(hold);
  }
}

const nothing = (): undefined => undefined;

let store: AskedStore;

beforeEach(() => {
  store = new AskedStore();
});

// The first of the file: the first owner of a process is one as well.
test('each acquisition has an owner of its own, and none whose secret is known', async () => {
  const locks = makeLocks(store);
  const keys = Array.from({ length: 200 }, (_, index) => `k${index}`);
  await Promise.all(keys.map((key) => locks.acquire(key)));
  const owners = new Set(store.asked.map(({ owner }) => owner));
  expect(owners.size).toBe(200);
  expect(owners).not.toContain(hash('sha256', '', 'base64url').slice(0, 22));
  await locks.shutdown();
});

test.each([1_000, 1_200])('a key is not asked for when the key before it took all the time of the call (%p ms)', async (ms) => {
  const troubles: LockTrouble[] = [];
  const locks = makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
  store.onAcquire = () => sleep(ms);
  await expect(locks.acquire(['a', 'b'], { ttl: 4_000, wait: 0 })).rejects.toMatchObject({
    code: 'LOCK_STORE',
    key: 'b',
    unknown: false,
    detail: 'Lock "b" was not asked for: the store took too long to answer for the keys before it. Raise wait, or find out what is slow.',
  });
  await sleep(10_000);
  expect([store.asked.map(({ key }) => key), store.released]).toEqual([['a'], ['a']]);
  // The store has answered all that it was asked for.
  expect(troubles).toEqual([]);
  await locks.shutdown();
});

test('a grant that comes after its own lease is none, also where the wall clock was set back meanwhile', async () => {
  let worked = 0;
  const clock: Clock = { monotonic: () => performance.now() + worked, wall: () => Date.now() };
  store.onAcquire = () => {
    worked += store.asked.length === 1 ? 6_000 : 0;
  };
  const locks = makeLocks(store, { clock });
  const lock = await locks.acquire('k', { ttl: 5_000, wait: 10_000 });
  expect(lock.isHeld()).toBe(true);
  expect([store.asked.length, store.released]).toEqual([2, ['k']]);
  await locks.shutdown();
});

test('the attempt after a grant that came too late asks for a fence for each call that waits by then', async () => {
  const locks = makeLocks(store);
  store.onAcquire = () => (store.asked.length === 1 ? sleep(1_100) : undefined);
  const ran: string[] = [];
  await Promise.all(['first', 'second', 'third', 'fourth'].map((name) => locks.withLock('k', { ttl: 1_000 }, () => ran.push(name))));
  expect(ran).toEqual(['first', 'second', 'third', 'fourth']);
  expect(store.asked.map(({ fences }) => fences)).toEqual([1, 4]);
  await locks.shutdown();
});

test('a ticket of a lock that was released is refused as one of a lock that has ended', async () => {
  const locks = makeLocks(store);
  const holder = await locks.acquire('k');
  const ticket = holder.makeTicket();
  await holder.release();
  await expect(locks.acquire('k', { ticket })).rejects.toMatchObject({
    code: 'LOCK_LOST',
    reason: 'released',
    detail: expect.stringMatching(/^Lock "k": the lock of this ticket has ended\./) as string,
  });
  await locks.shutdown();
});

test.each([0, 100])('a call that may wait %p ms waits no longer for one that is about to enter by the same ticket', async (wait) => {
  const holder = await makeLocks(store).acquire('k');
  const locks = makeLocks(store);
  store.joinMs = 300;
  await enterTickets(holder.makeTicket(), async () => {
    const first = locks.withLock('k', () => 'inside');
    const startedAt = performance.now();
    await expect(locks.withLock('k', { wait }, nothing)).rejects.toMatchObject({ reason: 'busy' });
    expect(Math.round(performance.now() - startedAt)).toBe(wait);
    expect(await first).toBe('inside');
  });
  await holder.release();
  await locks.shutdown();
});

test('telemetry can ask how many locks the calls of each name hold now', async () => {
  let source: LockSource | undefined;
  const watch = (watched: LockSource): undefined => void (source = watched);
  const locks = makeLocks(store, { telemetry: [{ watch }] });
  const held = await Promise.all([
    locks.acquire(['a', 'b'], { name: 'orders' }),
    locks.acquire('c', { name: 'orders' }),
    locks.acquire('d', { name: 'stock' }),
  ]);
  expect(source?.holds()).toEqual(new Map(Object.entries({ orders: 3, stock: 1 })));
  await Promise.all(held.map((lock) => lock.release()));
  expect(source?.holds()).toEqual(new Map());
  await locks.shutdown();
});
