import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

/** Its processes are many, and each may be slow. */
const START_MS = 100_000;

export async function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    timeout: START_MS,
  });
}

/** A page of the browser, with what it complained of. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors, also those of the console: of a script, of a request, or of the Content-Security-Policy. */
  readonly complaints: readonly string[];
}

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') {
      complaints.push(`${message.text()} ${message.location().url}`);
    }
  });
  await page.goto(url);
  return { page, complaints };
}
