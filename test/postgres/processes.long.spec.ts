import 'reflect-metadata';
import { jest } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { CLAIM_MS, RECHECK_MS } from '../../lib/kit/protocol';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { Application } from '../support/application';
import { startHolder } from '../support/holder';
import { makeLocks } from '../support/make-locks';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { goOn, stopProcess } from '../support/stopping';

// Each starts processes of its own, which takes a while on a machine that is busy.
jest.setTimeout(60_000);

/**
 * For a machine that stands still for a second or two. If the claims here did not hold, the wait would be ten seconds
 * or more.
 */
const SLACK_MS = 4_000;

/** A waiter that is stopped in the moment when it takes its turn has the lock for so long. */
const WAITER_TTL_MS = 2_000;

let server: PostgresServer;
let locks: LockService;
let children: ChildProcess[];

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterAll(() => server.stop());

beforeEach(async () => {
  children = [];
  const store = new PostgresLockStore(server.pool());
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
});
afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
  }
  await locks.shutdown();
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});

async function startApplication(): Promise<Application> {
  const application = await Application.start(server.url, { hooks: true });
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
  const child = fork('test/fixtures/waiter.mjs', [server.url, key, '30000', String(WAITER_TTL_MS)], { execArgv: [] });
  children.push(child);
  await once(child, 'message');
  const granted = once(child, 'message').then(([message]) => message as unknown);
  await until('its place in the queue', async () => (await locks.operations.inspect(key))?.waiters.length === place);
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
    stopProcess(first.child.pid as number);
    await held.release();
    const releasedAt = performance.now();
    expect(await second.granted).toMatchObject({ fence: expect.any(Number) });
    expect(performance.now() - releasedAt).toBeLessThan(CLAIM_MS + RECHECK_MS.soon + SLACK_MS);
  });
});

test('a process that is stopped for longer than its lease knows when it goes on, and leaves the next owner alone (SIGSTOP)', async () => {
  const holder = await startHolder(server.url, 'k', 800);
  children.push(holder.child);
  stopProcess(holder.child.pid as number);
  const lock = await locks.acquire('k', { ttl: 20_000, wait: 20_000 });
  expect(lock.fence).toBeGreaterThan(holder.fence);
  goOn(holder.child.pid as number);
  expect(await holder.leave()).toBe(false);
  expect(await locks.operations.inspect('k')).toMatchObject({ fence: lock.fence, holds: 1 });
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
      const waiters = await Promise.all(['job', 'taken'].map(async (key) => (await locks.operations.inspect(key))?.waiters.length));
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
    const listeners = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted";
    await until('that only the listener of this process is left', async () => (await server.query(listeners)).length === 1);
  });
});

describe('shutdown does not wait for a server', () => {
  const AWAY: Readonly<Record<string, (own: PostgresServer, through: TcpProxy) => unknown>> = {
    killed: (own) => own.kill(),
    blackholed: (_own, through) => (through.mode = 'blackhole'),
    stopped: (own) => own.pause(),
  };

  /** Closes an application whose server is away. What it said, and how long it lived on afterwards, in milliseconds. */
  async function closeBeside(away: (own: PostgresServer, through: TcpProxy) => unknown) {
    const own = await PostgresServer.start();
    const through = await TcpProxy.start(own.port);
    try {
      const store = new PostgresLockStore(own.pool());
      await store.ensureSchema();
      await store.open({ prefix: 'lock', warn: () => undefined });
      await makeLocks(store).acquire('taken', { ttl: '1m' });
      const application = await Application.start(own.urlFor('postgres', through.port), { hooks: true });
      try {
        application.begin('hold', 'job');
        application.begin('run', 'job', { wait: 60_000 });
        application.begin('run', 'taken', { wait: 60_000 });
        application.begin('run', 'report', { minHold: 60_000, ttl: 20_000 });
        await application.until('held');
        await application.until('ended', 'report');
        await away(own, through);
        application.begin('run', 'new', { wait: 60_000 });
        await sleep(300);
        application.begin('close');
        const { tookMs } = await application.until('closed');
        const closedAt = performance.now();
        const code = await application.end();
        return { tookMs, code, livedOnMs: performance.now() - closedAt, notices: application.notices };
      } finally {
        application.child.kill('SIGKILL');
        await store.close();
      }
    } finally {
      await through.stop();
      own.resume();
      await own.stop();
    }
  }

  const closed = new Map<string, ReturnType<typeof closeBeside>>();

  // Side by side: each waits most of the time, and has a server of its own.
  beforeAll(() => {
    for (const [how, away] of Object.entries(AWAY)) {
      const closing = closeBeside(away);
      closing.catch(() => undefined);
      closed.set(how, closing);
    }
  });

  test.each(Object.keys(AWAY))('that is %s, and the process ends by itself', async (how) => {
    const { tookMs, code, livedOnMs, notices } = await (closed.get(how) as ReturnType<typeof closeBeside>);
    expect(tookMs).toBeLessThan(5_000 + SLACK_MS);
    expect(code).toBe(0);
    // If the process still waited for anything, it would live on for a minute.
    expect(livedOnMs).toBeLessThan(20_000);
    expect(notices.filter(({ event }) => event === 'rejected').map(({ key, code: reject, reason }) => [key, reject, reason])).toEqual(
      expect.arrayContaining([
        ['job', 'LOCK_LOST', 'shutdown'],
        ['job', 'LOCK_NOT_ACQUIRED', 'shutdown'],
        ['taken', 'LOCK_NOT_ACQUIRED', 'shutdown'],
        ['new', 'LOCK_NOT_ACQUIRED', 'shutdown'],
      ]),
    );
  });
});
