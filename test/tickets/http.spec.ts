import { HttpModule, HttpService } from '@nestjs/axios';
import {
  Body,
  Controller,
  Get,
  Headers as AllHeaders,
  Inject,
  Injectable,
  Param,
  Post,
  Redirect,
  Req,
  UseGuards,
  type CanActivate,
  type PipeTransform,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { create, type AxiosError } from 'axios';
import { makeTickets } from 'nestjs-distributed-lock';
import { acceptTickets, sendTickets, ticketHeaders, TICKETS_HEADER } from 'nestjs-distributed-lock/tickets';
import type { IncomingMessage } from 'node:http';
import { firstValueFrom, take, type Observable } from 'rxjs';
import { saying } from '../support/saying';
import { until } from '../support/until';
import { Applications, Shop, Stock, WRONG_TEXTS, type Parts } from './applications';

@Injectable()
class LockingGuard implements CanActivate {
  constructor(@Inject(Stock) private readonly stock: Stock) {}
  async canActivate(): Promise<boolean> {
    return (await this.stock.reserve('1')) > 0;
  }
}

@Injectable()
class LockingPipe implements PipeTransform<string> {
  constructor(@Inject(Stock) private readonly stock: Stock) {}
  transform(id: string): Promise<number> {
    return this.stock.reserve(id);
  }
}

@Controller()
class StockController {
  constructor(@Inject(Stock) private readonly stock: Stock) {}

  @Get('reserve/:id')
  reserve(@Param('id') id: string): Promise<number> {
    return this.stock.reserve(id);
  }
  @Post('reserve')
  post(@Body() { id }: { id: string }): Promise<number> {
    return this.stock.reserve(id);
  }
  @Get('guarded')
  @UseGuards(LockingGuard)
  guarded(): string {
    return 'let in';
  }
  @Get('piped/:id')
  piped(@Param('id', LockingPipe) fence: number): number {
    return fence;
  }
  @Get('watch/:id')
  watch(@Param('id') id: string): Observable<number> {
    return this.stock.watch(id).pipe(take(3));
  }
  @Get('lost/:id')
  untilLost(@Param('id') id: string): Promise<void> {
    return this.stock.untilLost(id);
  }
  @Get('headers')
  headers(@AllHeaders() headers: Record<string, string>, @Req() request: IncomingMessage & { raw?: IncomingMessage }): string[] {
    const { rawHeaders, headersDistinct } = request.raw ?? request;
    return [headers, headersDistinct].flatMap(Object.keys).concat(rawHeaders);
  }
  @Get('moved')
  @Redirect('/headers', 302)
  moved(): void {}
}

/** Applications that accept tickets, and for how long their calls wait that are to be refused. */
const OPEN: Parts = { configure: (application) => application.use(acceptTickets()) };
const BRIEF: Parts = { wait: 300 };
const AT_ONCE: Parts = { wait: 0 };

let applications: Applications;
beforeAll(async () => {
  applications = await Applications.open();
});
beforeEach(() => {
  applications.logged.length = 0;
});
afterAll(() => applications.close());

async function ask(url: string, init: RequestInit = {}): Promise<[status: number, text: string]> {
  const response = await fetch(url, { redirect: 'error', ...init, headers: { ...(init.headers as object), ...ticketHeaders() } });
  return [response.status, await response.text()];
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('over HTTP on %s', (_, adapter) => {
  let shop: Shop;
  let url: string;
  let atOnce: string;
  let brief: string;
  let closed: string;

  beforeAll(async () => {
    const start = async (parts: Parts): Promise<string> =>
      (await applications.start({ adapter: adapter(), controllers: [StockController], ...parts })).getUrl();
    shop = await applications.shop();
    [url, atOnce, brief, closed] = await Promise.all([
      start(OPEN),
      start({ ...OPEN, ...AT_ONCE }),
      start({ ...OPEN, ...BRIEF }),
      start(BRIEF),
    ]);
  });
  afterAll(() => applications.end());

  test('a call from inside the lock enters it in the other application, with the same fence', async () => {
    await shop.order('1', async (fence) => {
      expect(await ask(`${url}/reserve/1`)).toEqual([200, String(fence)]);
      const body = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: '1', more: 'x'.repeat(50_000) }),
      };
      expect(await ask(`${url}/reserve`, body)).toEqual([201, String(fence)]);
    });
    expect(await shop.locks.operations.inspect('order:1')).toBeNull();
    expect((await ask(`${url}/reserve/1`))[0]).toBe(200);
  });

  test('guards, pipes and Observables of handlers are inside too', async () => {
    await shop.order('1', async (fence) => {
      expect(await ask(`${url}/guarded`)).toEqual([200, 'let in']);
      expect(await ask(`${url}/piped/1`)).toEqual([200, String(fence)]);
      expect(await ask(`${url}/watch/1`)).toEqual([200, String(fence)]);
    });
  });

  test('without the opt-in the call waits for its own caller, and is refused', async () => {
    await shop.order('1', async () => expect((await ask(`${closed}/reserve/1`))[0]).toBe(423));
  });

  test('without the header the call waits as always', async () => {
    await shop.order('1', async () => expect((await fetch(`${brief}/reserve/1`)).status).toBe(423));
  });

  test.each(WRONG_TEXTS)('a header that %s is answered with %d, and is repeated nowhere', async (_name, status, make) => {
    await shop.order('1', async () => {
      const text = make();
      const response = await fetch(`${status === 423 ? atOnce : url}/reserve/1`, { headers: { [TICKETS_HEADER]: text } });
      const answer = await response.text();
      expect([response.status, answer]).toEqual([status, expect.any(String)]);
      if (status === 400) {
        expect(JSON.parse(answer)).toMatchObject({ message: 'The header lock-tickets is malformed, or has more than 4096 characters.' });
      }
      if (text.length > 10) {
        expect(`${answer} ${applications.logged.join(' ')}`).not.toContain(text.slice(0, 30));
      }
    });
  });

  test('a header that came twice is malformed', async () => {
    await shop.order('1', async () => {
      const headers = new Headers(ticketHeaders());
      headers.append(TICKETS_HEADER, makeTickets() as string);
      expect((await fetch(`${url}/reserve/1`, { headers })).status).toBe(400);
    });
  });

  test('the tickets of a lock that has ended are refused as lost', async () => {
    const headers = await shop.order('1', async () => ticketHeaders());
    expect((await fetch(`${url}/reserve/1`, { headers })).status).toBe(500);
    expect(applications.logged.join(' ')).toContain('Lock "order:1": the lock of this ticket has ended.');
  });

  test('handlers do not see the header, and no line of the debug log has the tickets', async () => {
    await shop.order('1', async () => {
      const names = JSON.parse((await ask(`${url}/headers`))[1]) as string[];
      expect(names.filter((name) => name.toLowerCase() === 'host')).toHaveLength(3);
      expect(names.join(' ').toLowerCase()).not.toContain(TICKETS_HEADER);
      expect(names).not.toContain(makeTickets());
      await ask(`${url}/reserve/1`);
      expect(applications.logged.join(' ')).toContain('order:1');
      expect(applications.logged.join(' ')).not.toContain((makeTickets() as string).slice(0, 30));
    });
  });

  test('a lock that its first application loses is lost in the other one', async () => {
    const ordered = shop.order('1', async (fence) => {
      const answer = ask(`${url}/lost/1`);
      await until('the second hold', async () => (await shop.locks.operations.inspect('order:1'))?.holds === 2);
      await shop.locks.operations.forceRelease('order:1', { fence });
      expect((await answer)[0]).toBe(500);
    });
    await expect(ordered).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
  });
});

describe('axios', () => {
  let shop: Shop;
  let url: string;
  beforeEach(async () => {
    url = await (
      await applications.start({
        ...OPEN,
        ...AT_ONCE,
        controllers: [StockController],
      })
    ).getUrl();
  });
  afterEach(() => applications.end());

  test('HttpService of @nestjs/axios sends the tickets', async () => {
    const application = await applications.start({ imports: [HttpModule] });
    const http = application.get(HttpService);
    sendTickets(http.axiosRef, url);
    await application.get(Shop).order('1', async (fence) => {
      expect((await firstValueFrom(http.get<number>(`${url}/reserve/1`))).data).toBe(fence);
    });
  });

  test('an instance with a base URL sends them to the origins that were named, and to no other', async () => {
    shop = await applications.shop();
    const named = create({ baseURL: `${url}/`, validateStatus: null });
    sendTickets(named, ['http://elsewhere:1', url]);
    const unnamed = create({ baseURL: url, validateStatus: null });
    sendTickets(unnamed, 'http://elsewhere:1');
    await shop.order('1', async (fence) => {
      expect(await named.get('reserve/1')).toMatchObject({ status: 200, data: fence });
      expect(await unnamed.get('reserve/1')).toMatchObject({ status: 423 });
    });
    expect(await named.get('reserve/1')).toMatchObject({ status: 200 });
  });

  /** An application that writes down which of its requests have tickets. */
  async function seeing(): Promise<[origin: string, seen: boolean[]]> {
    const seen: boolean[] = [];
    const elsewhere = await applications.start({
      controllers: [StockController],
      configure: (application) =>
        application.use((request: { headers: object }, _response: unknown, next: () => void) => {
          seen.push(TICKETS_HEADER in request.headers);
          next();
        }),
    });
    return [await elsewhere.getUrl(), seen];
  }

  test('a redirected request has no tickets', async () => {
    shop = await applications.shop();
    const [origin, seen] = await seeing();
    const instance = create();
    sendTickets(instance, origin);
    await shop.order('1', () => instance.get(`${origin}/moved`));
    expect(seen).toEqual([true, false]);
  });

  test('with the adapter fetch, which cannot drop them, a redirect is an error, or handed back where that is asked for', async () => {
    shop = await applications.shop();
    const [origin, seen] = await seeing();
    const instance = create({ adapter: 'fetch', validateStatus: null });
    sendTickets(instance, origin);
    await shop.order('1', async () => {
      const followed = instance.get(`${origin}/moved`);
      expect(
        await followed.then(
          ({ status }) => status,
          (error: AxiosError) => error.code,
        ),
      ).toBe('ERR_NETWORK');
      expect((await instance.get(`${origin}/moved`, { fetchOptions: { redirect: 'manual' } })).status).toBe(302);
    });
    expect(seen).toEqual([true, true]);
    expect((await instance.get(`${origin}/moved`)).status).toBe(200);
  });

  test('a request that is sent elsewhere after all has no tickets, by an interceptor or by a retry', async () => {
    shop = await applications.shop();
    const [origin, seen] = await seeing();
    const instance = create({ validateStatus: null });
    let to = origin;
    instance.interceptors.request.use((request) => Object.assign(request, { baseURL: to }));
    sendTickets(instance, url);
    await shop.order('1', async (fence) => {
      await instance.get('/headers', { baseURL: url });
      expect(seen).toEqual([false]);
      to = url;
      const { config, data } = await instance.get('/reserve/1');
      expect(data).toBe(fence);
      to = origin;
      await instance.request({ ...config, url: '/headers' });
    });
    expect(seen).toEqual([false, false]);
  });

  test('what is no origin is refused, and not repeated', () => {
    for (const wrong of ['stock:3000/path', 'http://stock:3000/path', 'http://user:secret@stock', '']) {
      expect(() => sendTickets(create(), wrong)).toThrow(saying(/^sendTickets: what was passed is no origin\. Pass such as/));
    }
  });
});
