import 'reflect-metadata';
import { jest } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { acquired, newHold, QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { RedisServer } from '../support/redis-server';
import { ServerClock } from '../support/server-clock';
import { until } from '../support/until';

const HOUR_MS = 3_600_000;
const COUNTER = 'lock:fence:{0}';
const now = Date.now.bind(Date);

let stores: QuorumStores;
afterEach(async () => {
  jest.restoreAllMocks();
  await stores.stop();
});

const cutOff = (places: readonly number[]): void => places.forEach((place) => (stores.quorum.proxy(place).mode = 'refuse'));
const letIn = (places: readonly number[]): void => places.forEach((place) => (stores.quorum.proxy(place).mode = 'pass'));

/** The clocks of the process that acquires stand so far from the machine's. */
function setClientClock(aheadMs: number): void {
  jest.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
}

describe('fences', () => {
  let store: QuorumLockStore;
  beforeEach(async () => {
    stores = new QuorumStores(await RedisQuorum.start());
    store = await stores.open();
  });

  const setCounters = (counters: readonly number[]): Promise<unknown> =>
    Promise.all(counters.map((counter, place) => stores.quorum.at(place).client.set(COUNTER, counter)));

  test('are reserved for as many calls as the grant may serve, at servers that gave another one too', async () => {
    await setCounters([8e15 + 10, 8e15 + 50, 8e15 + 30, 8e15 + 20, 8e15 + 40]);
    const { fence = 0 } = await store.acquire({ ...newHold('k'), fences: 16 });
    await until('all have it', async () => (await stores.quorum.fences('k')).every((stored) => stored === String(fence)));
    const counters = await Promise.all(stores.quorum.servers.map(({ client }) => client.get(COUNTER)));
    expect(counters.filter((counter) => Number(counter) < fence + 15)).toEqual([]);
    // Another process proposes by its own clock, and has not seen these.
    const other = await acquired(await stores.open(), 'other');
    expect(other.fence).toBeGreaterThanOrEqual(fence + 16);
  });

  test('are stored by a majority when the lock is granted, and by all soon, whatever each server would have given', async () => {
    await setCounters([8e15 + 10, 8e15 + 50, 8e15 + 30, 8e15 + 20, 8e15 + 40]);
    const hold = await acquired(store, 'k');
    const stored = await stores.quorum.fences('k');
    expect(stored.filter((fence) => fence === String(hold.fence)).length).toBeGreaterThanOrEqual(3);
    const counters = await Promise.all(stores.quorum.servers.map(({ client }) => client.get(COUNTER)));
    expect(counters.filter((counter) => Number(counter) >= hold.fence).length).toBeGreaterThanOrEqual(3);
    expect(hold.fence).toBeGreaterThan(8e15 + 30);
    await until('the fence everywhere', async () => (await stores.quorum.fences('k')).every((fence) => fence === String(hold.fence)));
    expect(await store.renew([hold])).toEqual([true]);
  });

  test('that no number can count any more are refused, and no counter moves', async () => {
    const last = 9007199254740991;
    await setCounters([last, last, last, last, last]);
    await expect(store.acquire(newHold('k'))).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      detail: expect.stringMatching(/would be above 9007199254740991.*delete the keys <prefix>:fence:\*/) as string,
    });
    const counters = await Promise.all(stores.quorum.servers.map(({ client }) => client.get(COUNTER)));
    expect(counters).toEqual(counters.map(() => String(last)));
  });

  test('rise where two grants have one server in common, and that one had the lower number', async () => {
    await setCounters([8e15 + 1_000, 8e15 + 500, 8e15, 8e15, 8e15]);
    cutOff([3, 4]);
    const first = await acquired(store, 'k');
    expect(await store.release(first)).toBe(true);
    // Another process, which has seen no fence, and whose clock is behind.
    cutOff([0, 1]);
    letIn([3, 4]);
    setClientClock(-HOUR_MS);
    const second = await acquired(await stores.open(), 'k');
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  test('rise over all pairs of servers that are away in turn, with the clocks of the processes an hour apart', async () => {
    const others = [store, await stores.open(), await stores.open()];
    let last = 0;
    let round = 0;
    for (const first of [0, 1, 2, 3]) {
      for (const second of [1, 2, 3, 4].filter((place) => place > first)) {
        cutOff([first, second]);
        for (const aheadMs of [HOUR_MS, 0, -HOUR_MS]) {
          setClientClock(aheadMs);
          const by = others[round++ % 3] as QuorumLockStore;
          const hold = await acquired(by, 'k');
          expect(hold.fence).toBeGreaterThan(last);
          last = hold.fence;
          expect(await by.release(hold)).toBe(true);
        }
        letIn([first, second]);
        setClientClock(0);
        await Promise.all(others.map((each) => stores.allVote(each)));
      }
    }
    expect(round).toBe(30);
  });

  test('rise where a majority lost its counters and the clock of the process is behind', async () => {
    const first = await acquired(store, 'k');
    await store.release(first);
    // It has seen no fence since, and proposes one of an hour ago.
    setClientClock(-HOUR_MS);
    const other = await stores.open(stores.quorum.urls);
    await Promise.all(stores.quorum.servers.map(({ client }) => client.flushall()));
    expect((await acquired(other, 'k')).fence).toBeGreaterThan(first.fence);
  });

  test.each([
    ['one server was ahead of the others before', () => stores.quorum.at(4).client.set(COUNTER, 8e15)],
    ['the clock of the process is an hour ahead of theirs', async () => setClientClock(HOUR_MS)],
    [
      'the clock of the process was ahead',
      async () => {
        setClientClock(HOUR_MS);
        await store.release(await acquired(store, 'j'));
        setClientClock(0);
      },
    ],
  ])('take one round trip also where %s', async (_, prepare) => {
    await prepare();
    // It is settled when that server was among the majority that a grant waits for.
    await until('one counter everywhere', async () => {
      await store.release(await acquired(store, 'k'));
      await sleep(20);
      const counters = await Promise.all(stores.quorum.servers.map(({ client }) => client.get(COUNTER)));
      return new Set(counters).size === 1;
    });
    const scripts = (): Promise<number[]> =>
      Promise.all(stores.quorum.servers.map(async (server) => (await server.commandCounts()).get('evalsha') ?? 0));
    // No majority waits for what the others are still asked.
    let before = await scripts();
    await until('that the servers were asked everything', async () => {
      const earlier = before;
      // A store reports the runs of the other servers a quarter of a second after it has opened.
      await sleep(400);
      before = await scripts();
      return before.every((count, place) => count === earlier[place]);
    });
    for (let round = 0; round < 10; round++) {
      await store.release(await acquired(store, 'k'));
    }
    const asked = async (): Promise<number[]> => (await scripts()).map((count, place) => count - (before[place] as number));
    await until('the last release', async () => (await asked()).every((count) => count >= 20));
    expect(await asked()).toEqual([20, 20, 20, 20, 20]);
  });
});

describe('fences of three servers, of which one lost memory,', () => {
  const LONGEST_MS = 1_000;
  const TTL_MS = 900;

  async function counted(by: QuorumLockStore): Promise<HoldRecord> {
    let hold: HoldRecord | undefined;
    await until('the grant', async () => (hold = await acquired(by, 'k', TTL_MS).catch(() => undefined)) !== undefined);
    return hold as HoldRecord;
  }

  const untilCounted = (place: number): Promise<void> =>
    until('votes that count', async () => (await stores.quorum.at(place).client.hget('lock:run:{0}', 'counts')) === '1');

  /** A fence that the first server has not seen. */
  async function fenceOfTheOthers(): Promise<number> {
    const store = await stores.open();
    cutOff([0]);
    const hold = await counted(store);
    await store.release(hold);
    letIn([0]);
    await store.close();
    return hold.fence;
  }

  test.each([
    ['is two minutes behind', -120_000],
    ['is right', 0],
    ['is two minutes ahead', 120_000],
  ])('rise where that one comes back with an older snapshot, and the clock of the process %s', async (_, aheadMs) => {
    const folder = mkdtempSync(join(tmpdir(), 'snapshot-'));
    const servers = await Promise.all([0, 1, 2].map((place) => RedisServer.start('--dir', folder, '--dbfilename', `${place}.rdb`)));
    stores = new QuorumStores(await RedisQuorum.of(servers), { longestLease: LONGEST_MS });
    await stores.quorum.markUsed();
    const store = await stores.open();
    await store.release(await acquired(store, 'k', TTL_MS));
    await until('the counter', async () => (await stores.quorum.at(1).client.get(COUNTER)) !== null);
    await stores.quorum.at(1).client.save();
    const before = await fenceOfTheOthers();
    await stores.quorum.at(1).kill();
    await stores.quorum.at(1).start();
    await untilCounted(1);
    await stores.quorum.at(2).kill();
    setClientClock(aheadMs);
    const late = await stores.open(stores.quorum.urls);
    expect((await counted(late)).fence).toBeGreaterThan(before);
    rmSync(folder, { recursive: true });
  });

  test.each([
    ['there', true],
    ['away', false],
  ])('rise where it comes back empty, and one whose clock is two minutes ahead is %s then', async (_, isThere) => {
    const clock = new ServerClock();
    const ahead = await clock.startServer();
    clock.set(120_000);
    const servers = [await RedisServer.start(), await RedisServer.start(), ahead];
    stores = new QuorumStores(await RedisQuorum.of(servers), { longestLease: LONGEST_MS });
    await stores.quorum.markUsed();
    const before = await fenceOfTheOthers();
    const other = await stores.open(stores.quorum.urls);
    await stores.quorum.at(1).kill();
    if (!isThere) {
      await ahead.kill();
    }
    await stores.quorum.at(1).start();
    await untilCounted(1);
    await ahead.kill();
    expect((await counted(other)).fence).toBeGreaterThan(before);
    clock.remove();
  });
});

describe("servers' clocks", () => {
  let clock: ServerClock;
  beforeAll(() => {
    clock = new ServerClock();
  });
  afterAll(() => clock.remove());

  beforeEach(async () => {
    clock.set(0);
    // One after the other: each tries the clock.
    const servers = [await clock.startServer(), await clock.startServer()];
    servers.push(...(await Promise.all([2, 3, 4].map(() => RedisServer.start()))));
    stores = new QuorumStores(await RedisQuorum.of(servers));
    await stores.quorum.markUsed();
  });

  test.each([
    ['ahead', HOUR_MS],
    ['back', -HOUR_MS],
  ])('of any two, set %s, take no lock along, and keep none', async (_, aheadMs) => {
    const [store, other] = [await stores.open(), await stores.open()];
    const held = await acquired(store, 'k', 30_000);
    const crashed = await acquired(other, 'crashed', 1_000);
    clock.set(aheadMs);
    for (let round = 0; round < 5; round++) {
      expect(await store.renew([held])).toEqual([true]);
      expect((await other.acquire(newHold('k'))).fence).toBeUndefined();
    }
    let next: HoldRecord | undefined;
    await until('the lock of a crashed holder', async () => (next = await acquired(store, 'crashed').catch(() => undefined)) !== undefined);
    expect(next?.fence).toBeGreaterThan(crashed.fence);
    // An attempt that found it busy there cut its lease.
    await until('its end everywhere', async () => !(await stores.quorum.fences('crashed')).includes(String(crashed.fence)));
    expect(await store.release(held)).toBe(true);
    expect((await acquired(other, 'k')).fence).toBeGreaterThan(held.fence);
  });

  test('that jump make no vote come too late: it is sent again by what the clock reads then', async () => {
    const store = await stores.open();
    for (const [at, aheadMs] of [HOUR_MS, -HOUR_MS, 0].entries()) {
      clock.set(aheadMs);
      const { fence } = await acquired(store, `k${at}`);
      await until('all votes', async () => (await stores.quorum.fences(`k${at}`)).every((stored) => stored === String(fence)));
    }
  });
});
