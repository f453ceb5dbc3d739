import type { AcquireReply, HoldRecord } from '../../lib/core/seam/lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { newHold } from '../support/new-hold';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';

const PERMITS = 1_000;

let server: RedisServer;
let store: RedisLockStore;

beforeAll(async () => {
  server = await RedisServer.start();
  store = new RedisLockStore(sourceOf(server.url));
  await store.open({ prefix: 'lock', warn: () => undefined });
  // A server is sent each script once.
  await takeAndGive('warm');
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

/** Two holds of a semaphore that are in, of which the first has the longer lease. */
async function twoOf(key: string): Promise<[longer: HoldRecord, shorter: HoldRecord]> {
  const holds = [300_000, 60_000].map((ttlMs) => newHold(key, { shares: 5, ttlMs, unanswered: false }));
  for (const hold of holds) {
    expect((await store.acquire(hold)).fence).toBeGreaterThan(0);
  }
  return holds as [HoldRecord, HoldRecord];
}

async function expiryOf(key: string): Promise<number> {
  const names = (await server.client.keys(`*${key}*`)).filter((name) => !name.includes('fence'));
  expect(names.length).toBeLessThanOrEqual(1);
  return names[0] === undefined ? 0 : server.client.pttl(names[0]);
}

test('a release takes out the hold of its owner alone, and once, where nobody queues', async () => {
  const [longer, shorter] = await twoOf('alone');
  expect(await store.release({ ...shorter, owner: longer.owner })).toBe(false);
  expect(await store.release(shorter)).toBe(true);
  expect(await store.release(shorter)).toBe(false);
  expect(await expiryOf('alone')).toBeGreaterThan(60_000);
  expect(await store.release({ ...longer, owner: shorter.owner })).toBe(false);
  expect((await store.operator.inspect('alone'))?.holds).toBe(1);
  expect(await store.release(longer)).toBe(true);
  expect(await expiryOf('alone')).toBe(0);
});

const newPermit = (key: string, permits = PERMITS): HoldRecord => newHold(key, { shares: permits, ttlMs: 600_000, limitMs: 60_000 });

async function take(key: string, count: number, permits = PERMITS): Promise<void> {
  await Promise.all(Array.from({ length: count }, async () => store.acquire(newPermit(key, permits))));
}

/** How often the server carried out each command meanwhile, those of scripts included. */
async function commandsOf(action: () => Promise<unknown>): Promise<Record<string, number>> {
  await server.client.config('RESETSTAT');
  await action();
  const text = await server.client.info('commandstats');
  const counts = [...text.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)].map(([, name, calls]) => [name, Number(calls)] as const);
  return Object.fromEntries(counts.filter(([name]) => name !== 'info' && name !== 'config|resetstat' && name !== 'ping'));
}

async function takeAndGive(key: string): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const hold = newPermit(key);
    const { fence = 0 } = await store.acquire(hold);
    expect(await store.release({ ...hold, fence })).toBe(true);
  }
}

test('a permit costs the server the same commands whether ten are taken or nearly a thousand', async () => {
  await take('few', 10);
  await take('many', PERMITS - 1);
  const few = await commandsOf(async () => takeAndGive('few'));
  expect(few).toMatchObject({ evalsha: 40 });
  expect(await commandsOf(async () => takeAndGive('many'))).toEqual(few);
});

test('so does the answer that all are taken', async () => {
  const ask = async (key: string, permits: number): Promise<AcquireReply> =>
    store.acquire(newPermit(key, permits), { name: `placeP${permits}` });
  await take('full of ten', 10, 10);
  await take('full', PERMITS);
  const few = await commandsOf(async () => ask('full of ten', 10));
  expect(few).toMatchObject({ zadd: 1 });
  expect(await commandsOf(async () => ask('full', PERMITS))).toEqual(few);
});
