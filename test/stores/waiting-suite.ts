import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError } from '../../lib/core/words/errors';
import type { Lock } from '../../lib/core/words/lock';
import type { AcquireReply, LockStore, Turns } from '../../lib/core/seam/lock-store';
import type { LockService } from '../../lib/nest/lock.service';
import { makeLocks as makeService, type TestSettings } from '../support/make-locks';
import { Random, SEED } from '../support/random';
import { connectTo } from '../support/sends-again';
import type { StoreKind, StorePlace } from '../support/stores';
import { until } from '../support/until';

/**
 * When a place asks again that was not notified, in milliseconds; and how long a hand-over takes for which that was
 * needed.
 */
const [RECHECK_MS, UNNOTIFIED_MS] = [6_000, 5_000];
/** How many callers of one process may have the lock in a row while another one waits. */
const MOST_IN_A_ROW = 16;
/**
 * A turn that nobody claims for a second goes on to the next process, as does a turn whose grant no replica confirms in
 * three quarters of a second. Nobody enters meanwhile.
 */
const LAPSE_MS = 700;

/** How often an order is tried that holds where no turn lapses. */
const MOST_ROUNDS = 5;
/** Calls wait for as long as a busy machine needs. */
const SETTINGS = { wait: 45_000 };

function makeLocks(store: LockStore, settings: TestSettings = {}): LockService {
  return makeService(store, { ...SETTINGS, ...settings });
}

/** The order and the cost of waiting, between processes and within one. */
export function waitingSuite(place: () => StorePlace, { hasServers }: StoreKind): void {
  let locks: LockService;
  let other: LockService;
  let key: string;
  let order: string[];
  /** How often a turn may have lapsed: its process was stopped. */
  let lapses: number;
  let enteredAt: number;

  beforeEach(async () => {
    locks = makeLocks(await connectTo(place()));
    other = makeLocks(await connectTo(place()));
    key = `key ${randomUUID()}`;
    order = [];
    lapses = 0;
    enteredAt = Infinity;
  });

  const enter = (service: LockService, name: string, options = {}): Promise<void> => {
    // One that waits still when its test ends is not in the order of the next.
    const entered = order;
    return service.withLock(key, options, async () => {
      entered.push(name);
      lapses += Number(performance.now() - enteredAt > LAPSE_MS);
      enteredAt = performance.now();
      await sleep(2);
    });
  };

  /** The holder leaves, and the first turn begins. */
  const release = async (held: Lock): Promise<void> => {
    enteredAt = performance.now();
    await held.release();
  };

  const mostInARow = (): number => MOST_IN_A_ROW * (1 + lapses);

  /** Waits until as many processes are in the queue of the store. */
  const waitersAre = (count: number): Promise<void> =>
    until(`${count} processes wait`, async () => (await locks.operations.inspect(key))?.waiters.length === count);

  test('processes have their turn in the order in which they came', async () => {
    const services = [other, ...(await Promise.all([connectTo(place()), connectTo(place())])).map((store) => makeLocks(store))];
    let round = 0;
    do {
      [order, lapses] = [[], 0];
      const calls: Promise<void>[] = [];
      const held = await locks.acquire(key);
      for (const [at, service] of services.entries()) {
        calls.push(enter(service, `process ${at}`));
        await waitersAre(at + 1);
      }
      await release(held);
      await Promise.all(calls);
    } while (lapses > 0 && ++round < MOST_ROUNDS);
    expect(order).toEqual(['process 0', 'process 1', 'process 2']);
  });

  /** A service whose processes are notified of their turns, and would ask by themselves much later. */
  async function notified(): Promise<LockService> {
    const service = makeLocks(asksLate(await connectTo(place())));
    // A re-check of the store alone takes up to 300 ms, and a poll up to 500.
    await until('that it is notified', async () => (await handOver(service)) < 250);
    return service;
  }

  /** How long a waiter needs after the release by a holder in another process, in milliseconds. */
  async function handOver(waiter: LockService): Promise<number> {
    const own = `${key} of ${randomUUID()}`;
    const held = await locks.acquire(own);
    const call = waiter.withLock(own, () => performance.now());
    await until('the waiter queues', async () => (await locks.operations.inspect(own))?.waiters.length === 1);
    const releasedAt = performance.now();
    await held.release();
    return (await call) - releasedAt;
  }

  test('a waiter in another process is notified of its turn, and need not ask again', async () => {
    const waiter = await notified();
    for (let round = 0; round < 9; round++) {
      expect(await handOver(waiter)).toBeLessThan(UNNOTIFIED_MS);
    }
  });

  test('a process with many callers has the lock sixteen times in a row at most while another one waits', async () => {
    const held = await locks.acquire(key);
    const many = Array.from({ length: 40 }, () => enter(locks, 'many'));
    const single = enter(other, 'single');
    await until('the other process waits', async () => ((await locks.operations.inspect(key))?.waiters.length ?? 0) > 0);
    await release(held);
    await Promise.all([...many, single]);
    expect(order.indexOf('single')).toBeLessThanOrEqual(mostInARow());
    expect(order).toHaveLength(41);
  });

  test('two processes with many callers each take turns, and each serves its own first come first', async () => {
    const callers = (service: LockService, name: string): Promise<void>[] =>
      Array.from({ length: 40 }, (_, at) => enter(service, `${name}${at}`));
    const held = await locks.acquire(key);
    const calls = [...callers(locks, 'a'), ...callers(other, 'b')];
    await until('the other process waits', async () => ((await locks.operations.inspect(key))?.waiters.length ?? 0) > 0);
    await release(held);
    await Promise.all(calls);
    for (const name of ['a', 'b']) {
      const own = order.filter((entry) => entry.startsWith(name)).map((entry) => Number(entry.slice(1)));
      expect(own).toEqual(own.toSorted((first, second) => first - second));
    }
    const runs = order.join('').match(/(a\d+)+|(b\d+)+/g) ?? [];
    // The last run may be longer: nobody else waits any more.
    for (const run of runs.slice(0, -1)) {
      expect(run.match(/[ab]/g)?.length).toBeLessThanOrEqual(mostInARow());
    }
    // A turn that lapsed makes one run of three.
    expect(runs.length).toBeGreaterThanOrEqual(5 - 2 * lapses);
  });

  test('a caller that gives up leaves its place to the next of its process, or leaves the queue', async () => {
    const held = await locks.acquire(key);
    const impatient = enter(other, 'impatient', { wait: 60 });
    const patient = enter(other, 'patient');
    const refused = expect(impatient).rejects.toBeInstanceOf(LockNotAcquiredError);
    await waitersAre(1);
    await refused;
    expect((await locks.operations.inspect(key))?.waiters).toHaveLength(1);
    await held.release();
    await patient;
    expect(order).toEqual(['patient']);
    const again = await locks.acquire(key);
    await expect(enter(other, 'alone', { wait: 30 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await waitersAre(0);
    await again.release();
  });

  test('an aborted waiter leaves the queue at once, and the next is served', async () => {
    const held = await locks.acquire(key);
    const controller = new AbortController();
    const aborted = enter(other, 'aborted', { signal: controller.signal });
    await waitersAre(1);
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ reason: 'aborted' });
    await waitersAre(0);
    await held.release();
    await enter(locks, 'next', { wait: 0 });
  });

  test('a waiter that is shut down leaves the queue', async () => {
    const held = await locks.acquire(key);
    const store = await connectTo(place());
    // The memory store is shared, and stays open.
    const close = store.close.bind(store);
    store.close = async () => undefined;
    const third = makeLocks(store);
    const waiting = expect(enter(third, 'waiting')).rejects.toMatchObject({ reason: 'shutdown' });
    await waitersAre(1);
    await third.shutdown();
    store.close = close;
    await waiting;
    // A shutdown waits for a second for the store to say so.
    await waitersAre(0);
    await held.release();
  });

  test('a wake-up that comes while the waiter gives up is passed on', async () => {
    const [first, second] = [await notified(), await notified()];
    let slow = 0;
    for (let round = 0; round < 30; round++) {
      const held = await locks.acquire(key);
      const leaving = enter(first, 'leaving', { wait: 15 }).catch(() => undefined);
      await sleep(5);
      const staying = enter(second, 'staying');
      await sleep(5 + round / 3);
      const releasedAt = performance.now();
      await held.release();
      await staying;
      slow += Number(performance.now() - releasedAt > UNNOTIFIED_MS);
      await leaving;
    }
    // The turn of one that was stopped while it gave up may lapse, which its successor finds out when it asks again.
    expect(slow).toBeLessThan(4);
  }, 120_000);

  test('no wake-up is lost in thousands of hand-overs with random aborts', async () => {
    const services = [await notified(), await notified(), await notified()];
    const { handOvers = 10_000 } = place();
    const run = { handOvers, entered: 0 };
    const random = new Random(SEED);
    let slow = 0;
    let leftAt = 0;
    const caller = async (service: LockService, number: number): Promise<void> => {
      for (let round = 0; run.entered < run.handOvers; round++) {
        const controller = new AbortController();
        const aborts = (round + number) % 5 === 0;
        const timer = aborts ? setTimeout(() => controller.abort(), random.between(0, 3)) : undefined;
        await service
          .withLock(key, { wait: 60_000, signal: controller.signal }, () => {
            slow += Number(leftAt > 0 && performance.now() - leftAt > UNNOTIFIED_MS);
            run.entered++;
            leftAt = performance.now();
          })
          .catch((error: unknown) => {
            if (!(error instanceof LockNotAcquiredError)) {
              throw error;
            }
          });
        clearTimeout(timer);
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, number) => caller(services[number % 3] as LockService, number)));
    expect(run.entered).toBeGreaterThanOrEqual(run.handOvers);
    expect(slow).toBeLessThan(4);
  }, 300_000);

  test('5,000 callers of one process wait for one key, and all are served', async () => {
    // Longer than the event loop may be busy with so many calls.
    const held = await locks.acquire(key, { ttl: 60_000 });
    const calls = Array.from({ length: 5_000 }, (_, at) => locks.withLock(key, { wait: 100_000 }, () => order.push(String(at))));
    await until('that all wait', async () => (await locks.operations.inspect(key).catch(() => null))?.waitingHere === 5_000);
    await held.release();
    await Promise.all(calls);
    expect(order).toEqual(Array.from({ length: 5_000 }, (_, at) => String(at)));
  }, 240_000);

  test('where too many wait, newcomers are refused, and nobody who waits already', async () => {
    const few = makeLocks(await connectTo(place()), { maxWaiters: { perProcess: 20 } });
    const held = await few.acquire(key);
    const early = Array.from({ length: 20 }, (_, at) => enter(few, `early ${at}`));
    const elsewhere = enter(other, 'elsewhere');
    await until('the other process waits', async () => ((await locks.operations.inspect(key))?.waiters.length ?? 0) > 0);
    const newcomers = setInterval(() => {
      enter(few, 'newcomer').catch(() => undefined);
    }, 1);
    await release(held);
    await Promise.all([...early, elsewhere]).finally(() => clearInterval(newcomers));
    expect(order.filter((name) => name.startsWith('early'))).toEqual(early.map((_, at) => `early ${at}`));
    expect(order.indexOf('elsewhere')).toBeLessThanOrEqual(mostInARow());
  });

  test('whoever gives up behind a caller that waits for another process is told of its holder', async () => {
    const held = await locks.acquire(key);
    const first = enter(other, 'first');
    await waitersAre(1);
    const behind = enter(other, 'behind', { wait: 200 });
    await expect(behind).rejects.toMatchObject({ reason: 'busy', holder: { by: expect.stringContaining(`pid ${process.pid}`) } });
    await held.release();
    await first;
  });

  test('many keys with one waiter each are all served', async () => {
    const { manyKeys = 1_000 } = place();
    const keys = Array.from({ length: manyKeys }, (_, at) => `${key} ${at}`);
    const held = await Promise.all(keys.map((each) => locks.acquire(each, { ttl: 60_000, wait: 100_000 })));
    const calls = keys.map((each) => other.withLock(each, { ttl: 60_000, wait: 100_000 }, () => order.push(each)));
    await sleep(500);
    await Promise.all(held.map((lock) => lock.release()));
    await Promise.all(calls);
    expect(order).toHaveLength(manyKeys);
  }, 240_000);

  // The line of one process is the same on every store.
  if (!hasServers) {
    test('aborting a waiter costs the same however many wait', async () => {
      const held = await locks.acquire(key, { ttl: 60_000 });
      const abortEach = async (count: number): Promise<number> => {
        const controllers = Array.from({ length: count }, () => new AbortController());
        const calls = controllers.map(({ signal }) =>
          locks.withLock(key, { wait: 30_000, signal }, () => undefined).catch(() => undefined),
        );
        await sleep(20);
        const before = processorMs();
        for (const controller of controllers) {
          controller.abort();
        }
        const tookMs = processorMs() - before;
        await Promise.all(calls);
        return tookMs / count;
      };
      await abortEach(200);
      let [few, many] = [Infinity, Infinity];
      // A search through the line would make it ten times as much. Other work of the thread, such as collecting
      // garbage, makes it more in some rounds.
      const isSame = (): boolean => many < 4 * few + 0.01;
      for (let round = 0; round < 2 || (round < 8 && !isSame()); round++) {
        few = Math.min(few, await abortEach(200));
        many = Math.min(many, await abortEach(2_000));
      }
      expect({ few, many, isSame: isSame() }).toMatchObject({ isSame: true });
      await held.release();
    }, 120_000);
  }
}

/**
 * For how long this thread has been on a processor, in milliseconds. The time of the clock is longer where the process
 * is stopped, and the time of the whole process where its collector of garbage waits for a processor. The kernel counts
 * up to the last time that the thread left its processor, so the thread leaves it first: otherwise a few milliseconds
 * may be missing.
 */
function processorMs(): number {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** A wrapper of the store; its places ask again late, so that a wake-up which is lost shows. */
function asksLate(store: LockStore): LockStore {
  const late = (reply: AcquireReply): AcquireReply =>
    reply.fence === undefined && reply.recheckMs ? { ...reply, recheckMs: RECHECK_MS } : reply;
  const turns = store.turns as Turns;
  return {
    expires: store.expires,
    keepsLimits: store.keepsLimits === true,
    ...(store.reservesFences && { reservesFences: true }),
    ...(store.shared && { shared: true }),
    ...(store.permits && { permits: true }),
    tickets: store.tickets,
    operator: store.operator,
    turns: {
      onTurn: (listener, ends) => turns.onTurn(listener, ends),
      leave: (key, name) => turns.leave(key, name),
      async exchange(hold, next, place, mayOvertake) {
        const { released, reply } = await turns.exchange(hold, next, place, mayOvertake);
        return { released, reply: Promise.resolve(reply).then(late) };
      },
    },
    acquire: async (hold, place) => late(await store.acquire(hold, place)),
    renew: (holds) => store.renew(holds),
    release: (hold) => store.release(hold),
    close: () => store.close(),
  };
}
