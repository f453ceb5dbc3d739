import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { RedisLockStore, type Lock } from 'nestjs-distributed-lock';
import { newHold } from '../support/new-hold';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { openPage, startBrowser, type WatchedPage } from './support/browser';
import { DoorGuard, startApplication, type PageApplication } from './support/page-application';

/** A busy machine is slow to start a browser. */
const PATIENCE_MS = 120_000;

const MARKUP = '<img src=x onerror="document.title=1">';

describe('with a lock on a real server', () => {
  let server: RedisServer;
  let running: PageApplication;
  let browser: Browser;
  let opened: WatchedPage;
  let page: Page;
  const held: Lock[] = [];

  beforeAll(async () => {
    server = await RedisServer.start();
    running = await startApplication({
      store: new RedisLockStore(server.url),
      page: { guards: [DoorGuard], actions: () => 'ada' },
    });
    browser = await startBrowser();
    opened = await openPage(browser, `${running.url}/locks`, { extraHTTPHeaders: { authorization: 'let-me-in' } });
    page = opened.page;
  }, PATIENCE_MS);
  afterEach(async () => {
    await Promise.all(held.splice(0).map((lock) => lock.release().catch(() => undefined)));
  });
  afterAll(async () => {
    await browser.close();
    await running.app.close();
    await server.stop();
  }, PATIENCE_MS);

  async function hold(key: string): Promise<Lock> {
    const lock = await running.locks.acquire(key, { by: 'TransferService.run', ttl: '60s' });
    held.push(lock);
    return lock;
  }

  const row = (key: string) => page.locator('tbody tr').filter({ hasText: key });

  test(
    'shows a lock as it is taken, waited for and released, and finds it by its holder',
    async () => {
      await page.getByText('Nothing is locked').waitFor();
      const lock = await hold('balance:42');
      await hold('invoice:7');
      const waiting = running.locks.withLock('balance:42', { wait: '60s', by: 'RefundService.refund' }, () => undefined);
      await row('balance:42').getByText('TransferService.run').first().waitFor();
      await row('balance:42').getByText(String(lock.fence)).waitFor();
      await row('balance:42').locator('.queue').waitFor();
      await page.getByRole('searchbox').fill('balance');
      await row('invoice:7').waitFor({ state: 'detached' });
      await page.getByRole('searchbox').fill('no such lock');
      await page.getByText('No lock matches').waitFor();
      await page.getByRole('searchbox').fill('');
      await lock.release();
      await waiting;
      await row('balance:42').waitFor({ state: 'detached' });
    },
    PATIENCE_MS,
  );

  test(
    'shows how many share a key, and that a release by force takes all of them out',
    async () => {
      const permits = await Promise.all([1, 2].map(() => running.locks.acquirePermit('erp', 3, { by: 'Erp.sync' })));
      await row('erp').getByText('2 of 3 permits').waitFor();
      await page.getByRole('button', { name: 'Release erp by force' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('All that share it are taken out.').waitFor();
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await Promise.all(permits.map((permit) => permit.release()));
      await row('erp').waitFor({ state: 'detached' });
    },
    PATIENCE_MS,
  );

  test(
    'releases by force once the key is typed, and never a later holder',
    async () => {
      const first = await hold('balance:42');
      await page.getByRole('button', { name: 'Release balance:42 by force' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Its code runs on until it hears of it.').waitFor();
      await dialog.getByText(String(first.fence)).waitFor();
      const confirm = dialog.getByRole('button', { name: 'Release', exact: true });
      expect(await confirm.isDisabled()).toBe(true);
      // Meanwhile another call gets the lock.
      await first.release();
      const later = await hold('balance:42');
      await dialog.getByLabel('Type the key').fill('balance:42');
      expect(await confirm.isDisabled()).toBe(true);
      await dialog.getByLabel('Why?').fill('Its process hangs.');
      await confirm.click();
      await dialog.getByText('another call has the lock now').waitFor();
      expect(later.isHeld()).toBe(true);
      await dialog.getByRole('button', { name: 'Close' }).click();

      let isTold = false;
      // The notice of a forced release is a message, which a connection that breaks meanwhile does not get.
      for (let tries = 1; !isTold && tries <= 3; tries++) {
        const victim = tries === 1 ? later : await hold('balance:42');
        await row('balance:42').getByText(String(victim.fence)).waitFor();
        await page.getByRole('button', { name: 'Release balance:42 by force' }).click();
        await dialog.getByLabel('Type the key').fill('balance:42');
        await dialog.getByLabel('Why?').fill('Its process hangs.');
        await confirm.click();
        await dialog.getByText('Released.').waitFor();
        await until('the holder is told', () => !victim.isHeld());
        await dialog.getByRole('button', { name: 'Close' }).click();
        await row('balance:42').waitFor({ state: 'detached' });
        await page.goto(`${running.url}/locks#/key/default/balance%3A42`);
        const lost = page.getByRole('row').filter({ hasText: 'lost: forced' }).locator('td');
        const told = lost.getByText(/^It had been held for .*\. Released by ada \(page\), from .* · \d+: Its process hangs\.$/);
        isTold = await told.waitFor({ timeout: 15_000 }).then(
          () => true,
          () => false,
        );
        await page.goto(`${running.url}/locks#/now`);
      }
      expect(isTold).toBe(true);
    },
    PATIENCE_MS,
  );

  test(
    'the view of a key, and the dialog, say in words who holds it, since when, and who is next',
    async () => {
      const lock = await hold('balance:42');
      const waiting = ['First.run', 'Second.run'].map((by) => running.locks.withLock('balance:42', { wait: '10m', by }, () => undefined));
      const other = new RedisLockStore(server.url);
      await other.open({ prefix: 'lock', warn: () => undefined });
      await other.acquire(newHold('balance:42', { ttlMs: 60_000 }), { name: 'other' });
      await page.goto(`${running.url}/locks#/key/default/balance%3A42`);
      const facts = page.locator('main .facts');
      await facts.getByText('TransferService.run on').waitFor();
      await facts.getByText(String(lock.fence)).waitFor();
      await facts.getByText('2 calls').waitFor();
      await facts.locator('.queue-order li').filter({ hasText: 'next' }).getByText(`· ${process.pid}`).waitFor();
      expect(await facts.locator('time').getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC[+−]\d\d:\d\d$/);
      await page.getByRole('button', { name: 'Release by force …' }).click();
      await page.getByRole('dialog').getByText('2 calls would go on').waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await other.turns.leave('balance:42', 'other');
      await other.close();
      await lock.release();
      await Promise.all(waiting);
      await facts.getByText('nobody').first().waitFor();
    },
    PATIENCE_MS,
  );

  test(
    'a lock that somebody waits for and no process answers for is looked up without a click, and comes first',
    async () => {
      const store = new RedisLockStore(server.url);
      await store.open({ prefix: 'lock', warn: () => undefined });
      const { fence } = await store.acquire(newHold('crashed', { ttlMs: 600_000 }));
      await hold('aaa');
      const end = new AbortController();
      const waiting = running.locks.withLock('crashed', { wait: '10m', signal: end.signal }, () => undefined).catch(() => undefined);
      await page.goto(`${running.url}/locks#/now`);
      await row('crashed')
        .locator('td')
        .getByText(/does not answer, free in/)
        .waitFor();
      await row('crashed').getByText(String(fence)).waitFor();
      expect(await page.locator('tbody tr').first().textContent()).toContain('crashed');
      await page.getByRole('button', { name: 'Waited for' }).click();
      await row('aaa').waitFor({ state: 'detached' });
      await row('crashed').waitFor();
      await page.getByRole('button', { name: 'Waited for' }).click();
      await row('aaa').waitFor();
      end.abort();
      await waiting;
      await store.operator.forceRelease('crashed', fence as number);
      await store.close();
    },
    PATIENCE_MS,
  );

  test(
    'what cannot be seen of a key is shown escaped, and a release is confirmed by what is shown',
    async () => {
      const key = 'a\nb\u202ec\u200bd\u00a0e';
      const shown = String.raw`a\u000ab\u202ec\u200bd\u00a0e`;
      const lock = await hold(key);
      await page.getByRole('link', { name: shown }).click();
      await page.getByRole('heading', { name: shown }).waitFor();
      await until('its title', async () => (await page.title()) === `${shown} · Locks`);
      await page.getByRole('button', { name: 'Release by force …' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Type the key').fill(shown);
      await dialog.getByLabel('Why?').fill('A test.');
      await dialog.getByRole('button', { name: 'Release', exact: true }).click();
      await dialog.getByText('Released.').waitFor();
      await until('the holder is told', () => !lock.isHeld());
      await dialog.getByRole('button', { name: 'Close' }).click();
      await page.goto(`${running.url}/locks#/now`);
    },
    PATIENCE_MS,
  );

  test(
    'shows markup in a key as text',
    async () => {
      await hold(MARKUP);
      await row(MARKUP).waitFor();
      await page.getByRole('link', { name: MARKUP }).click();
      await page.getByRole('heading', { name: MARKUP }).waitFor();
      expect(await page.locator('img').count()).toBe(0);
      await until('its title', async () => (await page.title()) === `${MARKUP} · Locks`);
      await page.getByRole('link', { name: 'Now' }).first().click();
    },
    PATIENCE_MS,
  );

  test('the browser complains of nothing', () => {
    expect(opened.complaints).toEqual([]);
  });

  test(
    'a stream that breaks is said, and a session that has expired',
    async () => {
      await page.getByText('Live', { exact: true }).waitFor();
      DoorGuard.isOpen = false;
      // Streams end from time to time, so that the guard sees the browser again.
      running.app.getHttpServer().closeAllConnections();
      await page.getByText('Your session has expired.').waitFor();
      DoorGuard.isOpen = true;
      await page.getByRole('button', { name: 'Reload' }).click();
      await page.getByText('Live', { exact: true }).waitFor();
    },
    PATIENCE_MS,
  );
});
