import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { RedisLockStore } from 'nestjs-distributed-lock';
import { startLaterProcess, type LaterProcess } from '../support/later-process';
import { RedisServer } from '../support/redis-server';
import { openPage, startBrowser } from './support/browser';
import { startApplication, type PageApplication } from './support/page-application';

const PATIENCE_MS = 180_000;

/** Texts that each view shows of things that nobody knows yet. */
const SHOWN = {
  '#/now': ['later:held', 'bare:held'],
  '#/key/default/later%3Aheld': ['recycled: sunspots', 'evaporated: sunspots × 2', 'lost: eclipse'],
  '#/key/default/bare%3Aheld': ['Holds by process'],
  '#/hot': ['later:<id>'],
  '#/waits': ['Later.run'],
  '#/incidents': ['evaporated: sunspots × 2', 'lost: eclipse', 'deadlock', 'not said'],
  '#/processes': ['frostbitten · thawing · membersAway · constructor', '9.0.0', 'not said · 0'],
} as const;

const NOTICES = ['“thawing”', '“constructor”', 'server 1 (sleepy) of 2', '“not said”'];

let server: RedisServer;
let later: LaterProcess;
let running: PageApplication;
let browser: Browser;

beforeAll(async () => {
  server = await RedisServer.start();
  later = await startLaterProcess(server.url);
  running = await startApplication({ store: new RedisLockStore(server.url), page: { actions: () => true } });
  browser = await startBrowser();
}, PATIENCE_MS);
afterAll(async () => {
  await browser.close();
  await running.app.close();
  await later.stop();
  await server.stop();
}, PATIENCE_MS);

const alerts = (page: Page) => page.getByText('cannot be shown');

test(
  'each view shows the words of a process of a later version as they are, and what it does not say, and none is blank',
  async () => {
    const { page, complaints } = await openPage(browser, `${running.url}/locks`);
    await later.sendOthers();
    for (const [view, words] of Object.entries(SHOWN)) {
      await page.goto(`${running.url}/locks${view}`);
      for (const word of words) {
        await page.locator('main').getByText(word).first().waitFor();
      }
      for (const notice of NOTICES) {
        await page.locator('.notice').filter({ hasText: notice }).waitFor();
      }
      expect(await page.locator('.status').textContent()).toContain('degraded');
      expect(await alerts(page).count()).toBe(0);
    }
    expect(complaints).toEqual([]);
    await page.context().close();
  },
  PATIENCE_MS,
);

/** A server of another version may send these: unknown messages, without fields that are read, and with others. */
const MESSAGES: readonly unknown[] = [
  'no JSON {',
  { kind: 'song' },
  { kind: 'page', actions: true, mood: 'calm' },
  { kind: 'survey', version: 1, clock: 5, stores: [{ store: 'default' }] },
  {
    kind: 'survey',
    version: 1,
    clock: 5,
    stores: [
      {
        store: 'default',
        processes: [{ id: 'a', health: { status: 7 } }, null, 'b'],
        held: [{ key: 'later:held', holds: null }, 7],
        waiting: [{ key: 'later:held' }],
        ended: [{}],
        incidents: [{ type: 'evaporated' }, { key: 5 }],
        orphans: 'none',
        silent: 3,
      },
    ],
  },
  {
    kind: 'changes',
    version: 2,
    clock: 9,
    stores: [
      { store: 'default', processes: [{ id: 'a', health: {} }], held: { added: [{ key: 'later:added' }] }, waiting: {}, ended: 'none' },
    ],
  },
];

test(
  'a server of another version leaves no view blank',
  async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    const body = MESSAGES.map((message) => `data: ${typeof message === 'string' ? message : JSON.stringify(message)}\n\n`).join('');
    await page.route('**/locks/events', (route) => route.fulfill({ contentType: 'text/event-stream', body }));
    for (const view of Object.keys(SHOWN)) {
      await page.goto(`${running.url}/locks${view}`);
      await page.locator('main section, main .tiles, main .title, main .empty').first().waitFor();
      await page.locator('.notice').filter({ hasText: '“not said”' }).waitFor();
      // Nobody says since when: "for 0 ms" would be the age of what was read.
      expect(
        await page
          .locator('.notice')
          .filter({ hasText: /for \d+ ms/ })
          .count(),
      ).toBe(0);
      expect(await alerts(page).count()).toBe(0);
    }
    await page.goto(`${running.url}/locks#/now`);
    await page.getByRole('link', { name: 'later:added' }).waitFor();
    expect(errors).toEqual([]);
    await context.close();
  },
  PATIENCE_MS,
);

test(
  'a view that cannot be shown says so, and leaves the others alone',
  async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    // Nothing that the page reads of a holder is checked so far that it could not be an object.
    const held = [{ key: 'k', fence: 1, site: 'Later.run', description: { not: 'a text' } }];
    const survey = { kind: 'survey', version: 1, clock: 5, stores: [{ store: 'default', held }] };
    await page.route('**/locks/events', (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: `data: ${JSON.stringify(survey)}\n\n` }),
    );
    await page.goto(`${running.url}/locks`);
    await page.getByText('This view cannot be shown.').waitFor();
    await page.getByRole('link', { name: 'Hot' }).click();
    await page.getByRole('heading', { name: 'Hot names' }).waitFor();
    expect(await alerts(page).count()).toBe(0);
    await context.close();
  },
  PATIENCE_MS,
);
