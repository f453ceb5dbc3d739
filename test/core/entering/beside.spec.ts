import type { Waiter } from '../../../lib/core/calls/waiter';
import type { Lease } from '../../../lib/core/leases/lease';
import { Line } from '../../../lib/core/leases/line';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { saying } from '../../support/saying';
import { until } from '../../support/until';

/** Carries acquires out at once, and answers from when it is told to; the answers of some are lost. */
class SlowStore extends MemoryLockStore {
  asked = 0;
  /** The numbers of the acquires whose answers are lost, from 1. */
  readonly lost = new Set<number>();
  #answers!: () => void;
  readonly #isAnswering = new Promise<void>((resolve) => {
    this.#answers = resolve;
  });

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const number = ++this.asked;
    const reply = await super.acquire(hold, place);
    await this.#isAnswering;
    if (this.lost.has(number)) {
      throw new LockStoreError('the answer was lost', hold.key, { unknown: true });
    }
    return reply;
  }

  answer(): void {
    this.#answers();
  }
}

let store: SlowStore;
let locks: LockService;
let inside: number;
let most: number;

beforeEach(() => {
  store = new SlowStore();
  locks = makeLocks(store);
  inside = most = 0;
});
afterEach(() => locks.shutdown());

/** The body of a call: notes how many are inside at once. */
const body = async (): Promise<string> => {
  most = Math.max(most, ++inside);
  await new Promise((resolve) => setImmediate(resolve));
  inside--;
  return 'ran';
};
const times = <T>(count: number, start: () => Promise<T>): Promise<T>[] => Array.from({ length: count }, start);
const permit = (permits: number, options = {}) => locks.withPermit('k', permits, options, body);
const read = (options = {}) => locks.withLock('k', { ...options, mode: 'read' }, body);

describe('calls of one process that want permits at once', () => {
  test('ask for them together', async () => {
    const calls = times(64, () => permit(64));
    expect(store.asked).toBe(64);
    store.answer();
    await Promise.all(calls);
    expect(most).toBe(64);
    expect(await store.inspect('k')).toBeNull();
  });

  test('ask for no more than there are, and all run', async () => {
    const calls = times(10, () => permit(3));
    expect(store.asked).toBe(3);
    store.answer();
    expect(await Promise.all(calls)).toEqual(Array(10).fill('ran'));
    expect(most).toBe(3);
    expect(await store.inspect('k')).toBeNull();
  });

  test('wait for others where fewer are left than they asked for', async () => {
    store.answer();
    const other = makeLocks(store);
    const held = await other.acquirePermit('k', 3);
    const calls = times(3, () => permit(3));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await held.release();
    expect(await Promise.all(calls)).toEqual(['ran', 'ran', 'ran']);
    expect(most).toBeLessThan(3);
    expect(await store.inspect('k')).toBeNull();
  });

  test('ask for none before those that wait already', () => {
    const line = new Line('k');
    expect(line.mayAskBeside(3, true)).toBe(true);
    line.behind({} as Lease, false).add({} as Waiter);
    expect(line.mayAskBeside(3, true)).toBe(false);
  });

  test('go in as they came, also those that asked in vain', async () => {
    const other = makeLocks(store);
    const others = other.acquirePermit('k', 1);
    const order: number[] = [];
    const calls = Array.from({ length: 8 }, (_, at) => locks.withPermit('k', 3, () => void order.push(at)));
    store.answer();
    const held = await others;
    await new Promise((resolve) => setTimeout(resolve, 20));
    await held.release();
    await Promise.all(calls);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('are told that the key is held as a lock, where a call that came before them has it as one', async () => {
    store.answer();
    const held = await makeLocks(store).acquire('k');
    let end!: () => void;
    const locked = locks.withLock('k', () => new Promise<void>((resolve) => (end = resolve)));
    await until('that it waits', async () => (await store.inspect('k'))?.waiters.length === 1);
    const refused = permit(3, { wait: 500 }).catch((error: unknown) => error);
    await held.release();
    const detail = expect.stringContaining('within 500 ms: it is held as a lock by ') as string;
    expect(await refused).toMatchObject({ reason: 'busy', detail });
    end();
    await locked;
  });

  test('are refused, those that do not wait, only where none is left', async () => {
    const calls = times(3, () => permit(2, { wait: 0 }).catch((error: { reason: string }) => error.reason));
    store.answer();
    expect(await Promise.all(calls)).toEqual(['ran', 'ran', 'busy']);
  });

  test('are refused, those that do not wait, with who has them', async () => {
    store.answer();
    const other = makeLocks(store);
    await using held = await other.acquirePermit('k', 1, { by: 'Erp.sync' });
    expect(held.isHeld()).toBe(true);
    const errors = await Promise.all(times(2, () => permit(2, { wait: 0 }).catch((error: unknown) => error)));
    for (const error of errors) {
      expect(error).toMatchObject({ reason: 'busy', holder: { by: expect.stringContaining('Erp.sync') as string } });
    }
  });

  test('keep none of which the answer was lost, and those that wait ask again', async () => {
    store.lost.add(2);
    const calls = [permit(3), permit(3), permit(3)];
    store.answer();
    expect(await Promise.all(calls)).toEqual(['ran', 'ran', 'ran']);
    expect(store.asked).toBe(4);
    expect(await store.inspect('k')).toBeNull();
  });

  test('keep none of which the answer was lost, and those that do not wait get the error of the store', async () => {
    store.lost.add(2);
    const calls = [permit(3), permit(3, { wait: 0 })] as const;
    store.answer();
    await expect(calls[1]).rejects.toMatchObject(saying('the answer was lost'));
    await calls[0];
    expect(await store.inspect('k')).toBeNull();
  });

  test('keep none of which the grant came after its own lease, and ask again', async () => {
    store = new SlowStore({ expires: true });
    let ahead = 0;
    const clock = { monotonic: () => performance.now() + ahead, wall: () => Date.now() + ahead };
    locks = makeLocks(store, { clock, wait: 60_000 });
    const calls = [permit(3), permit(3)];
    ahead = 10_000;
    store.answer();
    expect(await Promise.all(calls)).toEqual(['ran', 'ran']);
    expect(store.asked).toBe(4);
    expect(await store.inspect('k')).toBeNull();
  });

  test('keep none that was granted to a call whose signal had aborted', async () => {
    const aborter = new AbortController();
    const calls = [permit(3), permit(3, { signal: aborter.signal })] as const;
    aborter.abort();
    store.answer();
    await expect(calls[1]).rejects.toMatchObject({ reason: 'aborted' });
    await calls[0];
    expect(await store.inspect('k')).toBeNull();
  });

  test('keep none where the application shuts down meanwhile', async () => {
    const calls = times(3, () => permit(3).catch((error: { reason: string }) => error.reason));
    const closing = locks.shutdown();
    store.answer();
    expect(await Promise.all(calls)).toEqual(['shutdown', 'shutdown', 'shutdown']);
    await closing;
    expect(await store.inspect('k')).toBeNull();
  });
});

describe('readers of one process that come at once', () => {
  test('ask once, where they wait', async () => {
    const calls = times(20, () => read());
    expect(store.asked).toBe(1);
    store.answer();
    await Promise.all(calls);
    expect(store.asked).toBe(1);
    expect(most).toBe(20);
  });

  test('all enter, also those that do not wait', async () => {
    const calls = [read(), read(), read({ wait: 0 }), read({ wait: 0 })];
    store.answer();
    expect(await Promise.all(calls)).toEqual(['ran', 'ran', 'ran', 'ran']);
    expect(most).toBe(4);
    expect(await store.inspect('k')).toBeNull();
  });

  test('do not enter beside a writer of their process that asks', async () => {
    const calls = [locks.withLock('k', body), read({ wait: 0 }).catch((error: { reason: string }) => error.reason)];
    store.answer();
    expect(await Promise.all(calls)).toEqual(['ran', 'busy']);
    expect(most).toBe(1);
  });
});
