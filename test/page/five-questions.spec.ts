import { expect } from '@jest/globals';
import type { Browser, Locator, Page } from 'playwright-core';
import { hostname } from 'node:os';
import { RedisLockStore } from 'nestjs-distributed-lock';
import { RedisServer } from '../support/redis-server';
import { openPage, startBrowser } from './support/browser';
import { startApplication, type PageApplication } from './support/page-application';
import { ShopWorker } from './support/shop-worker';

/** A busy machine is slow to start a browser, and each process. */
const PATIENCE_MS = 180_000;
const MOST_CLICKS = 2;
/** Clocks of one machine, of which each process reads its own a moment later, and one may stall meanwhile. */
const TOLERANCE_MS = 20_000;

let server: RedisServer;
let running: PageApplication;
let browser: Browser;
let transfer: ShopWorker;
let refund: ShopWorker;
const workers: ShopWorker[] = [];

function start(...[work, id]: ['transfer' | 'refund' | 'report', string]): ShopWorker {
  const worker = new ShopWorker(server.url, work, id);
  workers.push(worker);
  return worker;
}

beforeAll(async () => {
  server = await RedisServer.start();
  running = await startApplication({ store: new RedisLockStore(server.url), page: { actions: () => 'ada' } });
  transfer = start('transfer', '42');
  await transfer.until('held');
  refund = start('refund', '42');
  const report = start('report', 'daily');
  await Promise.all([refund.until('calls'), report.until('ended')]);
  // Somebody has released a lock by force before.
  const hanging = await running.locks.acquire('import:acme', { ttl: '2m', by: 'CatalogImport.run' });
  await running.locks.operations.forceRelease('import:acme', { fence: hanging.fence, by: 'grace', reason: 'The import hangs.' });
  browser = await startBrowser();
}, PATIENCE_MS);
afterAll(async () => {
  await browser.close();
  await Promise.all(workers.map((worker) => worker.stop()));
  await running.app.close();
  await server.stop();
}, PATIENCE_MS);

/** Somebody who has just opened the page, and counts each click. Typing is none. */
class Reader {
  readonly page: Page;
  clicks = 0;

  constructor(page: Page) {
    this.page = page;
  }

  async click(what: Locator): Promise<void> {
    this.clicks++;
    await what.click();
  }
}

/** Asks a question at the first view, and closes the page when it is answered. */
function question(name: string, answer: (reader: Reader) => Promise<void>): void {
  test(
    `${name} is answered within ${MOST_CLICKS} clicks`,
    async () => {
      const { page, complaints } = await openPage(browser, `${running.url}/locks`);
      await page.getByText('Live', { exact: true }).waitFor();
      const reader = new Reader(page);
      await answer(reader);
      expect(reader.clicks).toBeLessThanOrEqual(MOST_CLICKS);
      expect(complaints).toEqual([]);
      await page.context().close();
    },
    PATIENCE_MS,
  );
}

const on = (worker: ShopWorker): string => `${hostname()} · ${worker.child.pid}`;

/** Waits for the text where it can be seen. */
async function reads(place: Locator, ...texts: (string | RegExp)[]): Promise<void> {
  for (const text of texts) {
    await place.getByText(text).filter({ visible: true }).first().waitFor();
  }
}

/** A moment that is shown, in milliseconds. */
async function shownMoment(place: Locator): Promise<number> {
  return Date.parse((await place.locator('time').first().getAttribute('datetime')) as string);
}

/** Who is said to hold a lock or to wait for it, and for which request. */
async function readsCall(place: Locator, site: string, worker: ShopWorker): Promise<void> {
  await reads(place, site, on(worker), `request=${worker.child.pid}`);
}

question('who blocks whom', async (reader) => {
  await reader.click(reader.page.getByRole('link', { name: 'Waits', exact: true }));
  const lock = reader.page.locator('.waited').filter({ hasText: 'balance:42' });
  await readsCall(lock.locator('.waited-lock'), 'TransferService.run', transfer);
  await readsCall(lock.locator('.waiter'), 'RefundService.refund', refund);
});

question('since when', async (reader) => {
  const { page } = reader;
  await reader.click(page.getByRole('link', { name: 'balance:42' }));
  const facts = page.locator('main .facts');
  await reads(facts, 'Held since', /^\((\d.*) (ms|s)\)$/);
  const heldAt = (await transfer.until('held')).at as number;
  expect(Math.abs((await shownMoment(facts)) - heldAt)).toBeLessThan(TOLERANCE_MS);
  const waiting = page.getByRole('region', { name: 'Waiting calls' }).getByRole('row').filter({ hasText: 'RefundService.refund' });
  await reads(waiting.locator('td.number').first(), /^\d.* (ms|s)$/);
});

question('which request', async (reader) => {
  const { page } = reader;
  await readsCall(page.locator('tbody tr').filter({ hasText: 'balance:42' }), 'TransferService.run', transfer);
  await reader.click(page.getByRole('link', { name: 'balance:42' }));
  await readsCall(page.locator('main .facts'), 'TransferService.run', transfer);
  const waiting = page.getByRole('region', { name: 'Waiting calls' }).getByRole('row').filter({ hasText: 'RefundService.refund' });
  await readsCall(waiting, 'RefundService.refund', refund);
});

question('how to release safely', async (reader) => {
  const { page } = reader;
  await reader.click(page.getByRole('button', { name: 'Release balance:42 by force' }));
  const dialog = page.getByRole('dialog');
  await readsCall(dialog.locator('.facts'), 'TransferService.run', transfer);
  await reads(dialog, 'Its code runs on until it hears of it.', /1 call would go on/);
  await dialog.getByLabel('Why?').fill('The transfer hangs.');
  await dialog.getByLabel('Type the key').fill('balance:42');
  await reader.click(dialog.getByRole('button', { name: 'Release', exact: true }));
  await reads(dialog, 'Released.');
  expect((await transfer.until('ended')).reason).toBe('forced');
  await refund.until('held');
});

question('what happened in the last hour', async (reader) => {
  const { page } = reader;
  await reader.click(page.getByRole('link', { name: /^Incidents/ }));
  const row = (what: string, key: string): Locator => page.getByRole('row').filter({ hasText: what }).filter({ hasText: key });
  await reads(row('lost: expired', 'report:daily'), 'ReportJob.build', /^It had been held for/);
  await reads(row('released by force', 'import:acme'), /^Released by grace, from .*: The import hangs\.$/);
  await reads(row('released by force', 'balance:42'), /^Released by ada \(page\), from .*: The transfer hangs\.$/);
  await readsCall(row('lost: forced', 'balance:42'), 'TransferService.run', transfer);
  const at = await shownMoment(row('lost: forced', 'balance:42'));
  expect(Math.abs(Date.now() - at)).toBeLessThan(3_600_000);
});
