// Makes the pictures of docs/operations: node --import ./test/support/typescript.mjs test/page/screenshots.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { openPage, startBrowser } from './support/browser';
import { startApplication } from './support/page-application';
import { surveyOfShop } from './support/survey-of-shop';

const FOLDER = process.argv[2] ?? 'docs/operations';

/** Few: the package has them. */
const PICTURES = [
  ['now', '#/now', 'light'],
  ['key', '#/key/default/balance%3A42', 'dark'],
] as const;

async function shoot(page: Page, name: string): Promise<void> {
  await page.locator('.status.live').waitFor();
  await page.locator('main table, main .forest').first().waitFor();
  await page.waitForTimeout(300);
  // A quarter of what the same picture has as PNG. page.screenshot() makes no other format that is sharp.
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 8 });
  writeFileSync(join(FOLDER, `page-${name}.webp`), data, 'base64');
}

const { app, locks, url } = await startApplication({ page: { actions: () => true } });
const whole = surveyOfShop();
const processes = whole.processes.filter(({ health }) => health?.status === 'up');
Object.assign(locks.operations, { survey: async () => ({ ...whole, processes, silent: [] }) });
const browser = await startBrowser();
for (const [name, hash, colorScheme] of PICTURES) {
  const { page } = await openPage(browser, `${url}/locks`, { colorScheme, viewport: { width: 1180, height: 700 } });
  await page.goto(`${url}/locks${hash}`);
  await shoot(page, `${name}-${colorScheme}`);
}
await browser.close();
await app.close();
