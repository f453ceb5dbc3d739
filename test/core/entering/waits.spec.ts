import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Acquisition } from '../../../lib/core/entering/acquisition';
import { Frame } from '../../../lib/core/entering/frame';
import { Waiters } from '../../../lib/core/entering/waiters';
import type { Leases } from '../../../lib/core/leases/leases';
import { Lifecycle } from '../../../lib/core/seam/lifecycle';
import type { HoldRecord, StoredLock } from '../../../lib/core/seam/lock-store';
import { systemClock } from '../../../lib/core/seam/time';
import { parseCall, type LockOptions } from '../../../lib/core/words/call-options';
import { LockStoreError } from '../../../lib/core/words/errors';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

describe('a wait that begins when its call has given up already ends at once', () => {
  let lifecycle: Lifecycle;
  let waiters: Waiters;
  beforeEach(() => {
    lifecycle = new Lifecycle();
    waiters = new Waiters(systemClock, lifecycle, { perKey: 10, perProcess: 10 }, undefined);
  });
  const call = (options: LockOptions = {}): Acquisition => {
    const parsed = parseCall(options, { ttlMs: 5_000, waitMs: 60_000, maxHoldMs: Infinity }, 'test');
    return new Acquisition('default', parsed, new Frame({} as Leases, ['k'], false), systemClock);
  };
  const wait = async (waiting: Acquisition): Promise<[unknown, number]> => {
    const startedAt = performance.now();
    const outcome: unknown = await waiters.wait('k', waiting, Infinity).catch((error: unknown) => error);
    return [outcome, performance.now() - startedAt];
  };

  test('with the error that it was withdrawn with', async () => {
    const withdrawn = call();
    const error = withdrawn.refused('k', 'cycle', undefined, { scope: 'process', calls: [] });
    withdrawn.withdraw(error);
    expect(await wait(withdrawn)).toEqual([error, 0]);
  });

  test('as the process shuts down', async () => {
    await lifecycle.close(async () => undefined);
    expect(await wait(call())).toEqual(['shutdown', 0]);
  });

  test('as its signal has aborted', async () => {
    expect(await wait(call({ signal: AbortSignal.abort() }))).toEqual(['aborted', 0]);
    expect(await wait(call({ wait: 20 }))).toEqual(['busy', 20]);
  });
});

/** Keeps what is asked of it in search of a deadlock. */
class SearchedStore extends MemoryLockStore {
  inspected = 0;
  readonly sent: string[] = [];
  override async inspect(key: string): Promise<StoredLock | null> {
    this.inspected++;
    return super.inspect(key);
  }
  override async send(text: string, process?: string): Promise<void> {
    this.sent.push(text);
    return super.send(text, process);
  }
}

describe('a deadlock is looked for', () => {
  let store: SearchedStore;
  beforeEach(() => {
    store = new SearchedStore();
  });
  const serviceOf = (): ReturnType<typeof makeLocks> => makeLocks(store, { deadlocksAfterMs: 100, wait: 60_000 });

  test('by a call that is inside a lock while it waits, and by no other', async () => {
    const [locks, others] = [serviceOf(), serviceOf()];
    const held = await others.acquire('k');
    const first = locks.withLock('k', () => undefined);
    const behind = locks.withLock('k', () => undefined);
    await sleep(2_000);
    expect([store.inspected, store.sent]).toEqual([0, []]);
    const nested = locks.withLock('outer', () => locks.withLock('k', () => 'entered'));
    await sleep(2_000);
    expect(store.inspected).toBeGreaterThan(0);
    await held.release();
    expect(await Promise.all([nested, first, behind])).toEqual(['entered', undefined, undefined]);
  });

  test('for each lock that a call waits for by a name of its own', async () => {
    const [locks, others] = [serviceOf(), serviceOf()];
    const held = [await others.acquire('b'), await others.acquire('c')];
    const nested = locks.withLock('outer', () => locks.withLock(['b', 'c'], () => 'entered'));
    for (const lock of held) {
      await sleep(2_000);
      await lock.release();
    }
    expect(await nested).toBe('entered');
    const probes = store.sent.map((text) => JSON.parse(text) as { key: string; origin: string });
    const origins = ['b', 'c'].map((key) => new Set(probes.filter((probe) => probe.key === key).map(({ origin }) => origin)));
    expect(origins.map(({ size }) => size)).toEqual([1, 1]);
    expect(origins[0]).not.toEqual(origins[1]);
  });

  test('by no call that waits for a store that does not answer to its ticket', async () => {
    const [locks, others] = [serviceOf(), serviceOf()];
    const held = await others.acquire('k');
    store.join = async ({ key }: HoldRecord) => Promise.reject(new LockStoreError('away', key, { unknown: false }));
    const nested = locks.withLock('outer', () => locks.withLock('k', { ticket: held.makeTicket(), wait: 2_000 }, () => 'entered'));
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_STORE' });
    expect([store.inspected, store.sent]).toEqual([0, []]);
    await held.release();
  });
});

describe('events tell of a call', () => {
  const events: LockEvent[] = [];
  const listener = (event: unknown): void => void events.push(event as LockEvent);
  beforeEach(() => {
    events.length = 0;
    subscribe(LOCK_CHANNEL, listener);
  });
  afterEach(() => void unsubscribe(LOCK_CHANNEL, listener));

  test('whether it had to wait, for how long, and whether that was for a call inside the same lock', async () => {
    const locks = makeLocks(new MemoryLockStore());
    const first = locks.withLock('k', { name: 'first' }, () => sleep(100));
    await locks.withLock('k', { name: 'second' }, async () => {
      const inside = (name: string): Promise<void> => locks.withLock('k', { name }, () => sleep(50));
      await Promise.all([inside('inner'), inside('beside')]);
    });
    await first;
    const told = (type: string): unknown[] => events.filter((event) => event.type === type);
    expect(told('acquired')).toMatchObject([
      { name: 'first', contended: false, waitedMs: 0 },
      { name: 'second', contended: true, waitedMs: 100 },
    ]);
    expect(told('waited')).toMatchObject([
      { name: 'second', inside: false, waitedMs: 100 },
      { name: 'beside', inside: true, waitedMs: 50 },
    ]);
  });
});
