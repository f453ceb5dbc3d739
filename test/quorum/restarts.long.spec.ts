import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockError, LockNotAcquiredError } from '../../lib/core/words/errors';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { makeLocks } from '../support/make-locks';
import { acquired, newHold, QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';

const LONGEST_MS = 3_000;
/** How much later a server may count: it knows its age in whole seconds. */
const SECOND_MS = 1_000;
/** For how long a machine may stand still meanwhile. */
const STALLS_MS = 5_000;

let stores: QuorumStores;
let store: QuorumLockStore;

beforeEach(async () => {
  stores = new QuorumStores(await RedisQuorum.start(), { longestLease: LONGEST_MS });
  store = await stores.open();
});
afterEach(() => stores.stop());

const cutOff = (places: readonly number[]): void => places.forEach((place) => (stores.quorum.proxy(place).mode = 'refuse'));
const letIn = (places: readonly number[]): void => places.forEach((place) => (stores.quorum.proxy(place).mode = 'pass'));

async function restartEmpty(place: number): Promise<void> {
  await stores.quorum.at(place).kill();
  await stores.quorum.at(place).start();
}

/** Tries again and again until `endsAt`; whether it got the lock before. A grant that comes later says nothing. */
async function triesUntil(endsAt: number, by: QuorumLockStore, key: string): Promise<boolean> {
  while (performance.now() < endsAt) {
    const hold = newHold(key, LONGEST_MS);
    const reply = await by.acquire(hold).catch(() => undefined);
    if (reply?.fence !== undefined) {
      return performance.now() < endsAt;
    }
  }
  return false;
}

async function grantedAtLast(by: QuorumLockStore, key: string): Promise<HoldRecord> {
  let hold: HoldRecord | undefined;
  await until('the grant', async () => (hold = await acquired(by, key, LONGEST_MS).catch(() => undefined)) !== undefined);
  return hold as HoldRecord;
}

/** How often a server was asked to run a script. */
async function scriptsRun(place: number): Promise<number> {
  return (await stores.quorum.at(place).commandCounts()).get('evalsha') ?? 0;
}

test('a server that forgot a vote makes no majority, whether or not a store was there before', async () => {
  const [other, late] = [await stores.open(), stores];
  cutOff([3, 4]);
  const sentAt = performance.now();
  const held = await acquired(store, 'k', LONGEST_MS);
  const leaseEndsAt = sentAt + LONGEST_MS * 0.99 - 2;
  await restartEmpty(2);
  letIn([3, 4]);
  const newcomer = await late.open();
  const before = await scriptsRun(2);
  const tries = [other, newcomer].map((by) => triesUntil(leaseEndsAt - 50, by, 'k'));
  expect(await Promise.all(tries)).toEqual([false, false]);
  // All had been connected to it, and asked it.
  expect((await scriptsRun(2)) - before).toBeGreaterThan(10);
  // It votes again later, where the other two are away.
  cutOff([3, 4]);
  const next = await grantedAtLast(newcomer, 'k');
  expect(next.fence).toBeGreaterThan(held.fence);
  expect(performance.now() - sentAt).toBeLessThan(LONGEST_MS * 2 + SECOND_MS + STALLS_MS);
  await newcomer.release(next);
  await grantedAtLast(other, 'k');
});

test('a server that restarted is warned of once by each store, with its name and for how long it does not count', async () => {
  await acquired(store, 'k', LONGEST_MS);
  await restartEmpty(1);
  await until('the warning', () => stores.warnings.length > 0);
  await sleep(1_000);
  expect(stores.warnings).toEqual([
    expect.stringMatching(
      /^server 2 of 5 \(127\.0\.0\.1:\d+\) of the quorum: it restarted not long ago, .* and its votes count in [1-8]\d{3} ms at the earliest\. It may have forgotten locks\.$/,
    ),
  ]);
});

test('any two servers that restart empty take no lock along, and the others go on granting', async () => {
  const patient = new QuorumStores(stores.quorum, { longestLease: '30s' });
  const [own, other] = [await patient.open(), await patient.open()];
  const held = await acquired(own, 'held', 30_000);
  await until('five votes', async () => (await stores.quorum.fences('held')).every((fence) => fence === String(held.fence)));
  await Promise.all([0, 3].map((place) => restartEmpty(place)));
  await until('the renewal', async () => (await own.renew([held]).catch(() => []))[0] === true);
  expect((await other.acquire(newHold('held'))).fence).toBeUndefined();
  const next = await acquired(other, 'next');
  expect(next.fence).toBeGreaterThan(held.fence);
  expect(await own.release(held)).toBe(true);
  expect(await other.release(next)).toBe(true);
  await Promise.all([own.close(), other.close()]);
});

test('a lock that is held while all servers restart one after the other has its holder, and since when', async () => {
  const rolling = new QuorumStores(await RedisQuorum.start(3), { longestLease: 1_500 });
  try {
    const [own, other] = [await rolling.open(), await rolling.open()];
    const lock = await makeLocks(own, { ttl: 1_500 }).acquire('k');
    const before = await own.inspect('k');
    expect(before?.by).not.toBe('');
    for (const [place, server] of rolling.quorum.servers.entries()) {
      await server.kill();
      await server.start();
      await until('its vote', async () => {
        const { members } = await other.health();
        return members?.[place]?.voting === true && (await rolling.quorum.fences('k')).every((fence) => fence === String(before?.fence));
      });
    }
    expect(lock.isHeld()).toBe(true);
    const after = await other.inspect('k');
    expect(after).toMatchObject({ fence: lock.fence, by: before?.by, holds: 1 });
    expect(Math.abs(Number(after?.since) - Number(before?.since))).toBeLessThan(500);
    const failure = await makeLocks(other, { ttl: 1_500 })
      .acquire('k', { wait: 0 })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ holder: { by: before?.by } });
    expect((failure as LockNotAcquiredError).holder?.heldMs).toBeGreaterThan(3_000);
    await lock.release();
  } finally {
    await rolling.stop();
  }
}, 60_000);

test('a third one makes locks unavailable for as long as what was reported of them holds, and the error says so', async () => {
  await grantedAtLast(store, 'before');
  let restartedAt = 0;
  const restartThree = async (): Promise<void> => {
    restartedAt = performance.now();
    await Promise.all([0, 2, 4].map((place) => restartEmpty(place)));
  };
  await restartThree();
  await until(
    'the reconnection',
    async () => {
      const message = await store.acquire(newHold('k', LONGEST_MS)).then(
        // Servers may have voted for the attempt before, also where that does not count.
        ({ fence }) => (fence === undefined ? 'busy' : 'granted'),
        (error: LockError) => error.detail,
      );
      if (message === 'granted') {
        // The machine stood still until they counted again.
        expect(performance.now() - restartedAt).toBeGreaterThan(LONGEST_MS - 200);
        await restartThree();
      }
      return /3 of 5 servers gave no answer that counts, .* missing\. (server \d .*: it restarted not long ago, or came in the place of another, and its votes count in \d+ ms at the earliest(; |\.$)){3}/.test(
        message,
      );
    },
    60_000,
  );
  await grantedAtLast(store, 'k');
  const tookMs = performance.now() - restartedAt;
  expect(tookMs).toBeGreaterThan(2 * LONGEST_MS);
  expect(tookMs).toBeLessThan(LONGEST_MS + 2 * SECOND_MS + STALLS_MS);
}, 120_000);

test('servers that restart all at once are not taken for new ones by a store that has used them', async () => {
  const other = await stores.open();
  const sentAt = performance.now();
  await acquired(store, 'k', LONGEST_MS);
  await Promise.all([0, 1, 2, 3, 4].map((place) => restartEmpty(place)));
  expect(await triesUntil(sentAt + LONGEST_MS * 0.99 - 50, other, 'k')).toBe(false);
  await grantedAtLast(other, 'k');
});

test('a server to which only the connection broke counts at once', async () => {
  const patient = new QuorumStores(stores.quorum, { longestLease: '10m' });
  const own = await patient.open();
  await acquired(own, 'k');
  stores.quorum.proxies.forEach((proxy) => proxy.cut());
  const startedAt = performance.now();
  await grantedAtLast(own, 'again');
  expect(performance.now() - startedAt).toBeLessThan(STALLS_MS);
  await own.close();
});
