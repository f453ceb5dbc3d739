import { Controller, Inject, Injectable, UseGuards, type CanActivate, type INestApplication } from '@nestjs/common';
import {
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  NatsRecordBuilder,
  Payload,
  Transport,
  type ClientProxy,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { makeTickets, LockExceptionFilter } from 'nestjs-distributed-lock';
import { enterTicketsOf, TICKETS_FIELD, TicketsInterceptor, withTickets } from 'nestjs-distributed-lock/tickets';
import { firstValueFrom, lastValueFrom, take, toArray, type Observable } from 'rxjs';
import { NatsServer } from '../support/nats-server';
import { NEST_MAJOR } from '../support/nest-major';
import { freePort } from '../support/redis-server';
import { saying } from '../support/saying';
import { until } from '../support/until';
import { Applications, Shop, Stock, WRONG_TEXTS } from './applications';

@Injectable()
class LockingGuard implements CanActivate {
  constructor(@Inject(Stock) private readonly stock: Stock) {}
  async canActivate(): Promise<boolean> {
    return (await this.stock.reserve('1')) > 0;
  }
}

interface Message {
  readonly id: string;
}

@Controller()
class StockMessages {
  readonly seen: object[] = [];
  readonly reserved: number[] = [];
  constructor(@Inject(Stock) private readonly stock: Stock) {}

  @MessagePattern('reserve')
  reserve(@Payload() message: Message): Promise<number> {
    this.seen.push(message);
    return this.stock.reserve(message.id);
  }
  @MessagePattern('watch')
  watch(@Payload() { id }: Message): Observable<number> {
    return this.stock.watch(id).pipe(take(3));
  }
  @EventPattern('reserved')
  async onReserved(@Payload() { id }: Message): Promise<void> {
    this.reserved.push(await this.stock.reserve(id));
  }
  @MessagePattern('guarded')
  @UseGuards(LockingGuard)
  guarded(): string {
    return 'let in';
  }
}

let applications: Applications;
let nats: NatsServer;
let clients: ClientProxy[];
beforeAll(async () => {
  [applications, nats] = await Promise.all([Applications.open(), NatsServer.start()]);
});
beforeEach(() => {
  clients = [];
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await applications.end();
});
afterAll(async () => {
  await Promise.all([applications.close(), nats.stop()]);
});

const BROKERS: readonly [string, () => MicroserviceOptions | Promise<MicroserviceOptions>][] = [
  ['TCP', async () => ({ transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } })],
  ['Redis', () => ({ transport: Transport.REDIS, options: { host: '127.0.0.1', port: applications.redisPort } })],
  ['NATS', () => ({ transport: Transport.NATS, options: { servers: [`nats://127.0.0.1:${nats.port}`] } })],
];

describe.each(BROKERS)('over %s', (_, optionsOf) => {
  let shop: Shop;
  let stock: INestApplication;
  let client: ClientProxy;

  /** Two applications, of which the second listens to messages. */
  async function start(accepts: 'interceptor' | 'hook' | 'nothing', wait?: number): Promise<void> {
    const options = await optionsOf();
    shop = await applications.shop();
    stock = await applications.start({
      ...(wait !== undefined && { wait }),
      controllers: [StockMessages],
      configure: async (application) => {
        const interceptor = new TicketsInterceptor();
        application.useGlobalFilters(new LockExceptionFilter());
        if (accepts === 'interceptor') {
          application.useGlobalInterceptors(interceptor);
        }
        const microservice = application.connectMicroservice(options, { inheritAppConfig: true, deferInitialization: true });
        if (accepts === 'hook') {
          microservice.registerPreRequestHook((context, next) => interceptor.intercept(context, { handle: next }));
        }
        await application.startAllMicroservices();
      },
    });
    client = ClientProxyFactory.create(options as Parameters<typeof ClientProxyFactory.create>[0]);
    clients.push(client);
    await client.connect();
  }
  const send = <T = number>(pattern: string, payload: object = { id: '1' }): Promise<T> =>
    firstValueFrom(client.send<T>(pattern, withTickets(payload)));

  test('a message from inside the lock enters it in the other application, and its handler sees no tickets', async () => {
    await start('interceptor');
    await shop.order('1', async (fence) => expect(await send('reserve')).toBe(fence));
    expect(await shop.locks.operations.inspect('order:1')).toBeNull();
    expect(await send('reserve')).toBeGreaterThan(0);
    expect(stock.get(StockMessages).seen).toEqual([{ id: '1' }, { id: '1' }]);
  });

  test('so do an Observable that a handler returns, and an event', async () => {
    await start('interceptor');
    await shop.order('1', async (fence) => {
      expect(await lastValueFrom(client.send('watch', withTickets({ id: '1' })).pipe(toArray()))).toEqual([fence, fence, fence]);
      await lastValueFrom(client.emit('reserved', withTickets({ id: '1' })), { defaultValue: undefined });
      const { reserved } = stock.get(StockMessages);
      await until('that the event was handled', () => reserved.length === 1);
      expect(reserved).toEqual([fence]);
    });
  });

  // Nest has the hook since version 12.
  (NEST_MAJOR < 12 ? test.skip : test)('as a hook it covers guards too', async () => {
    await start('hook');
    await shop.order('1', async (fence) => {
      expect(await send<string>('guarded')).toBe('let in');
      expect(await send('reserve')).toBe(fence);
      expect(await lastValueFrom(client.send('watch', withTickets({ id: '1' })).pipe(toArray()))).toEqual([fence, fence, fence]);
    });
  });

  test('without the opt-in the call waits for its own caller, and is refused', async () => {
    await start('nothing', 300);
    await shop.order('1', () => expect(send('reserve')).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' }));
  });

  test.each(WRONG_TEXTS)('a payload whose text %s is refused, and the text is repeated nowhere', async (_name, status, make) => {
    await start('interceptor', status === 423 ? 0 : undefined);
    await shop.order('1', async () => {
      const text = make();
      const answer = firstValueFrom(client.send('reserve', { id: '1', [TICKETS_FIELD]: text }));
      const codes: Readonly<Record<number, string>> = { 400: 'LOCK_CONFIGURATION', 423: 'LOCK_NOT_ACQUIRED', 500: 'LOCK_LOST' };
      const error: unknown = await answer.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: codes[status] });
      if (text.length > 10) {
        expect(`${JSON.stringify(error)} ${applications.logged.join(' ')}`).not.toContain(text.slice(0, 30));
      }
    });
  });
});

describe('a payload', () => {
  test('that is no object has no room for tickets, and outside of a lock it stays as it is', async () => {
    const shop = await applications.shop();
    const payload = { id: '1' };
    expect(withTickets(payload)).toBe(payload);
    for (const wrong of [[1], 'text' as unknown as object, undefined as unknown as object]) {
      expect(() => withTickets(wrong)).toThrow(saying(/^withTickets: the payload is .* Pass one, such as \{ id \}/));
    }
    // A copy of these would be sent as something else.
    for (const wrong of [new Date(), new Map(), new NatsRecordBuilder({ id: '1' }).build()]) {
      expect(() => withTickets(wrong)).toThrow(
        saying(/^withTickets: the payload is an object of class \w+, .* NatsRecordBuilder\(withTickets/),
      );
    }
    expect(withTickets(Object.assign(Object.create(null) as object, payload))).toEqual(payload);
    await shop.order('1', async () => {
      expect(withTickets(payload)).toEqual({ id: '1', lockTickets: makeTickets() });
      expect(payload).toEqual({ id: '1' });
    });
  });

  test('without tickets, or that is no object, runs the function as it is', () => {
    for (const plain of [{ id: '1' }, undefined, null, 'text', 7, [1]]) {
      expect(enterTicketsOf(plain, () => 'ran')).toBe('ran');
    }
    const wrong = { lockTickets: 7 };
    expect(() => enterTicketsOf(wrong, () => 'ran')).toThrow(saying(/the tickets is malformed/));
    expect(wrong).toEqual({});
  });
});
