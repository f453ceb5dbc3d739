import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { LockSource } from '../../../lib/core/words/lock-telemetry';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import { enterTickets } from '../../../lib/nest/current-tickets';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks, type TestSettings } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Tells a contender to ask again soon, and is slow to answer when it does. */
class SlowStore extends MemoryLockStore {
  readonly asked: (() => void)[] = [];
  readonly #ids = new Set<string>();

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    if (this.#ids.has(hold.id)) {
      await new Promise<void>((resolve) => this.asked.push(resolve));
    }
    this.#ids.add(hold.id);
    const reply = await super.acquire(hold, place);
    return reply.fence === undefined ? { ...reply, recheckMs: 1 } : reply;
  }
}

test('a call that waits counts also while it asks the store again', async () => {
  const store = new SlowStore();
  let source: LockSource | undefined;
  const watch = (watched: LockSource): undefined => void (source = watched);
  const locks = makeLocks(store, { maxWaiters: { perProcess: 1 }, telemetry: [{ watch }] });
  const others = makeLocks(store);
  const held = [await others.acquire('first'), await others.acquire('second')];
  const waiting = locks.withLock('first', () => 'served');
  while (store.asked.length === 0) {
    await new Promise(setImmediate);
  }
  expect([...(source?.waiters() ?? [])]).toEqual([['LockService.withLock', 1]]);
  await expect(locks.withLock('first', () => undefined)).rejects.toMatchObject({ reason: 'tooManyWaiters' });
  await expect(locks.withLock('second', () => undefined)).rejects.toMatchObject({ reason: 'tooManyWaiters' });
  await Promise.all(held.map((lock) => lock.release()));
  store.asked.splice(0).forEach((answer) => answer());
  expect(await waiting).toBe('served');
  expect(source?.waiters().size).toBe(0);
  // Nothing is counted that has ended.
  const holder = await others.acquire('first');
  const again = locks.withLock('first', () => 'again');
  await holder.release();
  while (store.asked.length === 0) {
    await new Promise(setImmediate);
  }
  store.asked.splice(0).forEach((answer) => answer());
  expect(await again).toBe('again');
});

/** May be away for joins and acquires of some keys. */
class FlakyStore extends MemoryLockStore {
  isAway = false;

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.#refuse(hold);
    return super.acquire(hold, place);
  }

  override async join(hold: HoldRecord): Promise<boolean> {
    this.#refuse(hold);
    return super.join(hold);
  }

  #refuse({ key }: HoldRecord): void {
    if (this.isAway) {
      throw new LockStoreError('the store is away', key, { unknown: false });
    }
  }
}

interface Busy {
  readonly store: FlakyStore;
  /** The process whose waiting calls are counted, and another one. */
  readonly locks: LockService;
  readonly other: LockService;
  readonly scope: TransactionScope;
  readonly wait: (key: string | readonly string[]) => Promise<unknown>;
}

const CASES: Readonly<Record<string, (busy: Busy) => Promise<readonly Promise<unknown>[]>>> = {
  'of a key that this process holds': async ({ locks, wait }) => {
    await locks.acquire('k');
    return [1, 2, 3, 4].map(() => wait('k'));
  },
  'of a key that another process holds': async ({ other, wait }) => {
    await other.acquire('k');
    const first = wait('k');
    await sleep(100);
    return [first, ...[2, 3, 4].map(() => wait('k'))];
  },
  'of a key that another process holds, all at once': async ({ other, wait }) => {
    await other.acquire('k');
    return [1, 2, 3, 4].map(() => wait('k'));
  },
  'of the second of several keys': async ({ other, wait }) => {
    await other.acquire('k');
    return ['a', 'b', 'c', 'd'].map((first) => wait([first, 'k']));
  },
  'of a transaction': async ({ other, scope, wait }) => {
    await other.acquire('k');
    return [1, 2, 3, 4].map(() => scope.run(() => wait('k')));
  },
  'of one transaction': async ({ other, scope, wait }) => {
    await other.acquire('k');
    const calls: Promise<unknown>[] = [];
    void scope.run(async () => {
      calls.push(...[1, 2, 3, 4].map(() => wait('k')));
      await Promise.allSettled(calls);
    });
    return calls;
  },
  'with tickets whose joins fail': async ({ other, wait, store }) => {
    const lock = await other.acquire('k');
    store.isAway = true;
    return [1, 2, 3, 4].map(() => enterTickets(lock.makeTicket(), () => wait('k')));
  },
  'for a store that is away': async ({ store, wait }) => {
    store.isAway = true;
    return [1, 2, 3, 4].map(() => wait('k'));
  },
};

const services: LockService[] = [];
afterEach(() => Promise.all(services.splice(0).map((locks) => locks.shutdown())));

describe.each<[string, (n: number) => TestSettings['maxWaiters']]>([
  ['key', (perKey) => ({ perKey })],
  ['process', (perProcess) => ({ perProcess })],
])('so many calls wait for each %s as maxWaiters says', (_, limits) => {
  test.each(Object.keys(CASES).flatMap((name) => [0, 1, 2].map((most) => [most, name] as const)))('%i, %s', async (most, name) => {
    const store = new FlakyStore();
    const scope = new TransactionScope();
    const locks = makeLocks(store, { maxWaiters: limits(most), transaction: scope.current });
    const other = makeLocks(store, { ttl: 20_000 });
    services.push(locks, other);
    const refused: unknown[] = [];
    let waiting = 0;
    const wait = async (key: string | readonly string[]): Promise<void> => {
      waiting++;
      try {
        await locks.withLock(key as string, { wait: 3_000, ttl: 20_000 }, () => undefined);
      } catch (error) {
        refused.push((error as { reason?: unknown }).reason ?? error);
      } finally {
        waiting--;
      }
    };
    const calls = await (CASES[name] as (typeof CASES)[string])({ store, locks, other, scope, wait });
    await sleep(1_000);
    expect(waiting).toBe(most);
    expect(refused).toHaveLength(4 - most);
    // The contender knows that the store is away; those behind it know only that it waits.
    expect(refused.filter((reason) => reason !== 'tooManyWaiters' && !(store.isAway && reason instanceof LockStoreError))).toEqual([]);
    await Promise.all(calls);
    expect(refused).toHaveLength(4);
  });
});

test('a call that is inside the lock is refused by no maxWaiters: others wait for its section', async () => {
  const locks = makeLocks(new MemoryLockStore(), { maxWaiters: { perKey: 0, perProcess: 0 } });
  const order: number[] = [];
  await locks.withLock('k', () => Promise.all([1, 2].map((each) => locks.withLock('k', () => sleep(300).then(() => order.push(each))))));
  expect(order).toEqual([1, 2]);
  expect(await locks.withLock('k', { wait: 0 }, () => 'free')).toBe('free');
});
