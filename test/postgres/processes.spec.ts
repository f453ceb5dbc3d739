import 'reflect-metadata';
import { jest } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { CLAIM_MS, RECHECK_MS } from '../../lib/stores/kit/protocol';
import { PostgresLockStore } from '../../lib/stores/postgres/postgres-lock-store';
import { Application } from '../support/application';
import { startHolder } from '../support/holder';
import { makeLocks } from '../support/make-locks';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

// Each starts processes of its own, which takes a while on a machine that is busy.
jest.setTimeout(60_000);

/** For a machine that stands still for a second or two. Without what is claimed here, the wait would be ten seconds or more. */
const SLACK_MS = 4_000;

let server: PostgresServer;
let proxy: TcpProxy;
let locks: LockService;
let children: ChildProcess[];

beforeAll(async () => {
  server = await PostgresServer.start('fsync=on');
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterAll(() => server.stop());

beforeEach(async () => {
  children = [];
  proxy = await TcpProxy.start(server.port);
  const store = new PostgresLockStore(server.pool());
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
});
afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
  }
  if (!server.running) {
    await server.start();
  }
  server.resume();
  await locks.shutdown();
  await proxy.stop();
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});

async function startApplication(url = server.url): Promise<Application> {
  const application = await Application.start(url, { hooks: true });
  children.push(application.child);
  return application;
}

/** The queue of a key, and the place that it is reserved for. */
async function placesOf(key: string): Promise<readonly string[]> {
  return (await rowOf(key)).queue ?? [];
}

async function turnOf(key: string): Promise<string | null> {
  return (await rowOf(key)).turn;
}

async function rowOf(key: string): Promise<{ queue: string[] | null; turn: string | null }> {
  const sql = 'SELECT queue, turn FROM distributed_lock.lease WHERE key = $1';
  const [row] = await server.query<{ queue: string[] | null; turn: string | null }>(sql, [`lock:{${key}}`]);
  return row ?? { queue: null, turn: null };
}

/** A process that waits for the key, in the queue already; and what it says when it has it. */
async function startWaiter(key: string, place: number): Promise<{ child: ChildProcess; granted: Promise<unknown> }> {
  const child = fork('test/fixtures/waiter.mjs', [server.url, key, '30000'], { execArgv: [] });
  children.push(child);
  await once(child, 'message');
  const granted = once(child, 'message').then(([message]) => message as unknown);
  await until('its place in the queue', async () => (await locks.inspect(key))?.waiters.length === place);
  return { child, granted };
}

describe('a process that is killed', () => {
  test('while it holds a lock frees it with its lease, and its fence is passed', async () => {
    const holder = await startHolder(server.url, 'k', 1_500);
    children.push(holder.child);
    holder.child.kill('SIGKILL');
    const killedAt = performance.now();
    const fence = await locks.withLock('k', { wait: 20_000 }, (lock) => lock.fence);
    expect(fence).toBeGreaterThan(holder.fence);
    expect(performance.now() - killedAt).toBeLessThan(1_500 + RECHECK_MS.soon + SLACK_MS);
  });

  test('while it is first in the queue is skipped at once', async () => {
    const held = await locks.acquire('k', { ttl: '1m' });
    const first = await startWaiter('k', 1);
    const second = await startWaiter('k', 2);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    await until('that the server knows', async () => {
      const [row] = await server.query<{ count: number }>("SELECT count(*)::integer FROM pg_locks WHERE locktype = 'advisory' AND granted");
      return row?.count === 2;
    });
    const places = await placesOf('k');
    await held.release();
    // The dead process is not even given the window in which it could claim its turn.
    expect([places[1], null]).toContain(await turnOf('k'));
    expect(await second.granted).toMatchObject({ fence: expect.any(Number) });
  });

  test('while it is stopped, and first in the queue, costs one claim window', async () => {
    const held = await locks.acquire('k', { ttl: '1m' });
    const first = await startWaiter('k', 1);
    const second = await startWaiter('k', 2);
    first.child.kill('SIGSTOP');
    await held.release();
    const releasedAt = performance.now();
    expect(await second.granted).toMatchObject({ fence: expect.any(Number) });
    expect(performance.now() - releasedAt).toBeLessThan(CLAIM_MS + RECHECK_MS.soon + SLACK_MS);
  });
});

test('a process that is stopped for longer than its lease knows when it goes on, and leaves the next owner alone', async () => {
  const holder = await startHolder(server.url, 'k', 800);
  children.push(holder.child);
  holder.child.kill('SIGSTOP');
  const lock = await locks.acquire('k', { ttl: 20_000, wait: 20_000 });
  expect(lock.fence).toBeGreaterThan(holder.fence);
  holder.child.kill('SIGCONT');
  expect(await holder.leave()).toBe(false);
  expect(await locks.inspect('k')).toMatchObject({ fence: lock.fence, holds: 1 });
  await lock.release();
});

describe('shutdown', () => {
  test('hands a lock over to the process that waits for it, and leaves nothing behind', async () => {
    const application = await startApplication();
    application.begin('hold', 'job', { ttl: 20_000 });
    await application.until('held');
    application.begin('run', 'other', { wait: 30_000 });
    const next = locks.withLock('job', { wait: 20_000 }, () => performance.now());
    const held = await locks.acquire('taken');
    application.begin('run', 'taken', { wait: 30_000 });
    await until('both places', async () => {
      const waiters = await Promise.all(['job', 'taken'].map(async (key) => (await locks.inspect(key))?.waiters.length));
      return waiters.every((count) => count === 1);
    });
    application.child.kill('SIGTERM');
    await application.until('notified');
    const notifiedAt = performance.now();
    // Long before its lease would have ended.
    expect((await next) - notifiedAt).toBeLessThan(SLACK_MS);
    expect(await application.end()).toBe('SIGTERM');
    await held.release();
    expect(await server.query('SELECT key FROM distributed_lock.lease WHERE ends > clock_timestamp() OR queue IS NOT NULL')).toEqual([]);
    const connections = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%presence%'";
    await until('that only the listener of this process is left', async () => (await server.query(connections)).length === 1);
  });

  test.each([
    ['killed', () => server.kill()],
    ['blackholed', () => (proxy.mode = 'blackhole')],
    ['stopped', () => server.pause()],
  ])('does not wait for a server that is %s, and the process ends by itself', async (_, away) => {
    const application = await startApplication(server.urlFor('postgres', proxy.port));
    const held = await locks.acquire('taken', { ttl: '1m' });
    application.begin('hold', 'job');
    application.begin('run', 'job', { wait: 60_000 });
    application.begin('run', 'taken', { wait: 60_000 });
    application.begin('run', 'report', { minHold: 60_000, ttl: 20_000 });
    await application.until('held');
    await application.until('ended', 'report');
    await away();
    application.begin('run', 'new', { wait: 60_000 });
    await sleep(300);
    application.begin('close');
    expect((await application.until('closed')).tookMs).toBeLessThan(5_000 + SLACK_MS);
    const closedAt = performance.now();
    expect(await application.end()).toBe(0);
    expect(performance.now() - closedAt).toBeLessThan(SLACK_MS);
    expect(application.notices.filter(({ event }) => event === 'rejected').map(({ key, code, reason }) => [key, code, reason])).toEqual(
      expect.arrayContaining([
        ['job', 'LOCK_LOST', 'shutdown'],
        ['job', 'LOCK_NOT_ACQUIRED', 'shutdown'],
        ['taken', 'LOCK_NOT_ACQUIRED', 'shutdown'],
        ['new', 'LOCK_NOT_ACQUIRED', 'shutdown'],
      ]),
    );
    void held;
  });
});
