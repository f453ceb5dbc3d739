import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { LockStore } from '../../lib/core/seam/lock-store';
import { PostgresLockStore } from '../../lib/postgres/index';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { openPage, startBrowser } from './support/browser';
import { startApplication, type PageApplication } from './support/page-application';

/** A busy machine is slow to start a browser, and a server that hangs is asked again and again. */
const PATIENCE_MS = 180_000;

/** The words of the page for each store while it is struck. */
const SAID = {
  default: 'does not answer',
  hanging: 'does not answer',
  replica: 'takes no writes: it is a replica, or read-only',
  full: 'has no memory left',
  lonely: 'has fewer replicas that confirm than it needs',
  deaf: 'delivers no messages',
  database: 'does not answer',
  readOnly: 'takes no writes: it is a replica, or read-only',
} as const;

const VIEWS = ['#/now', '#/hot', '#/waits', '#/incidents', '#/processes', '#/key/default/k'];

let browser: Browser;
let proxy: TcpProxy;
let running: PageApplication;
const ends: (() => Promise<unknown>)[] = [];
const strikes: (() => unknown)[] = [];
const mends: (() => unknown)[] = [];

/** A Redis server of its own, behind a proxy, with what strikes it and what mends it. */
async function redisBehind(strike: (server: RedisServer, way: TcpProxy) => unknown, mend: typeof strike): Promise<RedisLockStore> {
  const server = await RedisServer.start();
  const way = await TcpProxy.start(server.port);
  ends.push(() => Promise.all([way.stop(), server.stop()]));
  strikes.push(() => strike(server, way));
  mends.push(() => mend(server, way));
  return new RedisLockStore(way.url);
}

const passes = (_server: RedisServer, way: TcpProxy): unknown => (way.mode = 'pass');

async function withReplica(): Promise<RedisLockStore> {
  const server = await RedisServer.start();
  const replica = await RedisServer.startReplica(server.port);
  await server.replicasOnline(1);
  ends.push(() => Promise.all([replica.stop(), server.stop()]));
  strikes.push(() => replica.pause());
  mends.push(() => replica.resume());
  return new RedisLockStore(server.url, { minReplicas: 1 });
}

/** Two databases of one server, each a store. */
async function databases(): Promise<Record<'database' | 'readOnly', LockStore>> {
  const server = await PostgresServer.start();
  await server.query('CREATE DATABASE other');
  const way = await TcpProxy.start(server.port);
  ends.push(() => Promise.all([way.stop(), server.stop()]));
  const setReadOnly = async (value: 'on' | 'off'): Promise<void> => {
    await server.query(`ALTER DATABASE other SET default_transaction_read_only = ${value}`);
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'other'");
  };
  strikes.push(
    () => (way.mode = 'refuse'),
    () => setReadOnly('on'),
  );
  mends.push(
    () => (way.mode = 'pass'),
    () => setReadOnly('off'),
  );
  const database = new PostgresLockStore(server.pool({ connectionString: server.urlFor('postgres', way.port) }));
  const readOnly = new PostgresLockStore(server.pool({ connectionString: server.url.replace(/postgres$/, 'other') }));
  await Promise.all([database.ensureSchema(), readOnly.ensureSchema()]);
  return { database, readOnly };
}

beforeAll(async () => {
  const stores: Record<keyof typeof SAID, LockStore> = {
    default: await redisBehind((_server, way) => (way.mode = 'refuse'), passes),
    hanging: await redisBehind((_server, way) => (way.mode = 'blackhole'), passes),
    replica: await redisBehind(
      (server) => server.client.replicaof('127.0.0.1', 1),
      (server) => server.client.replicaof('NO', 'ONE'),
    ),
    full: await redisBehind(
      (server) => server.client.config('SET', 'maxmemory', 1),
      (server) => server.client.config('SET', 'maxmemory', 0),
    ),
    lonely: await withReplica(),
    deaf: await redisBehind((_server, way) => (way.mode = 'deafen'), passes),
    ...(await databases()),
  };
  running = await startApplication({ stores });
  const { port } = new URL(running.url);
  proxy = await TcpProxy.start(Number(port));
  browser = await startBrowser();
}, PATIENCE_MS);
afterAll(async () => {
  await browser.close();
  await running.app.close();
  await proxy.stop();
  await Promise.all(ends.map((end) => end()));
}, PATIENCE_MS);

const noticeOf = (page: Page, store: string) => page.locator('.notice').filter({ hasText: `The store “${store}” ` });

test(
  'every view says what is wrong with each store and since when, and that nothing is locked only where it is known',
  async () => {
    const { page } = await openPage(browser, `${running.url}/locks`);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Nothing is locked').waitFor();
    expect(await page.locator('.notice').count()).toBe(0);

    await Promise.all(strikes.map((strike) => strike()));
    for (const view of VIEWS) {
      await page.goto(`${running.url}/locks${view}`);
      for (const [store, said] of Object.entries(SAID)) {
        const notice = noticeOf(page, store).filter({ hasText: said });
        await notice.getByText(/for \d/).waitFor();
      }
      await page.locator('.status.down').getByText('Store down').waitFor();
    }
    await page.goto(`${running.url}/locks#/now`);
    await page.getByText('Not known', { exact: true }).waitFor();
    expect(await page.getByText('Nothing is locked').count()).toBe(0);

    await Promise.all(mends.map((mend) => mend()));
    await page.getByText('Live', { exact: true }).waitFor({ timeout: 90_000 });
    await page.getByText('Nothing is locked').waitFor();
    expect(await page.locator('.notice').count()).toBe(0);
    await page.context().close();
  },
  PATIENCE_MS,
);

test(
  'an application that stands still sends no news, and is not called live',
  async () => {
    const { page } = await openPage(browser, `${proxy.url.replace('redis:', 'http:')}/locks`);
    await page.getByText('Live', { exact: true }).waitFor();
    proxy.mode = 'blackhole';
    await page.getByText('The application sends no news.').waitFor();
    await page.locator('.status.stale').getByText('No news').waitFor();
    proxy.mode = 'pass';
    await page.getByText('Live', { exact: true }).waitFor();
    await page.context().close();
  },
  PATIENCE_MS,
);

test(
  'the title names the view, so that tabs can be told apart',
  async () => {
    const { page } = await openPage(browser, `${running.url}/locks#/waits`);
    await page.locator('.status').waitFor();
    await until('its title', async () => (await page.title()) === 'Waits · Locks');
    await page.goto(`${running.url}/locks#/key/default/balance%3A42`);
    await page.getByRole('heading', { name: 'balance:42' }).waitFor();
    await until('the title of the key', async () => (await page.title()) === 'balance:42 · Locks');
    await page.context().close();
  },
  PATIENCE_MS,
);
