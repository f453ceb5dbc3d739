import { expect } from '@jest/globals';
import { VersioningType, type INestApplication } from '@nestjs/common';
import helmet from 'helmet';
import type { Browser } from 'playwright-core';
import { openPage, startBrowser } from './support/browser';
import { startApplication, type PageSettings } from './support/page-application';
import { startStrippingProxy } from './support/stripping-proxy';

const PATIENCE_MS = 120_000;

const prefixed = (app: INestApplication): void => {
  app.setGlobalPrefix('api/v2');
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
};

let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
}, PATIENCE_MS);
afterAll(() => browser.close());

test.each<[string, PageSettings, string, string]>([
  ['on Express', {}, '', '/locks'],
  ['on Fastify', { platform: 'fastify' }, '', '/locks'],
  ['under helmet on Express', { prepare: (app) => app.use(helmet()) }, '', '/locks'],
  ['under helmet on Fastify', { platform: 'fastify', prepare: (app) => app.use(helmet()) }, '', '/locks'],
  ['with a path, a global prefix and versions', { page: { path: 'ops/locks' }, prepare: prefixed }, '', '/api/v2/ops/locks'],
  ['the same on Fastify', { platform: 'fastify', page: { path: 'ops/locks' }, prepare: prefixed }, '', '/api/v2/ops/locks'],
  ['behind a proxy that strips a prefix', {}, '/tools/shop', '/locks'],
  ['behind that proxy on Fastify', { platform: 'fastify' }, '/tools/shop', '/locks'],
  ['with a slash at the end', {}, '/tools/shop', '/locks/'],
  ['with a slash at the end on Fastify', { platform: 'fastify' }, '/tools/shop', '/locks/'],
])(
  'the page works %s',
  async (_where, settings, stripped, path) => {
    const running = await startApplication(settings);
    const proxy = await startStrippingProxy(running.url, stripped);
    const lock = await running.locks.acquire('balance:42');
    const { page, complaints } = await openPage(browser, `${proxy.url}${path}`);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'balance:42' }).click();
    await page.getByRole('heading', { name: 'balance:42' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'balance:42' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
    await lock.release();
    proxy.server.closeAllConnections();
    proxy.server.close();
    await running.app.close();
  },
  PATIENCE_MS,
);

test(
  'hidden keys are shown as hashes in each view, and a lock is released without its key',
  async () => {
    const running = await startApplication({ page: { hideKeys: true, actions: () => true } });
    const lock = await running.locks.acquire('balance:4711');
    const { page, complaints } = await openPage(browser, `${running.url}/locks`);
    const link = page.getByRole('link', { name: /^#[0-9a-f]{12}$/ });
    const shown = (await link.textContent()) as string;
    await link.click();
    await page.getByRole('heading', { name: shown }).waitFor();
    await page.locator('main .facts').getByText(String(lock.fence)).waitFor();
    await page.getByRole('button', { name: 'Release by force …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Type the key').fill(shown);
    await dialog.getByLabel('Why?').fill('A test.');
    await dialog.getByRole('button', { name: 'Release', exact: true }).click();
    await dialog.getByText('Released.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('row').filter({ hasText: 'lost: forced' }).getByRole('link', { name: shown }).waitFor();
    expect(await page.content()).not.toContain('4711');
    expect(complaints).toEqual([]);
    await page.context().close();
    await running.app.close();
  },
  PATIENCE_MS,
);
