import { expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { Survey } from '../../lib/operate/peers/survey';
import { openPage, startBrowser } from './support/browser';
import { startApplication, type PageApplication } from './support/page-application';
import { describedShop, TRACE } from './support/described-shop';

const PATIENCE_MS = 180_000;
const WIDTHS = [1_280, 1_024, 900, 768, 390] as const;

/** Each view, and the columns that a wide screen shows of its tables. */
const VIEWS = {
  '#/now': ['Key', 'Holder', 'Held', 'Lease left', 'Waiting', 'Fence', 'Action'],
  '#/key/default/balance%3A42': ['Call', 'Process', 'Waits', 'Gives up in', 'Holds meanwhile', 'Ended', 'Outcome', 'Fence'],
  '#/hot': ['Name', 'Lost'],
  '#/waits': [],
  '#/incidents': ['When', 'What', 'Key', 'Call', 'Process', 'More'],
  '#/processes': ['Process', 'Says of the store', 'Version'],
} as const;

/**
 * The parts of a view that are cut, or lie outside of their table or of the screen. An id that is shortened has its
 * whole in its title.
 */
const OUTSIDE = `[...document.querySelectorAll('main *')].filter((part) => {
  const box = (part.closest('.table-box') ?? document.documentElement).getBoundingClientRect();
  const { left, right, width } = part.getBoundingClientRect();
  const isShown = width > 1 && !part.closest('svg, .id');
  const isCut = getComputedStyle(part).overflowX !== 'visible' && part.scrollWidth > part.clientWidth + 1;
  return isShown && (left < box.left - 1 || right > box.right + 1 || isCut);
}).map((part) => part.localName + '.' + part.className + ' ' + part.textContent.slice(0, 60))`;

let browser: Browser;
let running: PageApplication;
let survey: () => Survey;

beforeAll(async () => {
  running = await startApplication({ page: { actions: () => true, traceUrl: 'https://traces.example/trace/{trace}' } });
  Object.assign(running.locks.operations, { survey: async () => survey() });
  browser = await startBrowser();
}, PATIENCE_MS);
beforeEach(() => (survey = describedShop));
afterAll(async () => {
  await browser.close();
  await running.app.close();
});

const open = async (view: string): Promise<Page> => {
  const { page } = await openPage(browser, `${running.url}/locks${view}`);
  await page.locator('main :is(table, .forest)').first().waitFor();
  return page;
};

test.each(Object.entries(VIEWS))(
  'with a trace, a span and two fields, all of the view %s lies inside its tables at every width, and nothing is cut',
  async (view, columns) => {
    const page = await open(view);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      expect({ width, outside: await page.evaluate(OUTSIDE) }).toEqual({ width, outside: [] });
    }
    await page.setViewportSize({ width: 1_280, height: 800 });
    for (const column of columns) {
      expect(await page.getByRole('columnheader', { name: column }).first().isVisible()).toBe(true);
    }
    await page.context().close();
  },
  PATIENCE_MS,
);

test.each(WIDTHS.filter((width) => width >= 900))(
  'the button that releases a lock is seen at a width of %d',
  async (width) => {
    const page = await open('#/now');
    await page.setViewportSize({ width, height: 800 });
    const box = await page.getByRole('button', { name: 'Release balance:42 by force' }).boundingBox();
    expect(box?.x).toBeGreaterThan(0);
    expect((box?.x ?? Infinity) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
    await page.context().close();
  },
  PATIENCE_MS,
);

test(
  'a trace is shortened, leads to where traces are shown, and is copied whole',
  async () => {
    const page = await open('#/now');
    const row = page.getByRole('row').filter({ hasText: 'balance:42' });
    const link = row.locator(`td a[title="${TRACE}"]`).first();
    expect(await link.getAttribute('href')).toBe(`https://traces.example/trace/${TRACE}`);
    expect((await link.boundingBox())?.width).toBeLessThan(100);
    const copied = await page.evaluate(`getSelection().selectAllChildren(document.querySelector('td a.id')), String(getSelection())`);
    expect(copied).toBe(TRACE);
    await page.context().close();
  },
  PATIENCE_MS,
);

test(
  'a link that is followed before the page is ready leads to its view',
  async () => {
    const page = await browser.newPage();
    await page.addInitScript(`addEventListener('DOMContentLoaded', () => (location.hash = '#/key/default/balance%3A42'))`);
    await page.goto(`${running.url}/locks`);
    await page.getByRole('heading', { name: 'Holds by process' }).waitFor();
    await page.context().close();
  },
  PATIENCE_MS,
);

test.each(['#/waits', '#/key/default/balance%3A42'])(
  'the view %s says of each call that waits that it waits for the store, where that grants nothing',
  async (view) => {
    survey = () => {
      const shop = describedShop();
      const health = { status: 'down', reasons: ['unreachable'], reachable: false, heldHere: 0, waitingHere: 1 } as const;
      return { ...shop, processes: shop.processes.map((process) => ({ ...process, health })) };
    };
    const page = await open(view);
    await page.getByText('waits for the store').nth(3).waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      expect({ width, outside: await page.evaluate(OUTSIDE) }).toEqual({ width, outside: [] });
    }
    await page.context().close();
  },
  PATIENCE_MS,
);
