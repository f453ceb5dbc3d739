import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { opened } from '../support/opened';
import { answered } from '../support/patient';
import { makeLocks } from '../support/make-locks';
import { timeOf } from '../support/quickest';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

/** A lease whose commands have 100 ms. */
const TTL_MS = 400;
/**
 * When commands of a short lease come too late, and when those of a long lease do: a server may carry them out for a
 * second after their time.
 */
const LATE_MS = 100 + 1_000 + 100;
const LATER_MS = 1_000 + 1_000 + 100;

let server: RedisServer;
let proxy: TcpProxy;
let far: LockService;
let near: LockService;

async function openLocks(url: string): Promise<LockService> {
  return makeLocks(await opened(new RedisLockStore(sourceOf(url))));
}

beforeEach(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
  far = await openLocks(proxy.url);
  near = await openLocks(server.url);
});
afterEach(async () => {
  await proxy.stop();
  await server.stop();
});

/**
 * Has a process learn the clock of the server: its estimate is too high by the travel time of its last command to the
 * server.
 */
async function learnClock(locks: LockService): Promise<void> {
  await until('a call that is answered soon', async () => (await timeOf(locks.withLock('quick', () => undefined))) < 80);
}

/**
 * The network keeps commands that are sent from here on, for longer than anybody waits or remembers; then the first of
 * them arrives.
 */
async function arriveLate(call: () => Promise<unknown>, lateMs = LATE_MS): Promise<void> {
  proxy.mode = 'withhold';
  const ended = call().catch((error: unknown) => error);
  await sleep(lateMs);
  proxy.mode = 'refuse';
  await ended;
  await proxy.deliverFirst();
}

test('an acquire that the network held up takes no lock when everybody has given up', async () => {
  await learnClock(far);
  await arriveLate(() => far.acquire('k', { ttl: TTL_MS, wait: 0 }));
  expect(await server.client.exists('lock:lock:{k}')).toBe(0);
});

test('an exchange that the network held up grants the lock to no call', async () => {
  const held = await far.acquire('k', { ttl: 60_000, renew: false });
  await learnClock(far);
  const next = far.acquire('k', { ttl: TTL_MS, wait: 50 }).catch(() => undefined);
  const lingering = near.acquire('other', { ttl: 60_000 });
  await arriveLate(async () => {
    await held.release();
    await next;
  }, LATER_MS);
  expect(await server.client.hget('lock:lock:{k}', 'owner')).toBeNull();
  await (await lingering).release();
});

test('a join that the network held up keeps no lock taken after its holder has left', async () => {
  const held = await near.acquire('k', { ttl: 60_000 });
  const ticket = held.makeTicket();
  await learnClock(far);
  await arriveLate(() => far.acquire('k', { ttl: TTL_MS, wait: 0, ticket }));
  expect(await near.operations.inspect('k')).toMatchObject({ holds: 1 });
  await held.release();
  expect(await server.client.exists('lock:lock:{k}')).toBe(0);
});

test('a command that comes late, and in time, is carried out', async () => {
  proxy.latencyMs = 600;
  // With what is left of its second, a stall may cost it the reply.
  const lock = await answered((tries) => far.acquire(`k${tries}`, { ttl: 4_000, wait: 0 }));
  expect(lock.isHeld()).toBe(true);
  await lock.release();
});

test('fences that no number can count any more are refused, and nothing is changed', async () => {
  const counter = 'lock:fence:{0}';
  for (const wrong of ['9007199254740991', '9300000000000000']) {
    await server.client.set(counter, wrong);
    await expect(near.acquire('k')).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      detail: expect.stringMatching(/would be above 9007199254740991.*delete the keys <prefix>:fence:\*/) as string,
    });
    expect(await server.client.get(counter)).toBe(wrong);
    expect(await server.client.exists('lock:lock:{k}')).toBe(0);
  }
  await server.client.set(counter, '9007199254740989');
  const last = await near.acquire('k');
  expect(last.fence).toBe(Number.MAX_SAFE_INTEGER - 1);
  const next = near.acquire('k');
  await server.client.set(counter, '9007199254740991');
  await last.release();
  await expect(next).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
  await server.client.del(counter);
  await (await near.acquire('k')).release();
});
