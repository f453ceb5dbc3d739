import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { opened } from '../support/opened';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { searched } from '../support/searched';
import { until } from '../support/until';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

async function open(source: ConstructorParameters<typeof RedisLockStore>[0] = server.url): Promise<RedisLockStore> {
  return opened(new RedisLockStore(typeof source === 'string' ? sourceOf(source) : source));
}

async function newService(): Promise<LockService> {
  return makeLocks(await open(), { ttl: 60_000, deadlocksAfterMs: 1_000 });
}

/** How many commands of each kind the server has carried out. */
async function commands(): Promise<Record<string, number>> {
  const stats = await server.client.info('commandstats');
  return Object.fromEntries([...stats.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)]));
}

test('with nobody who asks, a process sends nothing but the commands of its locks', async () => {
  const [mine, theirs] = [await newService(), await newService()];
  await sleep(200);
  let of = await sentBy(mine, theirs);
  // Where the server stands still meanwhile, a call may have to ask.
  for (let tries = 1; of('publish') > 0 && tries < 5; tries++) {
    of = await sentBy(mine, theirs);
  }
  // The lock that the longest waiting call waits for is held by its own process, so nobody has to be asked.
  expect(of('scan')).toBe(0);
  expect(of('publish')).toBe(0);
  expect(of('evalsha') + of('eval')).toBeLessThanOrEqual(85);
});

/** How many commands of a kind the server carries out for calls that meet nobody of another process. */
async function sentBy(mine: LockService, theirs: LockService): Promise<(name: string) => number> {
  const before = await commands();
  for (let round = 0; round < 20; round++) {
    await mine.withLock('outer', () => theirs.withLock(`inner ${round}`, () => undefined));
  }
  // Longer than a deadlock search waits.
  await mine.withLock('outer', async () => {
    const held = await theirs.acquire('held');
    const waits = theirs.withLock('held', () => undefined);
    await sleep(1_500);
    await held.release();
    await waits;
  });
  const after = await commands();
  return (name) => (after[name] ?? 0) - (before[name] ?? 0);
}

/**
 * Fifty processes, all in this one process here, which does one after the other what they would do at once; fewer
 * beside other suites.
 */
const PROCESSES = process.env['TEST_LONG'] ? 50 : 10;

test(`a survey has all of ${PROCESSES * 200} locks of ${PROCESSES} processes`, async () => {
  const services = await Promise.all(Array.from({ length: PROCESSES }, newService));
  for (const locks of services) {
    await Promise.all(Array.from({ length: 200 }, () => locks.acquire(`many:${randomUUID()}`, { ttl: '10m', wait: 30_000, renew: false })));
  }
  let tookMs = 0;
  await until(
    'all processes have answered in time',
    async () => {
      const startedAt = performance.now();
      const { processes, held, leftOut } = await (services[0] as LockService).operations.survey({});
      tookMs = performance.now() - startedAt;
      return processes.length === PROCESSES && held.length === PROCESSES * 200 && leftOut === 0;
    },
    60_000,
  );
  process.stdout.write(`A survey of ${PROCESSES} processes with ${PROCESSES * 200} locks took ${Math.round(tookMs)} ms.\n`);
}, 180_000);

test('a search honours the prefix that a client puts before keys, also one with a pattern in it', async () => {
  const source = { port: server.port, keyPrefix: 'app[1]*:' };
  const [store, other] = [await open(source), await open({ port: server.port, keyPrefix: 'app1:' })];
  const [mine, theirs] = [makeLocks(store, { ttl: 60_000 }), makeLocks(other, { ttl: 60_000 })];
  await mine.acquire('same');
  await theirs.acquire('same');
  // The lock of a start may be left for a while, where the machine stalled.
  expect(await searched(store)).toEqual(['same']);
});

test('a user who may not search is told what to grant', async () => {
  await server.client.call('ACL', 'SETUSER', 'few', 'on', '>secret', '~*', '&*', '+@all', '-scan');
  const store = await open({ port: server.port, username: 'few', password: 'secret' });
  await expect(searched(store)).rejects.toThrow(LockConfigurationError);
  await expect(searched(store)).rejects.toMatchObject({ detail: expect.stringContaining('Grant +scan') as string });
});
