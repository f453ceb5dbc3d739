import { outsideLocks } from '../../../lib/core/calls/call-tree';
import { LockNotAcquiredError } from '../../../lib/core/words/errors';
import type { AcquireReply } from '../../../lib/core/seam/lock-store';
import type { Cycle } from '../../../lib/core/words/cycle-call';
import { notAcquired } from '../../../lib/core/entering/not-acquired';
import type { Frame } from '../../../lib/core/entering/frame';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

let store: MemoryLockStore;
let locks: LockService;
/** Another process. */
let others: LockService;

beforeEach(async () => {
  store = new MemoryLockStore();
  [locks, others] = [makeLocks(store), makeLocks(store)];
  // A process does not begin with its first lock.
  await sleep(60_000);
});
afterEach(() => Promise.all([locks.shutdown(), others.shutdown()]));

const refusalOf = async (call: Promise<unknown>): Promise<LockNotAcquiredError> => {
  const outcome = await call.then(() => 'entered', (error: unknown) => error); // prettier-ignore
  expect(outcome).toBeInstanceOf(LockNotAcquiredError);
  return outcome as LockNotAcquiredError;
};
const never = (): never => {
  throw new Error('The body ran.');
};
const nothing = (): undefined => undefined;

describe('a call that gave up is told', () => {
  test.each([
    ['this process', () => locks, 1_000],
    ['another process', () => others, 0],
  ])('for how long it waited, and who in %s has the lock, since when and for how long at least', async (_, holders, wait) => {
    const held = holders().withLock('k', { by: 'Reports.make', ttl: 5_000, renew: false }, () => sleep(2_000));
    await sleep(300);
    const { reason, waitedMs, holder, retryAfterMs, detail } = await refusalOf(locks.withLock('k', { wait }, never));
    const heldMs = 300 + wait;
    expect({ reason, waitedMs, holder }).toEqual({
      reason: 'busy',
      waitedMs: wait,
      holder: { by: expect.stringContaining('Reports.make') as string, heldMs },
    });
    expect(detail).toMatch(/(at once|within 1000 ms): it is held by .+ Reports\.make since (1\.3 s|300 ms)\. Raise wait/);
    expect(retryAfterMs).toBeGreaterThan(5_000 - heldMs - 200);
    expect(retryAfterMs).toBeLessThanOrEqual(5_000 - heldMs);
    await held;
  });

  test('that the code of the holder has ended, where its minHold keeps the lock', async () => {
    await locks.withLock('k', { minHold: 2_000 }, nothing);
    const { detail } = await refusalOf(locks.withLock('k', { wait: 500 }, never));
    expect(detail).toContain('Its code has ended, and minHold keeps the lock. Raise wait, or lower minHold.');
  });

  test('that others are before it, where nobody has the lock yet', async () => {
    store.acquire = async (): Promise<AcquireReply> => ({ remainingMs: 500, holder: { by: '', heldMs: 0 } });
    const { holder, detail } = await refusalOf(locks.withLock('k', { wait: 0 }, never));
    expect(holder).toBeUndefined();
    expect(detail).toMatch(/at once: other calls are before this one\. /);
  });

  test('that its signal aborted, after how long, and why', async () => {
    const held = await locks.acquire('k');
    const [aborter, why] = [new AbortController(), new Error('the client left')];
    const waits = refusalOf(locks.withLock('k', { signal: aborter.signal }, never));
    await sleep(400);
    aborter.abort(why);
    const { reason, cause, detail } = await waits;
    expect({ reason, cause }).toEqual({ reason: 'aborted', cause: why });
    expect(detail).toContain("the call's signal aborted after 400 ms of waiting.");
    await held.release();
  });

  test('that the application shuts down, and to repeat the call', async () => {
    const held = await others.acquire('k');
    const waits = refusalOf(locks.withLock('k', never));
    await sleep(100);
    await locks.shutdown();
    for (const refusal of [await waits, await refusalOf(locks.withLock('k', never))]) {
      expect(refusal.reason).toBe('shutdown');
      expect(refusal.detail).toMatch(/shutting down\. Repeat the call/);
    }
    await held.release();
  });
});

describe('what to do about a lock that is busy', () => {
  test('is to go inside the handle that has it, for a call beside that handle only', async () => {
    const beside = /handle from acquire\(\).*inside lock\.run/;
    await locks.withLock('outer', async () => {
      const handle = await locks.acquire('k');
      expect((await refusalOf(locks.withLock('k', { wait: 20 }, never))).detail).toMatch(beside);
      await handle.release();
    });
    let handle: Awaited<ReturnType<LockService['acquire']>> | undefined;
    const outer = locks.withLock('outer', async () => {
      handle = await locks.acquire('k');
      await sleep(100);
      await handle.release();
    });
    await until('the handle', () => handle !== undefined);
    const { detail } = await refusalOf(locks.withLock('k', { wait: 20 }, never));
    expect(detail).not.toMatch(beside);
    expect(detail).toContain('Raise wait');
    await outer;
  });

  test('is to re-enter, or to come after its own caller, for a call inside the lock that it wants anew', async () => {
    const inside = /made inside that holder: where that one awaits it, no wait is long enough\. Leave out reentry: 'never'/;
    const anew = (): Promise<LockNotAcquiredError> => refusalOf(locks.withLock('k', { wait: 20, reentry: 'never' }, never));
    await locks.withLock('k', () =>
      locks.withLock('other', async () => {
        expect((await anew()).detail).toMatch(inside);
        expect((await outsideLocks(anew)).detail).toContain('Raise wait');
      }),
    );
  });

  test('is to shorten the transaction that keeps it, or to make sure that the call is known to belong to it', async () => {
    const scope = new TransactionScope();
    const transacting = makeLocks(store, { transaction: scope.current });
    await scope.run(async () => {
      await transacting.withLock('a', nothing);
      const outside = await refusalOf(transacting.withLock('a', { wait: 20, reentry: 'never' }, never));
      expect(outside.detail).toMatch(
        /the transaction around it has not\. Shorten the transaction.* make sure.* same promise for all calls/,
      );
    });
    await transacting.shutdown();
  });

  test('is to take locks in one order, where the transaction of the call keeps another one', async () => {
    const scope = new TransactionScope();
    const transacting = makeLocks(store, { transaction: scope.current });
    const held = await others.acquire('b');
    await scope.run(async () => {
      await transacting.withLock('c', nothing);
      const { detail } = await refusalOf(transacting.withLock('b', { wait: 20 }, never));
      expect(detail).toMatch(/This call holds "c" while it waits.* withLock\(\["b", "c"\], …\)/);
    });
    await held.release();
    await transacting.shutdown();
  });
});

describe('a call that closes a cycle is told what waits for what', () => {
  const call = { site: 'Orders.ship', heldMs: 40, waitedMs: 0 };
  const fleet = (processes: readonly string[]): Cycle => ({
    scope: 'fleet',
    calls: processes.map((process, at) => ({ ...call, process, holds: `k${at}`, waitsFor: `k${(at + 1) % processes.length}` })),
  });
  const explained = (processes: readonly string[]): string =>
    notAcquired({
      key: 'k0',
      reason: 'cycle',
      frame: {} as Frame,
      site: 'Balances.close',
      shares: undefined,
      reentry: 'context',
      waitMs: 1,
      waitedMs: 1,
      now: 1,
      cycle: fleet(processes),
    }).detail;

  test('in how many processes, and what ends it', () => {
    expect(explained(['p1', 'p1'])).toContain('2 calls in 1 process wait for each other. p1 Orders.ship holds "k0" since 40 ms and waits');
    expect(explained(['p1', 'p2', 'p2'])).toMatch(
      /3 calls in 2 processes wait.* waits for "k1"; p2 Orders\.ship holds "k1".* repeat it\..*one order/,
    );
  });
});
