import 'reflect-metadata';
import { jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { Application } from '../support/application';
import { makeLocks } from '../support/make-locks';
import { notified, recordCommands } from '../support/record-commands';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

// Each starts processes of its own, which takes a while on a machine that is busy.
jest.setTimeout(60_000);

/** For a machine that is busy with other things. */
const SLACK_MS = 5_000;

let server: RedisServer;
let proxy: TcpProxy;
let store: RedisLockStore;
let locks: LockService;
let applications: Application[];

beforeEach(async () => {
  applications = [];
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
  store = new RedisLockStore(sourceOf(server.url));
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
});
afterEach(async () => {
  for (const { child } of applications) {
    child.kill('SIGKILL');
  }
  await locks.shutdown();
  await proxy.stop();
  await server.stop();
});

async function startApplication(options: { hooks: boolean }, url = server.url): Promise<Application> {
  const application = await Application.start(url, options);
  applications.push(application);
  return application;
}

/** The stored keys besides done marks and the fence, and for how long they last. */
async function leftBehind(): Promise<Record<string, number>> {
  const names = (await server.client.keys('*')).filter((name) => !name.includes('start-up check'));
  for (const name of names.filter((each) => each.startsWith('lock:done:'))) {
    expect(await server.client.pttl(name)).toBeLessThanOrEqual(10_000);
  }
  const others = names.filter((name) => !/^lock:(done|fence):/.test(name));
  return Object.fromEntries(await Promise.all(others.map(async (name) => [name, await server.client.pttl(name)] as const)));
}

describe('SIGTERM with shutdown hooks', () => {
  test('lets requests in flight lock until the server has drained, then rejects who waits and tells what runs', async () => {
    const application = await startApplication({ hooks: true });
    application.begin('hold', 'job');
    await application.until('held', 'job');
    application.begin('run', 'job', { wait: 60_000 });
    application.begin('run', 'report', { minHold: 40_000, ttl: 3_000 });
    await application.until('ended', 'report');
    // Twelve in three lines of four; the last of each has to wait for its lock when the signal has come already.
    const load = Array.from({ length: 12 }, (_, n) => application.request(`customer${n % 3}`, 500));
    await until('that all have come', () => application.notices.filter(({ event }) => event === 'came').length === load.length);
    application.child.kill('SIGTERM');
    await sleep(150);
    // Work besides requests may lock as well while the server drains.
    application.begin('run', 'late');
    await until('that it takes no more requests', async () => (await application.request('newcomer', 0)) === 'ECONNREFUSED');
    expect(await Promise.all(load)).toEqual(load.map(() => 200));
    expect(await application.end()).toBe('SIGTERM');

    expect(application.notices.filter(({ event, key }) => event === 'answered' && key?.startsWith('customer'))).toHaveLength(12);
    expect(application.positionOf('ran', 'late')).toBeGreaterThan(-1);
    const [drained, rejected] = [application.positionOf('answered'), application.positionOf('rejected', 'job')];
    expect(application.notices.filter(({ event }) => event === 'rejected')).toEqual(
      expect.arrayContaining([
        { event: 'rejected', key: 'job', code: 'LOCK_NOT_ACQUIRED', reason: 'shutdown' },
        { event: 'rejected', key: 'job', code: 'LOCK_LOST', reason: 'shutdown' },
      ]),
    );
    expect(application.notices.slice(0, drained).filter(({ event }) => event === 'rejected' || event === 'notified')).toEqual([]);
    expect(rejected).toBeGreaterThan(drained);
    expect(application.notices[application.positionOf('notified', 'job')]).toMatchObject({ reason: 'shutdown' });
    expect(application.output).toMatch(/Lock "job" of .* was lost after \d+ ms: the application shut down\./);

    // Only the minHold is left, and runs out.
    const left = await leftBehind();
    expect(Object.keys(left).filter((name) => !name.startsWith('lock:queue:'))).toEqual(['lock:lock:{report}']);
    expect(left['lock:lock:{report}']).toBeGreaterThan(0);
    expect(left['lock:lock:{report}']).toBeLessThan(40_100);
    expect(Object.values(left).every((ms) => ms > 0 && ms <= 60_000)).toBe(true);
    expect(await locks.withLock('job', { wait: 0 }, () => 'free')).toBe('free');
  });

  test('hands a lock over to the process that waits for it', async () => {
    const application = await startApplication({ hooks: true });
    application.begin('hold', 'job', { ttl: 20_000 });
    await application.until('held');
    const next = locks.withLock('job', { wait: 15_000 }, () => performance.now());
    await sleep(100);
    application.child.kill('SIGTERM');
    await application.until('notified');
    const notifiedAt = performance.now();
    expect((await next) - notifiedAt).toBeLessThan(SLACK_MS);
    expect(await application.end()).toBe('SIGTERM');
  });
});

describe('SIGTERM without shutdown hooks', () => {
  test('ends the process where it stands: a warning said so, its lock is free after its ttl, and its place is skipped', async () => {
    const application = await startApplication({ hooks: false });
    await until('the warning', () => application.output.includes('app.enableShutdownHooks()'));
    expect(application.output).toMatch(/Shutdown hooks are off.*Call app\.enableShutdownHooks\(\)/);
    application.begin('hold', 'job', { ttl: 4_000 });
    await application.until('held');
    const held = await locks.acquire('k');
    application.begin('run', 'k', { wait: 60_000 });
    while ((await server.client.zcard('lock:queue:{k}')) === 0) {
      await sleep(5);
    }
    // One that is not notified yet has a half number, and would not be skipped.
    await until(
      'that it is notified',
      async () => Number((await server.client.zrange('lock:queue:{k}', 0, '0', 'WITHSCORES'))[1]) % 1 === 0,
    );
    const behind = fork('test/fixtures/waiter.mjs', [server.url, 'k', '60000'], { execArgv: [] });
    const granted = once(behind, 'message').then(async () => once(behind, 'message'));
    while ((await server.client.zcard('lock:queue:{k}')) === 1) {
      await sleep(5);
    }
    const request = application.request('customer', 10_000);
    await sleep(100);
    application.child.kill('SIGTERM');
    expect(await application.end()).toBe('SIGTERM');
    expect(await request).toBe('ECONNRESET');
    expect(application.notices.filter(({ event }) => ['notified', 'rejected', 'answered'].includes(event))).toEqual([]);

    const startedAt = performance.now();
    const left = await server.client.pttl('lock:lock:{job}');
    expect(left).toBeGreaterThan(200);
    const { pid } = application.child;
    const subscribed = async (): Promise<string[]> => (await server.client.pubsub('CHANNELS', `lock:wake:*:${pid}:*`)) as string[];
    await until('that the server has seen its sockets close', async () => (await subscribed()).length === 0);
    const { commands, stop } = await recordCommands(server);
    await held.release();
    expect(await granted).toMatchObject([{ fence: expect.any(Number) as unknown }, undefined]);
    await until('the message', () => notified(commands, behind.pid as number) >= 0);
    stop();
    // In one script, and not only after the window in which the dead process could have claimed its turn.
    const [dead, live] = [notified(commands, pid as number), notified(commands, behind.pid as number)];
    expect(dead).toBeGreaterThan(-1);
    expect(commands.slice(dead, live).filter(({ source }) => source !== 'lua')).toEqual([]);
    await locks.withLock('job', { wait: 10_000 }, () => undefined);
    const waited = performance.now() - startedAt;
    expect(waited).toBeGreaterThan(left - 50);
    expect(waited).toBeLessThan(left + SLACK_MS);
  });
});

describe('app.close()', () => {
  test('leaves nothing open: the process ends by itself', async () => {
    const application = await startApplication({ hooks: false });
    application.begin('hold', 'job');
    application.begin('run', 'job', { wait: 60_000 });
    application.begin('run', 'report', { minHold: 60_000 });
    await application.until('held');
    await application.until('ended', 'report');
    expect(await application.request('customer', 10)).toBe(200);
    application.begin('close');
    expect((await application.until('closed')).tookMs).toBeLessThan(SLACK_MS);
    const closedAt = performance.now();
    expect(await application.end()).toBe(0);
    expect(performance.now() - closedAt).toBeLessThan(SLACK_MS);
    expect(application.notices).toContainEqual({ event: 'rejected', key: 'job', code: 'LOCK_NOT_ACQUIRED', reason: 'shutdown' });
  });

  test.each([
    ['killed', () => server.kill()],
    ['blackholed', () => (proxy.mode = 'blackhole')],
    ['stopped', () => server.pause()],
  ])('does not wait for a server that is %s, whatever is held, kept and waited for, and the process ends by itself', async (_, away) => {
    const application = await startApplication({ hooks: false }, proxy.url);
    const held = await locks.acquire('taken');
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
    expect((await application.until('closed')).tookMs).toBeLessThan(2_000 + SLACK_MS);
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
    server.resume();
    void held;
  });

  test("of one of two applications in a process leaves the other's locks, waiters and subscription alone", async () => {
    const client = new Redis(server.port);
    const open = async (): Promise<{ locks: LockService; close: () => Promise<void> }> => {
      const imports = [LockModule.forRoot({ store: new RedisLockStore(client) })];
      const module = await Test.createTestingModule({ imports }).compile();
      return { locks: module.get(LockService), close: () => module.close() };
    };
    const [first, second] = [await open(), await open()];
    const held = await second.locks.acquire('second', { ttl: 5_000 });
    const inFirst = await first.locks.acquire('first');
    const waiting = second.locks.withLock('first', { wait: 10_000 }, () => performance.now());
    await sleep(100);
    const closedAt = performance.now();
    await first.close();
    expect(inFirst.signal.reason).toMatchObject({ reason: 'shutdown' });
    expect((await waiting) - closedAt).toBeLessThan(SLACK_MS);
    const leftMs = (): Promise<number> => client.pttl('lock:lock:{second}');
    const before = await leftMs();
    await until('another renewal', async () => (await leftMs()) > before);
    expect(held.isHeld()).toBe(true);
    expect(await second.locks.operations.inspect('second')).toMatchObject({ fence: held.fence });
    expect(await client.ping()).toBe('PONG');
    await held.release();
    await second.close();
    client.disconnect();
  });
});
