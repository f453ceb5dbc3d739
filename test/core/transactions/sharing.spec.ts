import { LockLostError } from '../../../lib/core/words/errors';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import type { LockService } from '../../../lib/nest/lock.service';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

let scope: TransactionScope;
let locks: LockService;
/** Another process. */
let others: LockService;

const never = (): never => {
  throw new Error('The body ran.');
};
const nothing = (): undefined => undefined;

beforeEach(() => {
  scope = new TransactionScope();
  const store = new MemoryLockStore();
  locks = makeLocks(store, { transaction: scope.current, wait: 0 });
  others = makeLocks(store, { wait: 0 });
});
afterEach(() => Promise.all([locks.shutdown(), others.shutdown()]));

const mayRead = async (): Promise<boolean> => others.withLock('k', { mode: 'read' }, () => true).catch(() => false);
const mayWrite = async (): Promise<boolean> => others.withLock('k', () => true).catch(() => false);
const mayHave = async (permits: number): Promise<boolean> => others.withPermit('k', permits, () => true).catch(() => false);
const force = async (): Promise<void> => {
  await others.operations.forceRelease('k', { fence: (await others.operations.inspect('k'))?.fence ?? 0 });
  await sleep(1);
};

/** A transaction, whose locks are released in the moment after its end. */
async function transact(body: () => Promise<unknown>): Promise<void> {
  await scope.run(body);
  await sleep(1);
}

describe('a reader inside a transaction', () => {
  test('is in until the transaction has ended: others may read meanwhile, and none may write', async () => {
    await transact(async () => {
      await locks.withLock('k', { mode: 'read' }, nothing);
      expect([await mayRead(), await mayWrite()]).toEqual([true, false]);
    });
    expect(await mayWrite()).toBe(true);
  });

  test('lets a call of another transaction read beside it, whose end leaves the first one in', async () => {
    const fences: number[] = [];
    const read = (): Promise<unknown> => locks.withLock('k', { mode: 'read' }, ({ fence }) => fences.push(fence));
    const first = transact(async () => {
      await read();
      await sleep(500);
      expect(await mayWrite()).toBe(false);
      await read();
    });
    await sleep(100);
    await transact(read);
    await first;
    expect(new Set(fences).size).toBe(1);
    expect(fences).toHaveLength(3);
    expect(await mayWrite()).toBe(true);
  });

  test('refuses a writer of its transaction, which would write beside others that read', async () => {
    await transact(async () => {
      await locks.withLock('k', { mode: 'read' }, nothing);
      await expect(locks.withLock('k', { wait: 5_000 }, never)).rejects.toMatchObject({ reason: 'upgrade' });
    });
  });

  test('enters the lock that a writer of its transaction has left, at its fence', async () => {
    await transact(async () => {
      const written = await locks.withLock('k', ({ fence }) => fence);
      expect(await locks.withLock('k', { mode: 'read' }, ({ fence }) => fence)).toBe(written);
      expect(await mayRead()).toBe(false);
    });
  });

  test('that was lost is told to the next call of the transaction, on any key, so that nothing is committed', async () => {
    await transact(async () => {
      await locks.withLock('k', { mode: 'read' }, nothing);
      await force();
      expect(await mayWrite()).toBe(true);
      await expect(locks.withLock('another', never)).rejects.toThrow(LockLostError);
      await expect(locks.withLock('k', { mode: 'read' }, never)).rejects.toMatchObject({ reason: 'forced' });
    });
  });
});

describe('a transaction inside a method in read mode', () => {
  test('keeps no lock of the method, and refuses its writer', async () => {
    await locks.withLock('k', { mode: 'read' }, () =>
      scope.run(async () => {
        expect(await locks.withLock('k', { mode: 'read' }, () => 'inside')).toBe('inside');
        await expect(locks.withLock('k', never)).rejects.toMatchObject({ reason: 'upgrade' });
      }),
    );
    expect(await mayWrite()).toBe(true);
  });
});

describe('a permit inside a transaction', () => {
  test('is taken until the transaction has ended, once for all calls of it', async () => {
    await transact(async () => {
      await locks.withPermit('k', 2, nothing);
      await Promise.all([locks.withPermit('k', 2, () => sleep(10)), locks.withPermit('k', 2, () => sleep(10))]);
      expect([await mayHave(1), await mayHave(2)]).toEqual([false, true]);
    });
    expect(await mayHave(1)).toBe(true);
  });

  test('that was lost is told to the next call of the transaction, so that nothing is committed', async () => {
    await transact(async () => {
      await locks.withPermit('k', 1, nothing);
      await force();
      expect(await mayHave(1)).toBe(true);
      await expect(locks.withLock('another', never)).rejects.toThrow(LockLostError);
      await expect(locks.withPermit('k', 1, never)).rejects.toMatchObject({ reason: 'forced' });
    });
  });

  test('around a transaction is given back when its method has ended', async () => {
    await locks.withPermit('k', 1, () => transact(() => locks.withPermit('k', 1, nothing)));
    expect(await mayHave(1)).toBe(true);
  });
});
