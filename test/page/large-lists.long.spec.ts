import { expect } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import type { Browser, Page } from 'playwright-core';
import { filter, type Observable } from 'rxjs';
import { Random } from '../support/random';
import { until } from '../support/until';
import { openPage, startBrowser } from './support/browser';
import { FleetOfLocks } from './support/fleet-of-locks';
import { startApplication, type PageApplication } from './support/page-application';

const PATIENCE_MS = 180_000;

const LOCKS = 10_000;
const FOLLOWING = 4;

/** The texts of the first surveys of a stream. */
async function surveysOf(url: string, count: number): Promise<string[]> {
  const end = new AbortController();
  const found: string[] = [];
  let text = '';
  const { body } = await fetch(`${url}/locks/events`, { signal: end.signal });
  for await (const part of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    const lines = `${text}${part}`.split('\n');
    text = lines.pop() as string;
    found.push(...lines.filter((line) => /^data: .*"clock":/.test(line)));
    if (found.length >= count) {
      break;
    }
  }
  end.abort();
  return found;
}

test(
  'of 10,000 locks of 50 processes, of which few change, a twentieth of the whole is sent each time',
  async () => {
    const { app, locks, url } = await startApplication();
    const fleet = new FleetOfLocks(new Random(1), 'default', { processes: 50, locks: LOCKS, waiting: LOCKS / 20 });
    const answer = async (): Promise<unknown> => {
      fleet.turnOver(LOCKS / 200, LOCKS / 400, Math.round(performance.now()));
      return fleet.answer(Math.round(performance.now()));
    };
    Object.assign(locks.operations, { survey: answer });
    const [whole = 0, ...changes] = (await surveysOf(url, 1 + FOLLOWING)).map((text) => Buffer.byteLength(text));
    process.stdout.write(`A survey of ${LOCKS} locks has ${whole} bytes; what followed had ${changes.join(', ')}.\n`);
    expect(changes.length).toBeGreaterThanOrEqual(FOLLOWING);
    // The 50 processes and their health are whole each time.
    const processesBytes = Buffer.byteLength(JSON.stringify(fleet.answer(0).processes));
    expect(Math.max(...changes) - processesBytes).toBeLessThan(whole / 20);
    await app.close();
  },
  PATIENCE_MS,
);

describe('in two browsers', () => {
  let running: PageApplication;
  let browser: Browser;
  /** Whether an interceptor of the application loses the changes that it should send. */
  let isLosing = false;
  let lost = 0;

  const losing = (app: INestApplication): void => {
    const passes = ({ data }: { readonly data?: unknown }): boolean => {
      const isLost = isLosing && String(data).includes('"changes"');
      lost += isLost ? 1 : 0;
      return !isLost;
    };
    app.useGlobalInterceptors({
      intercept: (_context, next): Observable<unknown> =>
        next.handle().pipe(filter((event) => passes((event ?? {}) as { data?: unknown }))),
    });
  };

  beforeAll(async () => {
    running = await startApplication({ prepare: losing });
    browser = await startBrowser();
  }, PATIENCE_MS);
  afterAll(async () => {
    await browser.close();
    await running.app.close();
  });

  async function open(): Promise<{ page: Page; streams: () => number }> {
    let streams = 0;
    const { page } = await openPage(browser, 'about:blank');
    page.on('request', (request) => (streams += request.url().endsWith('/events') ? 1 : 0));
    await page.goto(`${running.url}/locks`);
    await page.getByText('Live', { exact: true }).waitFor();
    return { page, streams: () => streams };
  }

  const row = (page: Page, key: string) => page.getByRole('link', { name: key, exact: true });

  test(
    'a browser that comes later, one whose stream has lost surveys, and one whose stream ended all show the same locks',
    async () => {
      const first = await running.locks.acquire('first', { ttl: '10m' });
      const one = await open();
      await row(one.page, 'first').waitFor();
      const second = await running.locks.acquire('second', { ttl: '10m' });
      await row(one.page, 'second').waitFor();
      const other = await open();
      await row(other.page, 'second').waitFor();

      isLosing = true;
      await first.release();
      const third = await running.locks.acquire('third', { ttl: '10m' });
      await until('both have lost changes', () => lost >= 2);
      isLosing = false;
      for (const { page } of [one, other]) {
        await row(page, 'third').waitFor();
        await row(page, 'first').waitFor({ state: 'detached' });
        await row(page, 'second').waitFor();
      }
      expect([one.streams(), other.streams()].every((streams) => streams > 1)).toBe(true);

      running.app.getHttpServer().closeAllConnections();
      await second.release();
      for (const { page } of [one, other]) {
        await row(page, 'second').waitFor({ state: 'detached' });
        await row(page, 'third').waitFor();
        await page.getByText('Live', { exact: true }).waitFor();
        await page.context().close();
      }
      await third.release();
    },
    PATIENCE_MS,
  );
});
