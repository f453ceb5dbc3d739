import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { watchRejections } from '../support/watch-rejections';
import { makeLocks } from '../support/make-locks';
import { acquired, newHold, QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';
import { saying } from '../support/saying';

const PAIRS = [0, 1, 2, 3].flatMap((first) => [1, 2, 3, 4].filter((second) => second > first).map((second) => [first, second]));
/** For one command, and one more that settles or withdraws, on a machine that stands still for seconds. */
const BOUND_MS = 4_000;
/** The limit of a command where a majority is away. */
const LIMIT_MS = 500;
/** The limit of a command where a majority is there: who waits for the others takes longer than the bound. */
const MORE_THAN_BOUND_MS = 10_000;

interface Fault {
  readonly strike: (place: number) => unknown;
  readonly heal: (place: number) => unknown;
}

let stores: QuorumStores;
let store: QuorumLockStore;
let other: QuorumLockStore;
let rejections: unknown[];
let endWatch: () => void;

beforeEach(async () => {
  rejections = [];
  endWatch = watchRejections((reason) => rejections.push(reason));
  stores = new QuorumStores(await RedisQuorum.start(), { longestLease: '60s' });
  store = await stores.open();
  other = await stores.open();
});
afterEach(async () => {
  await stores.stop();
  endWatch();
  expect(rejections).toEqual([]);
});

const KILLED: Fault = { strike: (place) => stores.quorum.at(place).kill(), heal: (place) => stores.quorum.at(place).start() };
const STOPPED: Fault = { strike: (place) => stores.quorum.at(place).pause(), heal: (place) => stores.quorum.at(place).resume() };
const CUT_OFF: Fault = {
  strike: (place) => (stores.quorum.proxy(place).mode = 'blackhole'),
  heal: (place) => {
    stores.quorum.proxy(place).mode = 'pass';
    stores.quorum.proxy(place).cut();
  },
};
const UNREACHABLE: Fault = {
  strike: (place) => (stores.quorum.proxy(place).mode = 'refuse'),
  heal: (place) => (stores.quorum.proxy(place).mode = 'pass'),
};

/** All that is done with a store, while some of its servers are away; the last fence. */
async function useAll(): Promise<number> {
  const key = `key ${randomUUID()}`;
  const hold = await acquired(store, key, 60_000, MORE_THAN_BOUND_MS);
  expect((await other.acquire(newHold(key, 60_000, MORE_THAN_BOUND_MS))).fence).toBeUndefined();
  const joined = { ...hold, id: randomUUID() };
  expect(await other.join(joined)).toBe(true);
  expect(await store.renew([hold])).toEqual([true]);
  expect(await other.inspect(key)).toMatchObject({ fence: hold.fence, holds: 2, by: 'tester' });
  expect(await other.release(joined)).toBe(true);
  expect(await store.release(hold)).toBe(true);
  expect(await store.release(hold)).toBe(true);
  expect(await store.renew([hold])).toEqual([false]);
  const next = await acquired(other, key, 60_000, MORE_THAN_BOUND_MS);
  expect(next.fence).toBeGreaterThan(hold.fence);
  expect(await store.forceRelease(key, next.fence)).toBe(true);
  expect(await store.inspect(key)).toBeNull();
  return next.fence;
}

describe('any two of five servers away, a minority,', () => {
  test.each([
    ['stopped', STOPPED],
    ['unreachable', UNREACHABLE],
  ])(
    'that are %s change nothing, and are used again when they are back',
    async (_, { strike, heal }) => {
      let last = 0;
      for (const pair of PAIRS) {
        pair.forEach((place) => strike(place));
        const startedAt = performance.now();
        const fence = await useAll();
        expect(performance.now() - startedAt).toBeLessThan(BOUND_MS);
        expect(fence).toBeGreaterThan(last);
        last = fence;
        pair.forEach((place) => heal(place));
        await Promise.all([stores.allVote(store), stores.allVote(other)]);
      }
    },
    60_000,
  );

  test.each([
    ['killed', KILLED, [0, 1]],
    ['killed', KILLED, [2, 4]],
    ['cut off', CUT_OFF, [1, 3]],
    ['cut off', CUT_OFF, [0, 4]],
  ] as const)('that are %s change nothing', async (_, { strike }, pair) => {
    await Promise.all(pair.map((place) => strike(place)));
    for (let round = 0; round < 3; round++) {
      await useAll();
    }
  });

  test.each([
    ['killed', KILLED],
    ['stopped', STOPPED],
  ])('in the midst of a section (%s) lose no lock', async (_, { strike }) => {
    const troubles: string[] = [];
    const locks = makeLocks(store, { onTrouble: ({ type }) => troubles.push(type) });
    await locks.withLock('k', { ttl: 3_000 }, async (lock) => {
      await Promise.all([3, 4].map((place) => strike(place)));
      await sleep(3_500);
      expect(lock.isHeld()).toBe(true);
    });
    expect(troubles).toEqual([]);
  });

  test('that have lost a lock make no difference to its holder, and a third one ends it', async () => {
    const held = await acquired(store, 'k', 50_000);
    const isEverywhere = async (): Promise<boolean> => (await stores.quorum.fences('k')).every((fence) => fence === String(held.fence));
    await until('five votes', isEverywhere);
    const lose = (place: number): Promise<unknown> => stores.quorum.at(place).client.del('lock:lock:{k}');
    for (const pair of PAIRS) {
      await Promise.all(pair.map((place) => lose(place)));
      expect(await store.inspect('k')).toMatchObject({ fence: held.fence, holds: 1 });
      expect((await other.acquire(newHold('k'))).fence).toBeUndefined();
      await until('five votes again', async () => {
        expect(await store.renew([held])).toEqual([true]);
        return isEverywhere();
      });
    }
    const released = newHold('released');
    const { fence = 0 } = await store.acquire(released);
    await until('five votes', async () => (await stores.quorum.fences('released')).every((stored) => stored === String(fence)));
    await Promise.all([0, 3].map((place) => stores.quorum.at(place).client.del('lock:lock:{released}')));
    expect(await store.release(released)).toBe(true);
    await until('the loss', async () => {
      await Promise.all([1, 2, 4].map((place) => lose(place)));
      return (await store.renew([held]))[0] === false;
    });
    for (let round = 0; round < 5; round++) {
      expect(await store.renew([held])).toEqual([false]);
    }
    expect(await store.inspect('k')).toBeNull();
    expect(await store.release(held)).toBe(false);
  });
});

describe('a third server away', () => {
  test.each([
    ['killed', KILLED],
    ['stopped', STOPPED],
    ['cut off', CUT_OFF],
  ])('(%s) makes locks unavailable in bounded time', async (_, { strike }) => {
    const held = { ...(await acquired(store, 'held', 50_000)), limitMs: LIMIT_MS };
    await until('five votes', async () => (await stores.quorum.fences('held')).every((fence) => fence === String(held.fence)));
    await Promise.all([0, 1].map((place) => strike(place)));
    await strike(2);
    const commands = [
      () => store.acquire(newHold('k', 50_000, LIMIT_MS)),
      () => store.join({ ...held, id: randomUUID() }),
      () => store.renew([held]),
      () => store.inspect('held'),
      () => store.forceRelease('held', held.fence),
      () => store.release(newHold('k', 50_000, LIMIT_MS)),
    ];
    for (const command of commands) {
      const startedAt = performance.now();
      const error = await command().then(
        (answer) => Promise.reject(new Error(`answered ${JSON.stringify(answer)}`)),
        (failure: LockStoreError) => failure,
      );
      expect(performance.now() - startedAt).toBeLessThan(BOUND_MS);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error.detail).toMatch(
        /3 of 5 servers gave no answer that counts, and no more than 2 may be missing\. .*server 3 of 5 \(127\.0\.0\.1:\d+\): \w/,
      );
    }
  });

  test('is over as soon as it is back', async () => {
    const held = await acquired(store, 'held', 50_000);
    await until('five votes', async () => (await stores.quorum.fences('held')).every((fence) => fence === String(held.fence)));
    [0, 1, 2].forEach((place) => STOPPED.strike(place));
    await expect(store.renew([{ ...held, limitMs: LIMIT_MS }])).rejects.toBeInstanceOf(LockStoreError);
    const waiting = makeLocks(other).withLock('k', { wait: 10_000 }, () => 'ran');
    await sleep(300);
    STOPPED.heal(1);
    expect(await waiting).toBe('ran');
    await until('a renewal', async () => (await store.renew([held]).catch(() => []))[0] === true);
    expect((await other.acquire(newHold('held'))).fence).toBeUndefined();
    expect(await store.release(held)).toBe(true);
  });

  test('that was there for the acquire leaves no vote for longer than a moment when it is back', async () => {
    [2, 3, 4].forEach((place) => STOPPED.strike(place));
    await expect(store.acquire(newHold('k', 50_000, LIMIT_MS))).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    [2, 3, 4].forEach((place) => STOPPED.heal(place));
    await until('no vote', async () => (await stores.quorum.fences('k')).every((fence) => fence === null));
    await stores.allVote(store);
    await acquired(other, 'k');
  });
});

test('a server that takes longer than the time limit of a command is not waited for', async () => {
  stores.quorum.proxies.forEach((proxy) => (proxy.latencyMs = 400));
  await expect(store.acquire(newHold('short', 5_000, 80))).rejects.toThrow(saying(/no reply within (80|[1-7]?\d) ms/));
  await until('a grant', async () => (await acquired(store, 'long').catch(() => undefined)) !== undefined);
});

test('an answer counts as long as it comes within the time limit of the operation', async () => {
  stores.quorum.proxies.forEach((proxy) => (proxy.latencyMs = 600));
  const hold = await acquired(store, 'slow');
  expect(await store.renew([hold])).toEqual([true]);
  expect(await store.release(hold)).toBe(true);
});
