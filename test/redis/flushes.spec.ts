import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError } from '../../lib/core/words/errors';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { noting } from '../support/noting';
import { opened } from '../support/opened';
import { gotNoReply } from '../support/patient';
import { Random, SEED } from '../support/random';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';

const RUN_MS = 3_000;

interface Grant {
  readonly invokedAt: number;
  readonly grantedAt: number;
  readonly fence: number;
}

let server: RedisServer;
let services: LockService[];
let troubles: LockTrouble[];

beforeEach(async () => {
  services = [];
  troubles = [];
  server = await RedisServer.start();
  for (let count = 0; count < 4; count++) {
    const store = await opened(new RedisLockStore(sourceOf(server.url)));
    services.push(makeLocks(store, { wait: 15_000, onTrouble: noting(troubles) }));
  }
});
afterEach(() => server.stop());

/** The troubles that the machine did not cause: a stall of a second costs a call its reply. */
const wrongs = (): LockTrouble[] =>
  troubles.filter((trouble) => trouble.type !== 'storeAnswered' && !('error' in trouble && gotNoReply(trouble.error)));

/** Callers in each of four processes, while `disturb` is run over and over; for longer where `isEnough` says so. */
async function underLoad(
  disturb: () => Promise<unknown>,
  call: (locks: LockService) => Promise<unknown>,
  isEnough: () => boolean,
  each = 3,
): Promise<void> {
  const until = performance.now() + RUN_MS;
  const loop = async (step: () => Promise<unknown>): Promise<void> => {
    while (performance.now() < until || !isEnough()) {
      await step();
    }
  };
  const callers = services.flatMap((locks) => Array.from({ length: each }, () => loop(() => call(locks))));
  await Promise.all([...callers, loop(() => disturb().then(() => sleep(20)))]);
}

test('nobody notices SCRIPT FLUSH in a loop: nothing fails, and a plain counter loses nothing', async () => {
  const random = new Random(SEED);
  let counter = 0;
  let calls = 0;
  await underLoad(
    () => server.client.script('FLUSH'),
    async (locks) => {
      await locks.withLock('k', async () => {
        const seen = counter;
        await sleep(random.between(0, 2));
        counter = seen + 1;
      });
      calls++;
    },
    () => calls > 100,
  );
  expect(counter).toBe(calls);
  expect(wrongs()).toEqual([]);
  expect((await server.commandCounts()).get('eval') ?? 0).toBeGreaterThan(10);
});

test.each([
  ['every loss is notified', 1],
  ['nothing but losses is reported where one lease serves several calls', 3],
])('FLUSHALL in a loop: fences rise in the order of grants, %s, and then all is well again', async (_, each) => {
  const grants: Grant[] = [];
  let inside = 0;
  let overlapping = 0;
  const errors: unknown[] = [];
  const random = new Random(SEED);
  await underLoad(
    () => server.client.flushall(),
    async (locks) => {
      const invokedAt = performance.now();
      await locks
        .withLock('k', { ttl: 4_000 }, async (lock) => {
          grants.push({ invokedAt, grantedAt: performance.now(), fence: lock.fence });
          overlapping += inside++ > 0 ? 1 : 0;
          await sleep(random.between(0, 60));
          inside--;
        })
        .catch((error: unknown) => errors.push(error));
    },
    () => grants.length > 50 && overlapping > 0 && errors.length >= (each === 1 ? overlapping : 1),
    each,
  );
  expect(new Set(grants.map(({ fence }) => fence)).size).toBe(grants.length);
  for (const { invokedAt, fence } of grants) {
    const before = grants.filter(({ grantedAt }) => grantedAt < invokedAt).map((grant) => grant.fence);
    expect(Math.max(0, ...before)).toBeLessThan(fence);
  }
  // Flushed locks let others in; their holders were notified, and nothing else went wrong.
  expect(overlapping).toBeGreaterThan(0);
  // A call that ends before the store is asked again, with another one of its process behind it, does not know.
  expect(errors.length).toBeGreaterThanOrEqual(each === 1 ? overlapping : 1);
  expect(errors.every((error) => error instanceof LockLostError)).toBe(true);
  expect(wrongs().every(({ type }) => type === 'lost')).toBe(true);
  await Promise.all(services.map((locks) => locks.withLock('k', () => undefined)));
  expect((await server.client.keys('lock:*')).filter((name) => !/^lock:(done|fence):/.test(name))).toEqual([]);
});
