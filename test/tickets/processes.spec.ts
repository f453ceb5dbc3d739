import { ticketHeaders } from 'nestjs-distributed-lock/tickets';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { RedisLockStore, type LockService } from 'nestjs-distributed-lock';
import { makeLocks } from '../support/make-locks';

let redis: RedisServer;
let store: RedisLockStore;
let locks: LockService;
const children: ChildProcess[] = [];
/** The addresses of applications in other processes, of which one accepts tickets. */
let accepting: string;
let other: string;
beforeAll(async () => {
  redis = await RedisServer.start();
  store = new RedisLockStore(redis.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store, { ttl: 60_000 });
  [accepting, other] = await Promise.all([startStock('accepts'), startStock('')]);
});
afterAll(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
  }
  await store.close();
  await redis.stop();
});

async function startStock(accepts: 'accepts' | ''): Promise<string> {
  const child = fork('test/fixtures/stock.mjs', [redis.url, accepts], { stdio: 'inherit' });
  children.push(child);
  const [port] = (await once(child, 'message')) as [number];
  return `http://127.0.0.1:${port}`;
}

const ask = (url: string): Promise<Response> => fetch(url, { redirect: 'error', headers: ticketHeaders() });

test('a request to another process enters the lock of this one, with the same fence', async () => {
  await locks.withLock('order:1', async ({ fence }) => {
    const response = await ask(`${accepting}/reserve/1`);
    expect([response.status, await response.text()]).toEqual([200, String(fence)]);
  });
  expect(await locks.operations.inspect('order:1')).toBeNull();
});

test('where the other process does not accept tickets, it waits for this one, and refuses', async () => {
  await locks.withLock('order:1', async () => expect((await ask(`${other}/reserve/1`)).status).toBe(423));
});

test('a lock that this process loses is lost in the other one, which answers with an error', async () => {
  const holding = locks.withLock('order:1', async ({ fence }) => {
    const answer = ask(`${accepting}/untilLost/1`);
    await until('that both are inside', async () => (await locks.operations.inspect('order:1'))?.holds === 2);
    await locks.operations.forceRelease('order:1', { fence });
    expect((await answer).status).toBe(500);
  });
  await expect(holding).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
});
