import { jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { Lock } from '../../../lib/core/words/lock';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { currentLock } from '../../../lib/nest/current-lock';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks, type TestSettings } from '../../support/make-locks';
import { noting } from '../../support/noting';
import { saying } from '../../support/saying';

let store: MemoryLockStore;
let troubles: LockTrouble[];

beforeEach(() => {
  store = new MemoryLockStore();
  troubles = [];
});

const serviceOf = (settings: TestSettings = {}): LockService => makeLocks(store, { onTrouble: noting(troubles), ...settings });

function useFakeTimers(): void {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
}
afterEach(() => {
  jest.useRealTimers();
});

const sleepFaked = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('lock.waitedMs', () => {
  test('is how long the call waited for all of its locks', async () => {
    useFakeTimers();
    const locks = serviceOf();
    const [a, b] = [locks.withLock('a', () => sleepFaked(300)), locks.withLock('b', () => sleepFaked(500))];
    const waited = locks.withLock(['a', 'b'], (lock) => lock.waitedMs);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await waited).toBe(500);
    await Promise.all([a, b]);
    expect(await locks.withLock('a', (lock) => lock.waitedMs)).toBe(0);
  });

  test('a handle has it too, and a re-entry its own', async () => {
    useFakeTimers();
    const locks = serviceOf();
    const first = locks.withLock('k', () => sleepFaked(200));
    const second = locks.acquire('k');
    await jest.advanceTimersByTimeAsync(200);
    await first;
    const lock = await second;
    expect(lock.waitedMs).toBe(200);
    expect(await lock.run(() => locks.withLock('k', (inner) => inner.waitedMs))).toBe(0);
    await lock.release();
  });
});

describe('a section that outlives ten times its ttl', () => {
  const long = (): LockTrouble[] => troubles.filter(({ type }) => type === 'heldLong');

  beforeEach(useFakeTimers);

  test('while a call of its process waits is told once for its key, with its holder', async () => {
    const locks = serviceOf({ wait: 600_000 });
    const held = locks.withLock('k', { ttl: 1_000, by: 'Reports.make' }, () => sleepFaked(30_000));
    const waiting = locks.withLock('k', () => undefined);
    await jest.advanceTimersByTimeAsync(9_900);
    expect(long()).toEqual([]);
    await jest.advanceTimersByTimeAsync(20_100);
    await Promise.all([held, waiting]);
    expect(long()).toEqual([expect.objectContaining({ key: 'k', ttlMs: 1_000, by: expect.stringContaining('Reports.make') as string })]);
    expect((long()[0] as { heldMs: number }).heldMs).toBeLessThan(12_000);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(jest.getTimerCount()).toBe(0);

    const again = [locks.withLock('k', { ttl: 1_000 }, () => sleepFaked(30_000)), locks.withLock('k', () => undefined)];
    await jest.advanceTimersByTimeAsync(31_000);
    await Promise.all(again);
    expect(long()).toHaveLength(1);
  });

  test('while a call of another process waits is told there', async () => {
    const [here, elsewhere] = [makeLocks(store), serviceOf({ ttl: 1_000, wait: 600_000 })];
    const held = here.withLock('k', { ttl: 1_000, by: 'Reports.make' }, () => sleepFaked(30_000));
    const waiting = elsewhere.withLock('k', () => undefined);
    await jest.advanceTimersByTimeAsync(40_000);
    await Promise.all([held, waiting]);
    expect(long()).toEqual([expect.objectContaining({ key: 'k', by: expect.stringContaining('Reports.make') as string })]);
  });

  test('counts from when its lock was acquired, however old the process is', async () => {
    const locks = serviceOf({ wait: 600_000 });
    await jest.advanceTimersByTimeAsync(60_000);
    const calls = [locks.withLock('k', { ttl: 1_000 }, () => sleepFaked(15_000)), locks.withLock('k', () => undefined)];
    await jest.advanceTimersByTimeAsync(9_900);
    expect(long()).toEqual([]);
    await jest.advanceTimersByTimeAsync(6_000);
    await Promise.all(calls);
    expect(long()).toMatchObject([{ key: 'k' }]);
  });

  test('is looked for by one timer, however many calls wait', async () => {
    const locks = serviceOf({ wait: 600_000 });
    const held = locks.withLock('k', () => sleepFaked(5_000));
    const waiting = [locks.withLock('k', () => undefined)];
    await jest.advanceTimersByTimeAsync(100);
    const before = jest.getTimerCount();
    waiting.push(...Array.from({ length: 10 }, () => locks.withLock('k', () => undefined)));
    // Each has one for its own wait.
    expect(jest.getTimerCount()).toBe(before + 10);
    await jest.advanceTimersByTimeAsync(6_000);
    await Promise.all([held, ...waiting]);
  });

  test('and has ended, of which minHold keeps the lock, is nobody’s business', async () => {
    const locks = serviceOf({ wait: 600_000 });
    const held = locks.withLock('k', { ttl: 1_000, minHold: 30_000 }, () => undefined);
    const waiting = locks.withLock('k', () => 'entered');
    await jest.advanceTimersByTimeAsync(35_000);
    expect(await waiting).toBe('entered');
    await held;
    expect(long()).toEqual([]);
  });

  test('while nobody waits is nobody’s business', async () => {
    const locks = serviceOf();
    const held = locks.withLock('k', { ttl: 1_000 }, () => sleepFaked(30_000));
    await jest.advanceTimersByTimeAsync(20_000);
    expect(await locks.tryAcquire('k')).toBeNull();
    expect(await makeLocks(store, { onTrouble: noting(troubles) }).tryAcquire('k')).toBeNull();
    await jest.advanceTimersByTimeAsync(10_000);
    await held;
    expect(long()).toEqual([]);
  });

  test('is not told where the store knows nobody who holds the lock', async () => {
    const locks = serviceOf({ ttl: 1_000 });
    store.acquire = () => Promise.resolve({ remainingMs: 100, holder: { by: '', heldMs: 60_000 } });
    const refused = expect(locks.withLock('k', { wait: 500 }, () => undefined)).rejects.toMatchObject({ holder: undefined });
    await jest.advanceTimersByTimeAsync(1_000);
    await refused;
    expect(long()).toEqual([]);
  });

  test('is remembered for a thousand keys, and not for all', async () => {
    const locks = serviceOf({ wait: 600_000 });
    const onKey = async (key: string): Promise<void> => {
      const calls = [locks.withLock(key, { ttl: 1_000 }, () => sleepFaked(12_000)), locks.withLock(key, () => undefined)];
      await jest.advanceTimersByTimeAsync(13_000);
      await Promise.all(calls);
    };
    await onKey('first');
    const many = Array.from({ length: 1_000 }, (_, index) => `k${index}`);
    const calls = many.flatMap((key) => [
      locks.withLock(key, { ttl: 1_000 }, () => sleepFaked(12_000)),
      locks.withLock(key, () => undefined),
    ]);
    await jest.advanceTimersByTimeAsync(13_000);
    await Promise.all(calls);
    expect(long()).toHaveLength(1_001);
    await onKey('first');
    await onKey('k999');
    expect(long()).toHaveLength(1_002);
    // Two thousand calls take their time on a busy machine.
  }, 240_000);
});

describe('a handle that nobody released', () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const unreleased = (): LockTrouble[] => troubles.filter(({ type }) => type === 'unreleased');

  /** Collects garbage, and lets the registries tell of it. */
  async function collect(times: number, isDone: () => boolean = () => false): Promise<void> {
    for (let time = 0; time < times && !isDone(); time++) {
      await turn();
      gc();
      await turn();
    }
  }

  /** Acquires in a function of its own, so that nothing on the stack refers to the handle. */
  async function dropHandle(locks: LockService, key: string, use: (lock: Lock) => unknown = () => undefined): Promise<void> {
    await use(await locks.acquire(key, { by: 'Jobs.leak' }));
  }

  test('that was released is kept by nothing', async () => {
    const locks = serviceOf({});
    const kept = async (calls: number): Promise<number> => {
      const before = process.memoryUsage().heapUsed;
      for (let call = 0; call < calls; call++) {
        await (await locks.acquire('k')).release();
      }
      // A handle is kept until the turn ends in which it was made.
      await turn();
      gc();
      return process.memoryUsage().heapUsed - before;
    };
    await kept(5_000);
    // Until the second collection, a registry would keep a kilobyte of each.
    expect(await kept(10_000)).toBeLessThan(4_000_000);
  });

  test('is told once it is garbage collected, with its key and who acquired it; its lock stays', async () => {
    const locks = serviceOf();
    await dropHandle(locks, 'k');
    await collect(200, () => unreleased().length > 0);
    expect(unreleased()).toEqual([expect.objectContaining({ key: 'k', by: expect.stringContaining('Jobs.leak') as string })]);
    expect(await locks.tryAcquire('k')).toBeNull();
    await collect(5);
    expect(unreleased()).toHaveLength(1);
    await locks.shutdown();
  });

  test('is not one that was released, whose lock was lost, or that somebody still refers to', async () => {
    const locks = serviceOf();
    await dropHandle(locks, 'released', (lock) => lock.release());
    await dropHandle(locks, 'lost', (lock) => store.forceRelease('lost', lock.fence));
    const kept = await locks.acquire('kept');
    let inner: Lock | undefined;
    await dropHandle(locks, 'seen inside', (lock) => lock.run(() => (inner = currentLock())));
    await dropHandle(locks, 'canary');
    await collect(200, () => unreleased().length > 0);
    await collect(5);
    expect(unreleased().map(({ key }) => key)).toEqual(['canary']);
    expect([kept.isHeld(), inner?.isHeld()]).toEqual([true, true]);
    await locks.shutdown();
  });
});

describe('the debug log', () => {
  test('has a line for each step of a lock, with neither owners nor tickets', async () => {
    const lines: string[] = [];
    const locks = serviceOf({ debug: (line) => lines.push(line) });
    const secrets: string[] = [];
    const elsewhere = await makeLocks(store).acquire('k', { by: 'Other.holds' });
    const first = locks.withLock('k', { by: 'Balances.credit' }, async (lock) => {
      secrets.push(...(JSON.parse(Buffer.from(lock.makeTicket(), 'base64url').toString()) as string[][]).flat(), lock.makeTicket());
      await locks.withLock('k', { by: 'Balances.nested' }, () => undefined);
    });
    const second = locks.withLock('k', { by: 'Balances.debit' }, () => undefined);
    await turn();
    await elsewhere.release();
    await Promise.all([first, second]);
    expect(lines.map((line) => line.split(' ')[0])).toEqual(
      expect.arrayContaining(['busy', 'queued', 'acquired', 'waited', 'reentered', 'released']),
    );
    const waiter = 'by=".*Balances.(credit|debit)" store=default';
    for (const line of [
      'queued "k" behind=\\d+ by=".*Balances.debit" store=default',
      `busy "k" heldBy=".*Other.holds" heldMs=\\d+ remainingMs=\\d+ ${waiter}`,
      `waited "k" waitedMs=\\d+ holder=".*Other.holds" ${waiter}`,
      'reentered "k" fence=\\d+ by=".*Balances.nested" store=default',
    ]) {
      expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^${line}$`)));
    }
    const told = lines.join('\n');
    expect(secrets.filter((secret) => typeof secret === 'string' && secret !== 'k' && told.includes(secret))).toEqual([]);
  });

  test('says how much of a lease was left when it was renewed, to a hundredth', async () => {
    useFakeTimers();
    const lines: string[] = [];
    const held = serviceOf({ debug: (line) => lines.push(line) }).withLock('k', { ttl: 3_000 }, () => sleepFaked(2_000));
    await jest.advanceTimersByTimeAsync(2_000);
    await held;
    expect(lines).toContainEqual(expect.stringMatching(/^renewed "k" fence=\d+ margin=0\.[67]\d by=/));
  });

  test('says that a store fails again, which is told only once', async () => {
    const lines: string[] = [];
    const locks = serviceOf({ debug: (line) => lines.push(line) });
    store.acquire = ({ key }) => Promise.reject(new LockStoreError(`Lock "${key}": no answer`, key, { unknown: false }));
    for (const key of ['a', 'b']) {
      await expect(locks.withLock(key, { wait: 0, by: 'Jobs.run' }, () => undefined)).rejects.toThrow(saying(/no answer/));
    }
    expect(lines).toContainEqual(expect.stringMatching(/^failedAgain "b" error="Lock \\"b\\": no answer" by=".*Jobs\.run" store=default$/));
    expect(troubles).toEqual([expect.objectContaining({ type: 'storeUnavailable', key: 'a' })]);
  });

  test('does not say that a call queues which does not wait', async () => {
    const lines: string[] = [];
    const locks = serviceOf({ debug: (line) => lines.push(line) });
    await locks.withLock('k', async () => {
      await expect(locks.withLock('k', { reentry: 'never', wait: 0 }, () => undefined)).rejects.toThrow(/not acquired/);
    });
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['acquired', 'refused', 'released']);
  });

  test('writes control characters of a key escaped', async () => {
    const lines: string[] = [];
    await serviceOf({ debug: (line) => lines.push(line) }).withLock('k\n\u001b[31mred', () => undefined);
    expect(lines.filter((line) => line.includes('\n') || line.includes('\u001b'))).toEqual([]);
    expect(lines.length).toBeGreaterThan(0);
  });

  test('that fails keeps no lock taken', async () => {
    const locks = serviceOf({
      debug: () => {
        throw new Error('disk full');
      },
    });
    expect(await locks.withLock('k', () => 'ran')).toBe('ran');
    expect(await locks.withLock('k', () => 'ran')).toBe('ran');
  });
});
