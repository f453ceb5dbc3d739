import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import request from 'supertest';
import { LockPage } from '../../console/page/lock-page';
import { until } from '../support/until';
import { PLATFORMS, startApplication } from './support/page-application';

/** A page that is open, over connections that are kept, as those of a browser are. */
class OpenPage {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #left = new AbortController();
  isLive = false;

  constructor(url: string) {
    this.#url = `${url}/locks`;
    void this.#follow();
    void this.#poll();
  }

  leave(): void {
    this.#left.abort();
    this.#agent.destroy();
  }

  /** As an EventSource does, it opens a stream again that has ended, but not one that was refused. */
  async #follow(): Promise<void> {
    for (let status = 200; status === 200 && !this.#left.signal.aborted; await sleep(300)) {
      status = await this.#get('/events');
    }
  }

  async #poll(): Promise<void> {
    for (; !this.#left.signal.aborted; await sleep(300)) {
      await this.#get('/survey');
    }
  }

  /** The status of an answer, when it was read to its end; 0 where there was none. */
  async #get(path: string): Promise<number> {
    try {
      const asked = get(this.#url + path, { agent: this.#agent, signal: this.#left.signal });
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      for await (const part of answer) {
        this.isLive ||= String(part).includes('"stores"');
      }
      return answer.statusCode ?? 0;
    } catch {
      return 0;
    }
  }
}

describe.each(Object.keys(PLATFORMS) as (keyof typeof PLATFORMS)[])('on %s', (platform) => {
  test('an application closes while a page is open, and releases its locks', async () => {
    const { app, locks, url } = await startApplication({ platform, forceCloseConnections: false });
    const lock = await locks.acquire('balance:42');
    const page = new OpenPage(url);
    try {
      await until('a survey', () => page.isLive);
      let isClosed = false;
      void app.close().then(() => (isClosed = true));
      await until('that the application has closed', () => isClosed, 30_000);
      expect(lock.isHeld()).toBe(false);
    } finally {
      page.leave();
    }
  });

  test('while an application closes, no answer keeps a connection, and no stream begins', async () => {
    const { app, url } = await startApplication({ platform });
    app.get(LockPage).onModuleDestroy();
    const answers = [
      '',
      '/app.js',
      '/survey',
      '/lock?store=default&key=a',
      '/lock?store=none&key=a',
      '/events',
      '/search?store=default',
    ].map(async (path) => {
      const { status, headers } = await request(url).get(`/locks${path}`).set('connection', 'keep-alive');
      return `${status} ${headers['connection']}`;
    });
    expect(await Promise.all(answers)).toEqual([200, 200, 200, 200, 404, 503, 503].map((status) => `${status} close`));
    await app.close();
  });
});
