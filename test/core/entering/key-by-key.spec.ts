import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import { LockLostError } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import { type Clock, systemClock } from '../../../lib/core/seam/time';
import { Locks } from '../../../lib/locks';
import { enterTickets } from '../../../lib/nest/current-tickets';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Keeps what it was asked for. */
class AskedStore extends MemoryLockStore {
  readonly asked: HoldRecord[] = [];
  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.asked.push(hold);
    return super.acquire(hold, place);
  }
}

let store: AskedStore;
let locks: LockService;
/** Another process. */
let others: LockService;

beforeEach(() => {
  store = new AskedStore();
  [locks, others] = [makeLocks(store), makeLocks(store)];
});
afterEach(() => Promise.all([locks.shutdown(), others.shutdown()]));

const nothing = (): undefined => undefined;
const never = (): never => {
  throw new Error('The body ran.');
};
const isTaken = async (key: string): Promise<boolean> => (await others.operations.inspect(key)) !== null;
const lose = async (key: string): Promise<void> => {
  await others.operations.forceRelease(key, { fence: (await others.operations.inspect(key))?.fence ?? 0 });
};

describe('a call of several keys of which one is lost while it waits for the next', () => {
  test('takes all anew, as another owner, so that nobody else is taken for it', async () => {
    const held = await others.acquire('b');
    const call = locks.withLock(['a', 'b'], (lock) => [lock.fenceOf('a'), lock.isHeld()]);
    await until('it has a', () => isTaken('a'));
    const before = await others.operations.inspect('a');
    await lose('a');
    await held.release();
    const [fence, isHeld] = await call;
    expect(fence).toBeGreaterThan(before?.fence ?? Infinity);
    expect(isHeld).toBe(true);
    const owners = store.asked.filter(({ key }) => key === 'a').map(({ owner }) => owner);
    expect(new Set(owners).size).toBe(2);
    expect(store.asked.findLast(({ key }) => key === 'b')?.owner).toBe(owners.at(-1));
  });

  test('has lost nothing of what its body gets', async () => {
    const held = await others.acquire('b');
    const call = locks.withLock(['a', 'b'], (lock) => lock.signal.aborted);
    await until('it has a', () => isTaken('a'));
    await lose('a');
    await held.release();
    expect(await call).toBe(false);
  });

  test('is told of the loss where that is the lock of a call around it', async () => {
    const held = await others.acquire('b');
    let inner: Promise<unknown> | undefined;
    const outer = locks.withLock('a', async () => {
      inner = locks.withLock(['a', 'b'], never);
      await inner;
    });
    outer.catch(nothing);
    await until('it waits', async () => (await others.operations.inspect('b'))?.waiters.length === 1);
    await lose('a');
    await held.release();
    await expect(inner).rejects.toMatchObject({ code: 'LOCK_LOST', key: 'a', reason: 'forced' });
    await expect(outer).rejects.toBeInstanceOf(LockLostError);
    await until('it has released b', async () => !(await isTaken('b')));
  });
});

test('calls of several keys that re-enter a lock beside each other run one after the other', async () => {
  let [inside, most] = [0, 0];
  const work = async (): Promise<void> => {
    most = Math.max(most, ++inside);
    await sleep(50);
    inside--;
  };
  await locks.withLock('a', () => Promise.all(['b', 'c', 'd'].map((key) => locks.withLock(['a', key], work))));
  expect(most).toBe(1);
});

test('a call that does not wait finds a lock busy, however many wait for it already', async () => {
  const full = makeLocks(store, { maxWaiters: { perKey: 1, perProcess: 1 } });
  const first = full.withLock('k', () => sleep(100));
  const second = full.withLock('k', nothing);
  await expect(full.withLock('k', { wait: 0 }, never)).rejects.toMatchObject({ reason: 'busy' });
  await expect(full.withLock('k', never)).rejects.toMatchObject({ reason: 'tooManyWaiters' });
  await Promise.all([first, second]);
  await full.shutdown();
});

describe('a ticket', () => {
  test('is refused in a store that lets nobody in by one', async () => {
    const ticket = (await others.acquire('k')).makeTicket();
    const plain = new MemoryLockStore();
    Object.defineProperty(plain, 'tickets', { value: undefined });
    const call = makeLocks(plain).withLock('k', { ticket }, never);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'k' });
    await expect(call).rejects.toMatchObject({ detail: expect.stringMatching(/store 'default'.*capability 'tickets'/) as string });
  });

  test('of a lock in one store enters no lock of another store', async () => {
    const settings = { store: new MemoryLockStore(), maxWaiters: { perKey: 9, perProcess: 9 }, onTrouble: nothing };
    const elsewhere = new Locks({ name: 'other', ...settings });
    const ticket = (await others.acquire('k')).makeTicket();
    const call = locks.parse({ wait: 100 }, 'test');
    expect(await enterTickets(ticket, () => elsewhere.run(['k'], call, () => 'entered'))).toBe('entered');
    await elsewhere.shutdown();
  });

  test('of another lock hides none that a call around it has', async () => {
    const ticket = (await others.acquire('j')).makeTicket();
    await locks.withLock('k', async () => {
      expect(await enterTickets(ticket, () => locks.withLock('k', { wait: 100 }, () => 'entered'))).toBe('entered');
    });
  });

  test('lets a call in by the lease of the call before it, and the call is told where that ends while it waits for its next key', async () => {
    const [outer, held] = [await others.acquire('a', { ttl: 60_000 }), await others.acquire('b')];
    let ran = false;
    await enterTickets(outer.makeTicket(), async () => {
      const first = locks.withLock('a', { ttl: 1_000, renew: false }, () => sleep(100));
      const second = locks.withLock(['a', 'b'], { wait: 10_000 }, () => (ran = true));
      second.catch(nothing);
      await first;
      await sleep(2_000);
      await held.release();
      await expect(second).rejects.toMatchObject({ code: 'LOCK_LOST', key: 'a', reason: 'expired' });
    });
    expect([ran, outer.isHeld(), await isTaken('b')]).toEqual([false, true, false]);
    await outer.release();
  });

  test('of the lock that its call is inside of re-enters it', async () => {
    await locks.withLock('k', async (lock) => {
      const ticket = lock.makeTicket();
      const work = async (): Promise<number | undefined> => (await others.operations.inspect('k'))?.holds;
      expect(await Promise.all([1, 2].map(() => locks.withLock('k', { ticket }, work)))).toEqual([1, 1]);
    });
  });
});

describe('a call of a transaction', () => {
  let scope: TransactionScope;
  let ahead: { monotonic: number; wall: number };
  let transacting: LockService;
  beforeEach(() => {
    scope = new TransactionScope();
    ahead = { monotonic: 0, wall: 0 };
    const clock: Clock = {
      monotonic: () => systemClock.monotonic() + ahead.monotonic,
      wall: () => systemClock.wall() + ahead.wall,
    };
    transacting = makeLocks(store, { transaction: scope.current, clock });
  });
  afterEach(() => transacting.shutdown());

  test.each([
    ['the thread stood still', { monotonic: 10_000, wall: 10_000 }],
    ['the machine slept', { monotonic: 0, wall: 10_000 }],
  ])('does not enter a lock that the transaction kept, where %s for longer than its lease', async (_, jump) => {
    let last: Promise<unknown> | undefined;
    await scope
      .run(async () => {
        await transacting.withLock('k', { ttl: 5_000 }, nothing);
        ahead = jump;
        last = transacting.acquire('k');
        await last;
      })
      .catch(nothing);
    await expect(last).rejects.toMatchObject({ code: 'LOCK_LOST', key: 'k' });
  });

  test('does not take anew what the transaction kept and has lost, while it waits for its next key', async () => {
    const held = await others.acquire('b');
    let ran = false;
    let last: Promise<unknown> | undefined;
    await scope
      .run(async () => {
        await transacting.withLock('a', nothing);
        last = transacting.withLock(['a', 'b'], () => (ran = true));
        last.catch(nothing);
        await until('it waits', async () => (await others.operations.inspect('b'))?.waiters.length === 1);
        await lose('a');
        await held.release();
        await last;
      })
      .catch(nothing);
    await expect(last).rejects.toMatchObject({ code: 'LOCK_LOST', key: 'a' });
    expect([ran, store.asked.filter(({ key }) => key === 'a').length]).toEqual([false, 1]);
  });

  test('that waits beside another one, which lost the key, is refused when its time is over', async () => {
    const held = await others.acquire('b');
    await scope.run(async () => {
      const first = transacting.withLock(['a', 'b'], () => 'entered');
      await until('it has a', () => isTaken('a'));
      const beside = transacting.withLock('a', { wait: 300 }, never);
      await lose('a');
      await expect(beside).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
      await held.release();
      expect(await first).toBe('entered');
    });
  });
});
