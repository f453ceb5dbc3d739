// Makes the pictures of docs/operations: node --import ./test/support/typescript.mjs test/page/screenshots.ts
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { openPage, startBrowser } from './support/browser';
import { startApplication } from './support/page-application';
import { surveyOfShop } from './support/survey-of-shop';

const FOLDER = process.argv[2] ?? 'docs/operations';

const VIEWS = {
  now: '#/now',
  key: '#/key/default/balance%3A42',
  hot: '#/hot',
  waits: '#/waits',
  processes: '#/processes',
} as const;

async function shoot(page: Page, name: string): Promise<void> {
  await page.locator('.status.live').waitFor();
  await page.locator('main table, main .forest').first().waitFor();
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(FOLDER, `page-${name}.png`) });
}

const { app, locks, url } = await startApplication({ page: { actions: () => true } });
Object.assign(locks, { survey: async () => surveyOfShop() });
const browser = await startBrowser();
for (const colorScheme of ['light', 'dark'] as const) {
  const { page } = await openPage(browser, `${url}/locks`, { colorScheme, viewport: { width: 1180, height: 760 } });
  for (const [name, hash] of Object.entries(VIEWS)) {
    await page.goto(`${url}/locks${hash}`);
    await shoot(page, `${name}-${colorScheme}`);
  }
}
const { page } = await openPage(browser, `${url}/locks`, { viewport: { width: 360, height: 720 } });
await shoot(page, 'narrow');
await browser.close();
await app.close();
