import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { AcquireReply, HoldRecord, LockStore, Place, TurnListener } from '../../../lib/core/seam/lock-store';
import { LockStoreError } from '../../../lib/core/words/errors';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';

/** Writes down what it is asked for, and loses what a test wants to be lost. */
class WatchedStore extends MemoryLockStore {
  /** Each attempt to acquire: when it was sent, and at which place. */
  readonly attempts: { readonly hold: HoldRecord; readonly at: number; readonly place: string | undefined }[] = [];
  readonly exchanges: { readonly next: HoldRecord; readonly mayOvertake: boolean }[] = [];
  readonly left: string[] = [];
  readonly listeners: TurnListener[] = [];
  /** Whether its messages of turns are lost, and what gives a place up. */
  losesTurns = false;
  losesLeaves = false;
  isAway = false;

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.attempts.push({ hold, at: performance.now(), place: place?.name });
    if (this.isAway) {
      throw new LockStoreError(`Lock "${hold.key}": no answer`, hold.key, { unknown: false });
    }
    return super.acquire(hold, place);
  }

  override async exchange(...exchanged: Parameters<MemoryLockStore['exchange']>): ReturnType<MemoryLockStore['exchange']> {
    this.exchanges.push({ next: exchanged[1], mayOvertake: exchanged[3] });
    return super.exchange(...exchanged);
  }

  override async leave(key: string, name: string): Promise<void> {
    this.left.push(name);
    if (!this.losesLeaves) {
      await super.leave(key, name);
    }
  }

  override onTurn(listener: TurnListener, end?: AbortSignal): void {
    this.listeners.push(listener);
    super.onTurn({ turn: (...turn) => this.losesTurns || listener.turn(...turn), recheck: () => listener.recheck() }, end);
  }

  /** As after a reconnect: messages may have been lost. */
  reconnect(): void {
    this.listeners.forEach((listener) => listener.recheck());
  }

  attemptsOn(key: string): number {
    return this.attempts.filter(({ hold }) => hold.key === key).length;
  }
}

playTime();

let store: WatchedStore;
let mine: LockService;
let others: LockService;

beforeEach(() => {
  store = new WatchedStore();
  mine = makeLocks(store);
  others = makeLocks(store);
});
afterEach(() => store.close());

const failureOf = (call: Promise<unknown>): Promise<unknown> => call.then(() => 'entered', (error: unknown) => error); // prettier-ignore

describe('a cycle that other processes tell of', () => {
  /**
   * A call of `waiting` inside `outer`, which waits for `inner`. Resolves to how it ends when it is told of a cycle in
   * which it got its lock last, so that it has to give way.
   */
  async function told(waiting: LockService, enter: <T>(body: (fence: number) => Promise<T>) => Promise<T>): Promise<unknown> {
    const inner = await others.acquire('inner');
    const waits: string[] = [];
    store.onMessage((text) => {
      const { kind, key, origin, path } = JSON.parse(text) as { kind: string; key: string; origin: string; path: { wait: string }[] };
      // One that another call has begun has come by way of this one.
      waits.push(...(kind === 'probe' && key === 'inner' ? [path.at(-1)?.wait ?? origin] : []));
    });
    return enter(async (fence) => {
      const call = failureOf(waiting.withLock('inner', { wait: '1m' }, () => undefined));
      await until('a probe', () => waits.length > 0);
      const [wait] = waits;
      const step = { process: 'p', site: 'x', waitedMs: 1, heldMs: 1 };
      const own = { ...step, wait, waitsFor: 'inner', holds: 'outer', fence };
      const next = { ...step, wait: randomUUID(), waitsFor: 'outer', holds: 'inner', fence: inner.fence };
      const probe = { kind: 'probe', id: randomUUID(), lap: 3, origin: wait, key: 'outer', fence, path: [], cycle: [own, next] };
      await store.send(JSON.stringify(probe));
      await sleep(20);
      await inner.release();
      return call;
    });
  }

  const searching = (): LockService => makeLocks(store, { deadlocksAfterMs: 100, wait: 60_000 });

  test('ends no wait of a call whose own lock nobody wants', async () => {
    const locks = searching();
    expect(await told(locks, (body) => locks.withLock('outer', ({ fence }) => body(fence)))).toBe('entered');
  });

  test('ends the wait of a call whose lock another call of its process waits for', async () => {
    const locks = searching();
    let behind: Promise<unknown> | undefined;
    const end = await told(locks, (body) =>
      locks.withLock('outer', ({ fence }) => {
        behind = failureOf(locks.withLock('outer', { reentry: 'never' }, () => undefined));
        return body(fence);
      }),
    );
    expect(end).toMatchObject({ reason: 'cycle' });
    expect(await behind).toBe('entered');
  });

  test('ends the wait of a call whose lock another call waits to enter that runs beside it in the same lock', async () => {
    const locks = searching();
    let beside: Promise<unknown> | undefined;
    const end = await told(locks, (body) =>
      locks.withLock('outer', async () => {
        const first = locks.withLock('outer', ({ fence }) => body(fence));
        beside = failureOf(locks.withLock('outer', () => undefined));
        return first;
      }),
    );
    expect(end).toMatchObject({ reason: 'cycle' });
    expect(await beside).toBe('entered');
  });

  test('ends the wait of a call that is in a lock of another process by a ticket, and that a third one waits for', async () => {
    const locks = searching();
    let third: Promise<unknown> | undefined;
    const end = await told(locks, async (body) => {
      const host = await others.acquire('outer');
      third = failureOf(makeLocks(store).withLock('outer', () => undefined));
      const ended = await locks.withLock('outer', { ticket: host.makeTicket() }, ({ fence }) => body(fence));
      await host.release();
      return ended;
    });
    expect(end).toMatchObject({ reason: 'cycle' });
    expect(await third).toBe('entered');
  });
});

describe('a turn', () => {
  test('that comes to a place which a call has given up goes on to the next process at once, though the giving up was lost', async () => {
    const held = await makeLocks(store).acquire('k');
    store.losesLeaves = true;
    const gaveUp = failureOf(mine.withLock('k', { wait: 100 }, () => undefined));
    await sleep(10);
    const waiting = others.withLock('k', () => performance.now());
    expect(await gaveUp).toMatchObject({ reason: 'busy' });
    store.losesLeaves = false;
    await sleep(100);
    const releasedAt = performance.now();
    await held.release();
    expect((await waiting) - releasedAt).toBeLessThan(50);
    const [mineAt] = store.attempts.flatMap(({ place }, index) => (index === 1 ? [place] : []));
    expect(store.left).toEqual([mineAt, mineAt]);
  });

  test('that comes while the process asks is taken as soon as that attempt is answered', async () => {
    const held = await others.acquire('k');
    const acquire = store.acquire.bind(store);
    store.acquire = async (...asked) => {
      const busy = await acquire(...asked);
      store.acquire = acquire;
      await held.release();
      await sleep(100);
      return busy;
    };
    const askedAt = performance.now();
    expect(await mine.withLock('k', () => performance.now())).toBe(askedAt + 100);
  });

  test('of another process is left to it', async () => {
    const held = await makeLocks(store).acquire('k');
    const order: string[] = [];
    const calls = [others, makeLocks(store)].map((locks, at) => locks.withLock('k', () => void order.push(`process ${at}`)));
    await sleep(10);
    await held.release();
    await Promise.all(calls);
    expect(order).toEqual(['process 0', 'process 1']);
    expect(store.left).toEqual([]);
  });
});

describe('after messages may have been lost', () => {
  test('a process that queues asks the store again at once, for every key', async () => {
    const held = await others.acquire(['a', 'b']);
    const waiting = ['a', 'b'].map((key) => mine.withLock(key, () => performance.now()));
    await sleep(100);
    store.losesTurns = true;
    await held.release();
    await sleep(100);
    const asked = store.attempts.length;
    const reconnectedAt = performance.now();
    store.reconnect();
    expect(await Promise.all(waiting)).toEqual([reconnectedAt, reconnectedAt]);
    expect(store.attempts).toHaveLength(asked + 2);
  });

  test('a lock that is held is not asked for, and neither is one whose grant came too late to be used, before its time', async () => {
    let jump = 0;
    const clock = { monotonic: () => performance.now(), wall: () => Date.now() + jump };
    const slept = makeLocks(store, { clock });
    const held = await slept.acquire('held', { ttl: '60s' });
    // The machine sleeps while the grant is on its way.
    const acquire = store.acquire.bind(store);
    store.acquire = (...asked) => {
      jump += 6_000;
      store.acquire = acquire;
      return acquire(...asked);
    };
    const call = slept.withLock('late', () => performance.now());
    await sleep(10);
    const asked = store.attempts.length;
    store.reconnect();
    await sleep(20);
    expect(store.attempts).toHaveLength(asked);
    await call;
    const [first, second, ...more] = store.attempts.filter(({ hold }) => hold.key === 'late');
    expect(more).toEqual([]);
    // The store has used up the place with its grant, and a name is used once.
    expect(second?.place).not.toBe(first?.place);
    await held.release();
  });
});

describe('in a store that keeps no queues', () => {
  const withoutTurns = (): WatchedStore => Object.assign(store, { turns: undefined });

  test('the calls of a process have a lock one after the other for less than 50 ms, and then it is free for others', async () => {
    const locks = makeLocks(withoutTurns());
    const free: number[] = [];
    const release = store.release.bind(store);
    store.release = (hold) => {
      free.push(performance.now());
      return release(hold);
    };
    const begun = performance.now();
    // The first has the lock alone; the others come while it runs.
    await Promise.all([5, 25, 25, 25, 10, 10, 10].map((ms) => locks.withLock('k', () => sleep(ms))));
    expect(free.map((at) => at - begun)).toEqual([5, 55, 110]);
  });
});

test('a store that reserves no fences is asked for one by each call', async () => {
  const locks = makeLocks(Object.assign(store, { reservesFences: false }) as LockStore);
  const fences = await Promise.all(
    [1, 2, 3, 4].map(() =>
      locks.withLock('k', async (lock) => {
        await sleep(5);
        return lock.fence;
      }),
    ),
  );
  expect(new Set(fences).size).toBe(4);
  expect(store.attempts.map(({ hold }) => hold.fences)).toEqual([1]);
  expect(store.exchanges.map(({ next }) => next.fences)).toEqual([1, 1, 1]);
});

describe('after hundreds of keys', () => {
  test('the calls that wait for one still wait in one line, and nobody asks the store beside them', async () => {
    let end!: () => void;
    const first = mine.withLock('k', () => new Promise<void>((resolve) => (end = resolve)));
    await sleep(1);
    const waiting = mine.withLock('k', () => 'second');
    for (let at = 0; at < 600; at++) {
      await mine.withLock(`other ${at}`, () => undefined);
    }
    const last = mine.withLock('k', () => 'third');
    await sleep(10);
    expect(store.attemptsOn('k')).toBe(1);
    expect(await mine.operations.inspect('k')).toMatchObject({ waitingHere: 2, waiters: [] });
    end();
    expect(await Promise.all([first, waiting, last])).toEqual([undefined, 'second', 'third']);
  });

  test('those that no call wants any more are not kept', async () => {
    const locks = makeLocks(new MemoryLockStore());
    const lockEach = async (name: string, keys: number): Promise<void> => {
      for (let at = 0; at < keys; at++) {
        await locks.withLock(`${name} ${at} ${'x'.repeat(1_000)}`, () => undefined);
      }
    };
    await lockEach('before', 300);
    const before = heapUsed();
    await lockEach('after', 1_500);
    // The keys alone would be 1.5 MB.
    expect(heapUsed() - before).toBeLessThan(750_000);
  });
});

describe('the event of a call that has waited', () => {
  let events: LockEvent[];
  const listen = (event: unknown): void => void events.push(event as LockEvent);

  beforeEach(() => {
    events = [];
    subscribe(LOCK_CHANNEL, listen);
  });
  afterEach(() => void unsubscribe(LOCK_CHANNEL, listen));

  const holders = (): (string | undefined)[] => events.flatMap((event) => (event.type === 'waited' ? [event.holder?.by] : []));

  test('names the call of its process that it has waited for', async () => {
    await Promise.all(['first', 'second', 'third'].map((by) => mine.withLock('k', { by }, () => sleep(5))));
    expect(holders()).toEqual([expect.stringMatching(/first$/), expect.stringMatching(/second$/)]);
  });

  test('names the call that still had the lock when it gave up', async () => {
    const first = mine.withLock('k', { by: 'first' }, () => sleep(500));
    await failureOf(mine.withLock('k', { by: 'second', wait: 100 }, () => undefined));
    await first;
    expect(holders()).toEqual([expect.stringMatching(/first$/)]);
  });
});

describe('a call behind another one of its process', () => {
  test('that ends its wait while the store fails the other one gets the failure of the store', async () => {
    store.isAway = true;
    const first = failureOf(mine.withLock('k', { wait: 2_000 }, () => undefined));
    const second = await failureOf(mine.withLock('k', { wait: 500 }, () => undefined));
    expect(second).toMatchObject({ code: 'LOCK_STORE', detail: 'Lock "k": no answer' });
    store.isAway = false;
    expect(await first).toBe('entered');
  });

  test('goes on with the answer that the other one had when that gives up, at the same place, and asks again when it was to', async () => {
    const held = await others.acquire('k');
    store.losesTurns = true;
    const startedAt = performance.now();
    const calls = [500, 1_500, 4_000].map((wait) => failureOf(mine.withLock('k', { wait }, () => undefined)));
    await sleep(1_900);
    await held.release();
    expect(await Promise.all(calls)).toMatchObject([{ reason: 'busy' }, { reason: 'busy' }, 'entered']);
    // The store said that it is to be asked again in 2,000 ms.
    const asked = store.attempts.slice(1);
    expect(asked.map(({ at }) => at - startedAt)).toEqual([0, 2_000]);
    expect(new Set(asked.map(({ place }) => place)).size).toBe(1);
  });

  test('asks at once when the other one gives up, where the store has failed that', async () => {
    store.isAway = true;
    const controller = new AbortController();
    const first = failureOf(mine.withLock('k', { signal: controller.signal }, () => undefined));
    const second = mine.withLock('k', () => performance.now());
    await sleep(10);
    store.isAway = false;
    controller.abort();
    const abortedAt = performance.now();
    expect(await first).toMatchObject({ reason: 'aborted' });
    expect(await second).toBe(abortedAt);
  });

  test('asks at another place where the other one was granted the lock at its own, and had given up', async () => {
    const held = await others.acquire('k');
    const controller = new AbortController();
    const first = failureOf(mine.withLock('k', { signal: controller.signal }, () => undefined));
    const second = mine.withLock('k', () => 'entered');
    await sleep(10);
    const acquire = store.acquire.bind(store);
    store.acquire = (...asked) => {
      // The grant is on its way.
      const answer = acquire(...asked);
      controller.abort();
      return answer;
    };
    await held.release();
    expect(await first).toMatchObject({ reason: 'aborted' });
    expect(await second).toBe('entered');
    const [, firstAsked, granted, secondAsked] = store.attempts.map(({ place }) => place);
    expect(granted).toBe(firstAsked);
    expect(secondAsked).not.toBe(firstAsked);
  });

  test('that queues with the release of the other one waits for its turn, and asks no more before that', async () => {
    // Leases that are not renewed do not serve each other: each is exchanged for the next.
    const options = { renew: false, ttl: '5s' };
    const calls = Array.from({ length: 18 }, (_, at) => mine.withLock('k', options, () => sleep(at === 0 ? 20 : 1)));
    await sleep(5);
    const other = others.withLock('k', () => sleep(500));
    await Promise.all([...calls, other]);
    expect(store.exchanges.filter(({ mayOvertake }) => !mayOvertake)).toHaveLength(1);
    // The first call of each process, and the turns of both.
    expect(store.attemptsOn('k')).toBe(4);
  });
});

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
