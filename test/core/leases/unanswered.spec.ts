import { LockStoreError, LockLostError } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { noting } from '../../support/noting';
import { until } from '../../support/until';

type Lossy = 'acquire' | 'join' | 'release' | 'exchange';

/** A store that carries commands out and may lose their replies. It notes which releases leave a done mark. */
class LossyStore extends MemoryLockStore {
  readonly releases: { readonly id: string; readonly unanswered: boolean }[] = [];
  readonly #losing: Lossy[] = [];

  /** Loses the replies to the next commands of these kinds. */
  lose(...kinds: readonly Lossy[]): void {
    this.#losing.push(...kinds);
  }

  override acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    return this.#pass('acquire', super.acquire(hold, place));
  }

  override join(hold: HoldRecord): Promise<boolean> {
    return this.#pass('join', super.join(hold));
  }

  override release(hold: HoldRecord): Promise<boolean> {
    this.#note(hold);
    return this.#pass('release', super.release(hold));
  }

  override exchange(...exchanged: Parameters<MemoryLockStore['exchange']>): ReturnType<MemoryLockStore['exchange']> {
    this.#note(exchanged[0]);
    return this.#pass('exchange', super.exchange(...exchanged));
  }

  #note({ id, unanswered }: HoldRecord): void {
    this.releases.push({ id, unanswered });
  }

  async #pass<T>(kind: Lossy, reply: Promise<T>): Promise<T> {
    const answer = await reply;
    if (this.#losing[0] === kind) {
      this.#losing.shift();
      throw new LockStoreError('the reply was lost', 'k', { unknown: true });
    }
    return answer;
  }
}

let store: LossyStore;
let troubles: LockTrouble[];
const marks = (): boolean[] => store.releases.map(({ unanswered }) => unanswered);
const locksOf = () => makeLocks(store, { onTrouble: noting(troubles) });

beforeEach(() => {
  store = new LossyStore();
  troubles = [];
});

describe('a release leaves no done mark', () => {
  test('of a call, a nested call, several keys, a handle and a ticket, each of whose commands was answered', async () => {
    const locks = locksOf();
    await locks.withLock('k', () => locks.withLock('k', () => undefined));
    await locks.withLock(['a', 'b'], () => undefined);
    await (await locks.acquire('k')).release();
    await locks.withLock('k', (lock) => locks.withLock('k', { ticket: lock.makeTicket(), reentry: 'never' }, () => undefined));
    expect(marks().length).toBeGreaterThanOrEqual(5);
    expect(marks()).not.toContain(true);
  });

  test('of calls that one lease serves, nor of those whose leases are exchanged', async () => {
    const locks = locksOf();
    await Promise.all(Array.from({ length: 40 }, () => locks.withLock('k', () => undefined)));
    expect(marks().length).toBeGreaterThanOrEqual(2);
    expect(marks()).not.toContain(true);
  });

  test('where an attempt failed and is known not to have been carried out', async () => {
    const locks = locksOf();
    const refused = refuseOnce(store, new LockStoreError('refused', 'k', { unknown: false }));
    await locks.withLock('k', { wait: 2_000 }, () => undefined);
    expect(refused()).toBe(true);
    expect(marks()).toEqual([false]);
  });
});

/** The next acquire is refused, once; answers whether it was. */
function refuseOnce(refusing: LossyStore, error: Error): () => boolean {
  let isRefused = false;
  const { acquire } = refusing;
  refusing.acquire = (...asked) => {
    refusing.acquire = acquire;
    isRefused = true;
    return Promise.reject(error);
  };
  return () => isRefused;
}

describe('a release leaves a done mark', () => {
  test('of a call whose first attempt was not answered, and which was granted the second time', async () => {
    store.lose('acquire');
    await locksOf().withLock('k', () => undefined);
    expect(marks()).toEqual([true]);
  });

  test('of the last call that such a lease serves', async () => {
    const locks = locksOf();
    store.lose('exchange');
    const fences = await Promise.all([1, 2, 3].map(() => locks.withLock('k', ({ fence }) => fence)));
    expect(fences[2]).toBe((fences[1] as number) + 1);
    await until('the releases', () => store.releases.length === 3);
    const [exchanged] = store.releases;
    // The command of the first call is sent again; the two others had one hold.
    expect(marks()).toEqual([false, true, true]);
    expect(store.releases.filter(({ id }) => id !== exchanged?.id)).toHaveLength(1);
  });

  test('of an attempt that its caller gave up', async () => {
    store.lose('acquire');
    await expect(locksOf().withLock('k', { wait: 0 }, () => undefined)).rejects.toBeInstanceOf(LockStoreError);
    await until('the release', () => store.releases.length > 0);
    expect(marks()).toEqual([true]);
  });

  test('of a join that was not answered', async () => {
    const locks = locksOf();
    await locks.withLock('k', async (lock) => {
      store.lose('join');
      await locks.withLock('k', { ticket: lock.makeTicket(), reentry: 'never' }, () => undefined);
    });
    expect(marks()).toEqual([true, false]);
  });

  test('of both calls whose exchange was not answered', async () => {
    const locks = locksOf();
    store.lose('exchange');
    // They ask for different leases, so the first one cannot serve the second.
    await Promise.all([locks.withLock('k', { ttl: 3_000 }, () => undefined), locks.withLock('k', { ttl: 4_000 }, () => undefined)]);
    await until('the releases', () => store.releases.length >= 3);
    const [exchanged, ...later] = store.releases as [LossyStore['releases'][number], ...LossyStore['releases']];
    expect(exchanged.unanswered).toBe(false);
    expect(later.map(({ unanswered }) => unanswered)).toEqual(later.map(() => true));
    expect(new Set(later.map(({ id }) => id)).size).toBe(2);
  });

  test('where it is sent again, since it was not answered itself', async () => {
    store.lose('release', 'release');
    await locksOf().withLock('k', () => undefined);
    await until('both repetitions', () => store.releases.length === 3);
    expect(marks()).toEqual([false, true, true]);
  });
});

describe('a lock that was taken away after the last renewal, unnoticed', () => {
  const taken = async (kinds: readonly Lossy[]): Promise<unknown> =>
    locksOf().withLock('k', async () => {
      // An operator's message does not arrive.
      await MemoryLockStore.prototype.release.call(store, { ...(await holdOf()), unanswered: false });
      store.lose(...kinds);
      return 'result';
    });
  let held: HoldRecord | undefined;
  const holdOf = async (): Promise<HoldRecord> => held as HoldRecord;

  beforeEach(() => {
    const { acquire } = store;
    store.acquire = (hold, place) => {
      held = hold;
      return acquire.call(store, hold, place);
    };
  });

  test('is noticed by the release', async () => {
    await expect(taken([])).rejects.toBeInstanceOf(LockLostError);
  });

  test('is not noticed where that release gets no answer either: the call ends as released', async () => {
    await expect(taken(['release'])).resolves.toBe('result');
    await until('the repetition', () => store.releases.length === 2);
    expect(troubles.map(({ type }) => type)).toEqual(['releaseFailed']);
  });
});
