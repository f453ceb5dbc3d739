import type { INestApplication } from '@nestjs/common';
import { VersioningType } from '@nestjs/common';
import { once } from 'node:events';
import request from 'supertest';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, MemoryLockStore } from 'nestjs-distributed-lock';
import { LockPageModule, type LockPageOptions } from 'nestjs-distributed-lock/page';
import { THIS_PROCESS } from '../../lib/core/words/caller';
import type { FoundIncident, WaitingCall } from '../../lib/operate/peers/survey';
import { newHold } from '../support/new-hold';
import { saying } from '../support/saying';
import { until } from '../support/until';
import { describedShop } from './support/described-shop';
import { DoorGuard, PLATFORMS, startApplication, type PageApplication } from './support/page-application';

const IN = { authorization: 'let-me-in' };
const GETS = ['', '/app.js', '/app.css', '/icon.svg', '/survey', '/events', '/search?store=default'] as const;

describe.each(Object.keys(PLATFORMS) as (keyof typeof PLATFORMS)[])('on %s', (platform) => {
  let running: PageApplication;
  let allowed: boolean | string;

  beforeAll(async () => {
    running = await startApplication({
      platform,
      page: { path: 'ops/locks', guards: [DoorGuard], actions: (_request: unknown) => allowed },
      prepare: (app: INestApplication) => {
        app.setGlobalPrefix('api');
        app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version', defaultVersion: '1' });
      },
    });
  });
  beforeEach(() => (allowed = 'ada'));
  afterAll(() => running.app.close());

  const get = (path: string) => request(running.url).get(`/api/ops/locks${path}`);
  const release = (body: object, headers: Record<string, string> = {}) =>
    request(running.url)
      .post('/api/ops/locks/release')
      .set({ ...IN, 'x-lock-page': '1', ...headers })
      .send(body);

  test.each(GETS)('the guard is before "%s"', async (path) => {
    await get(path).expect(403);
  });

  test('the guard is before the release', async () => {
    const body = { store: 'default', key: 'a', fence: 1 };
    await request(running.url).post('/api/ops/locks/release').set('x-lock-page', '1').send(body).expect(403);
  });

  test('the page allows nothing inline and nothing from elsewhere, and refers to its files relatively', async () => {
    const page = await get('').set(IN).expect(200).expect('content-type', /html/);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(page.headers['cache-control']).toBe('no-store');
    expect(page.text).toContain('src="./locks/app.js"');
    expect(page.text).not.toMatch(/<style|style=|<script>|https?:/);
  });

  test('its files are sent once', async () => {
    const script = await get('/app.js')
      .set(IN)
      .expect(200)
      .expect('content-type', /javascript/);
    expect(script.headers['cache-control']).toBe('private, no-cache');
    await get('/app.js')
      .set({ ...IN, 'if-none-match': script.headers['etag'] as string })
      .expect(304);
    await get('/app.css').set(IN).expect(200).expect('content-type', /css/);
  });

  test('the survey says what this user may do, and has neither owners nor tickets', async () => {
    const lock = await running.locks.acquire('balance:42');
    const { body, text } = await get('/survey').set(IN).expect(200);
    expect(body).toMatchObject([{ actions: true }, { stores: [{ store: 'default', held: [{ key: 'balance:42', fence: lock.fence }] }] }]);
    expect(text).not.toContain(lock.makeTicket());
    for (const nobody of [false, '']) {
      allowed = nobody;
      expect((await get('/survey').set(IN)).body).toMatchObject([{ actions: false }, {}]);
    }
    await lock.release();
  });

  test.each(['/survey', '/events', '/search?store=default'])('"%s" answers no other site', async (path) => {
    for (const site of ['cross-site', 'same-site']) {
      await get(path)
        .set({ ...IN, 'sec-fetch-site': site })
        .expect(403);
    }
  });

  test('on plain HTTP, where browsers say no more, a script of another origin is refused, also where CORS lets it in', async () => {
    const { host } = new URL(running.url);
    for (const path of ['/survey', '/events', '/search?store=default']) {
      for (const origin of ['http://evil.example', 'null']) {
        await get(path)
          .set({ ...IN, origin })
          .expect(403);
      }
    }
    await get('/survey')
      .set({ ...IN, origin: `http://${host}` })
      .expect(200);
    const body = { store: 'default', key: 'balance:42', fence: 1, reason: 'It hangs.' };
    await release(body, { origin: 'http://evil.example' }).expect(403);
    await release(body, { origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' }).expect(403);
    await release(body, { origin: `http://${host}` }).expect(200);
  });

  test('a lock is released at its fence, and a later one is not', async () => {
    const first = await running.locks.acquire('balance:42');
    const released = release(
      { store: 'default', key: 'balance:42', fence: first.fence, reason: 'It hangs.' },
      { 'sec-fetch-site': 'same-origin' },
    );
    expect((await released.expect(200)).body).toEqual({ outcome: 'released' });
    await until('the loss is told with who caused it', async () =>
      (await running.locks.operations.incidents()).some(
        ({ type, forcedBy }) => type === 'lost' && forcedBy?.by === 'ada (page)' && forcedBy.reason === 'It hangs.',
      ),
    );
    const later = await running.locks.acquire('balance:42');
    const again = await release({ store: 'default', key: 'balance:42', fence: first.fence, reason: 'It hangs.' }).expect(200);
    expect(again.body).toEqual({ outcome: 'later' });
    expect(later.isHeld()).toBe(true);
    await later.release();
    expect((await release({ store: 'default', key: 'balance:42', fence: later.fence, reason: 'It hangs.' }).expect(200)).body).toEqual({
      outcome: 'free',
    });
    await release({ store: 'another', key: 'balance:42', fence: 1, reason: 'It hangs.' }).expect(404);
  });

  test('a slash at the end of the path leads to the page', async () => {
    expect((await get('/').set(IN).redirects(1).expect(200)).text).toContain('<script type="module" src="./');
    await get('/').redirects(1).expect(403);
  });

  test('a lock is shown as its store has it, and nothing of one that cannot be', async () => {
    const lock = await running.locks.acquire('balance:42', { by: 'Holder.run', ttl: '1m' });
    const { body } = await get('/lock?store=default&key=balance%3A42').set(IN).expect(200);
    expect(body).toEqual({
      lock: {
        fence: lock.fence,
        by: expect.stringContaining('Holder.run'),
        heldMs: expect.any(Number),
        remainingMs: expect.any(Number),
        holds: 1,
        waiters: [],
      },
    });
    await lock.release();
    expect((await get('/lock?store=default&key=balance%3A42').set(IN).expect(200)).body).toEqual({ lock: null });
    await get('/lock?store=another&key=balance%3A42').set(IN).expect(404);
    await get('/lock?store=default&key=').set(IN).expect(400);
    await get(`/lock?store=default&key=${'x'.repeat(1_025)}`)
      .set(IN)
      .expect(400);
    await get('/lock?store=default&key=balance%3A42').expect(403);
    await release({ store: 'default', key: 'x'.repeat(1_025), fence: 1, reason: 'It hangs.' }).expect(400);
  });

  test('a key that several share is shown with all of them', async () => {
    const permits = await Promise.all([1, 2].map(() => running.locks.acquirePermit('erp', 3)));
    const { body } = await get('/lock?store=default&key=erp').set(IN).expect(200);
    expect(body).toMatchObject({ lock: { holds: 2, shares: 3 } });
    await Promise.all(permits.map((permit) => permit.release()));
  });

  test('a release is refused that another site could have sent, or that is none', async () => {
    const lock = await running.locks.acquire('balance:42');
    const body = { store: 'default', key: 'balance:42', fence: lock.fence, reason: 'It hangs.' };
    await release(body, { 'x-lock-page': '' }).expect(403);
    await release(body, { 'sec-fetch-site': 'cross-site' }).expect(403);
    await release(body, { 'sec-fetch-site': 'same-site' }).expect(403);
    const typed = (type: string) =>
      request(running.url)
        .post('/api/ops/locks/release')
        .set({ ...IN, 'x-lock-page': '1', 'content-type': type });
    for (const type of ['application/x-www-form-urlencoded', 'text/plain']) {
      await typed(type).send('store=default').expect(415);
    }
    for (const wrong of [
      { fence: '1' },
      { key: '' },
      { store: undefined },
      { reason: undefined },
      { reason: ' ' },
      { reason: 'x'.repeat(201) },
    ]) {
      await release({ ...body, ...wrong }).expect(400);
    }
    for (const none of [{}, []]) {
      await release(none as object).expect(400);
    }
    allowed = false;
    await release(body).expect(403);
    expect(lock.isHeld()).toBe(true);
    await lock.release();
  });
});

test('nobody may release where there are no actions', async () => {
  const { app, locks, url } = await startApplication();
  const { fence } = await locks.acquire('balance:42');
  await request(url).post('/locks/release').set('x-lock-page', '1').send({ store: 'default', key: 'balance:42', fence }).expect(403);
  expect((await request(url).get('/locks/survey')).body).toMatchObject([{ actions: false }, {}]);
  await app.close();
});

test('hidden keys are in no answer, and a lock is released by its hash', async () => {
  const { app, locks, url } = await startApplication({ page: { hideKeys: true, actions: () => true } });
  const lock = await locks.acquire('customer:4711');
  // A survey has the beginning of a long name.
  const candidates = ['leader:4711', `leader:4711:${'x'.repeat(300)}`].map((leader) =>
    locks.lead(leader, ({ signal }) => once(signal, 'abort')),
  );
  await until('that they lead', () => candidates.every((candidate) => candidate.isLeader()));
  const { body, text } = await request(url).get('/locks/survey').expect(200);
  expect(text).not.toMatch(/(customer|leader):/);
  const [, { stores }] = body as [unknown, { stores: [{ held: [{ key: string }] }] }];
  const [{ key }] = stores[0].held;
  await Promise.all(candidates.map((candidate) => candidate.stop()));
  await request(url)
    .get(`/locks/lock?store=default&key=${encodeURIComponent(key)}`)
    .expect(404);
  expect(key).toMatch(/^#[0-9a-f]{12}$/);
  const answer = await request(url)
    .post('/locks/release')
    .set('x-lock-page', '1')
    .send({ store: 'default', key, fence: lock.fence, reason: 'It hangs.' });
  expect(answer.body).toEqual({ outcome: 'released' });
  await app.close();
});

test('where keys are hidden, no description is in an answer, nor the text of an error', async () => {
  const store = new MemoryLockStore();
  const { app, locks, url } = await startApplication({ store, page: { hideKeys: true } });
  await store.acquire(newHold('orphan:1', { by: `${THIS_PROCESS} Orders.pay (tenant=globex)`, ttlMs: 600_000 }));
  const shop = describedShop();
  const [call, incident] = [shop.waiting[0] as WaitingCall, shop.incidents[0] as FoundIncident];
  const survey = {
    ...shop,
    waiting: [...shop.waiting, { ...call, key: 'orphan:1', waitedMs: 9_000 }],
    incidents: [...shop.incidents, { ...incident, id: 'failed', error: 'NOPERM customer:4711' }],
  };
  const by = `${THIS_PROCESS} Orders.pay (tenant=globex)`;
  const found = async function* () {
    yield { key: 'orphan:2', fence: 1, by, since: new Date(), remainingMs: 9_000, answers: false };
  };
  const list = () => Object.assign(found(), { leftOut: {} });
  Object.assign(locks.operations, { survey: async () => survey, list });
  const { text } = await request(url).get('/locks/survey').expect(200);
  const search = await (await fetch(`${url}/locks/search?store=default`)).text();
  for (const answer of [text, search]) {
    expect(answer.match(/globex|4711|trace=/g) ?? []).toEqual([]);
    expect(answer).toContain(`"${THIS_PROCESS} Orders.pay"`);
  }
  expect(text).toContain('"holder":"api-7f9c4-m8wdl (pid 17) TransferService.run"');
  await app.close();
});

const traces = (traceUrl: string): LockPageOptions => ({ access: 'anybody', traceUrl });

test.each(['https://jaeger.example/trace/{trace}', 'http://[::1]:16686/trace/{trace}', '/tools/traces?id={trace}'])(
  'traces may be shown at %s',
  (traceUrl) => expect(LockPageModule.forRoot(traces(traceUrl))).toBeDefined(),
);

test.each<[string, LockPageOptions, RegExp]>([
  ['nothing', {}, /needs either guards or access.*LockPageModule\.forRoot\(\{ guards: \[AdminGuard\] \}\)/],
  ['no guards', { guards: [] }, /needs either guards or access/],
  ['guards and access', { guards: [DoorGuard], access: 'anybody' }, /needs either guards or access/],
  ['an unknown access', { access: 'all' as never }, /access is 'all'/],
  ['actions that are no function', { access: 'anybody', actions: true as never }, /actions is true/],
  ['an address for traces that runs in the page', traces('javascript:alert("{trace}")'), /traceUrl is 'javascript:.*https:\/\/jaeger/],
  ['one of another scheme', traces('ftp://traces/{trace}'), /traceUrl is 'ftp:/],
  ['one that names no trace', traces('https://traces.example/'), /with \{trace\} in it/],
  ['one that is none', traces('https://[/{trace}'), /traceUrl is/],
  ['one that is no text', traces(7 as never), /traceUrl is 7/],
  ['a mistyped option', { gaurds: [DoorGuard] } as never, /Did you mean 'guards'/],
])('%s is refused at the start', (_what, options, message) => {
  expect(() => LockPageModule.forRoot(options)).toThrow(LockConfigurationError);
  expect(() => LockPageModule.forRoot(options)).toThrow(saying(message));
});

test('a path that ends with a slash has its files beside it', async () => {
  const { app, url } = await startApplication();
  expect((await request(url).get('/locks/').expect(200)).text).toContain('src="./app.js"');
  await app.close();
});

test('all who search a store at the same time share one search, and who comes later is told what was found before', async () => {
  const store = new MemoryLockStore();
  let asked = 0;
  const prepare = (application: INestApplication): unknown =>
    application.use('/locks/search', (_request: unknown, _response: unknown, next: () => void) => {
      asked++;
      next();
    });
  const { app, url } = await startApplication({ store, prepare });
  for (const key of ['a', 'b', 'c']) {
    await store.acquire(newHold(key, { ttlMs: 600_000 }));
  }
  let searches = 0;
  let goOn!: () => void;
  const isHeldUp = new Promise<void>((resolve) => (goOn = resolve));
  const search = store.search.bind(store);
  store.search = async function* (...args) {
    searches++;
    for await (const found of search(...args)) {
      yield found;
      await isHeldUp;
    }
  };
  const looks = [1, 2, 3].map(async () => (await fetch(`${url}/locks/search?store=default`)).text());
  await until('the search runs', () => searches > 0);
  const later = fetch(`${url}/locks/search?store=default`).then((answer) => answer.text());
  await until('that the later one has come', () => asked === 4);
  // It has what was found before once its handler has run.
  await sleep(300);
  goOn();
  const [first = [], ...others] = (await Promise.all([...looks, later])).map((text) =>
    [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data),
  );
  expect(JSON.parse(first.at(-1) as string)).toMatchObject({ kind: 'search', looked: 3, ended: 'complete' });
  expect(others).toEqual([first, first, first]);
  expect(searches).toBe(1);
  await fetch(`${url}/locks/search?store=default`).then((answer) => answer.text());
  expect(searches).toBe(2);
  await app.close();
});
