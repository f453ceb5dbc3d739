import 'reflect-metadata';
import { Catch, HttpException, Inject, UseFilters, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ClientProxyFactory, Transport, type ClientOptions, type MicroserviceOptions } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LockConfigurationError, LockError, LockExceptionFilter, LockModule, MemoryLockStore } from 'nestjs-distributed-lock';
import { once, type EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { firstValueFrom } from 'rxjs';
import request from 'supertest';
import { Orders } from '../readme/client-signal';
import { NatsServer } from '../support/nats-server';
import { NEST_MAJOR, prepareForMiddleware } from '../support/nest-major';
import { freePort, RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { CODES, KINDS, secretsIn, STATUSES, Vault, type Kind } from '../support/vault';
import { expectFullLog, FILTERS, keepLogs, logged, start } from '../support/vault-application';

interface Socket extends EventEmitter {
  send(text: string): void;
  terminate(): void;
}
const { WebSocket } = createRequire(import.meta.url)('ws') as { WebSocket: new (url: string) => Socket };

@WebSocketGateway({ path: '/' })
class Gateway {
  constructor(@Inject(Vault) private readonly vault: Vault) {}
  @SubscribeMessage('fail')
  message(_client: unknown, kind: Kind): Promise<string> {
    return this.vault.fail(kind);
  }
}

@WebSocketGateway({ path: '/' })
@UseFilters(LockExceptionFilter)
class FilteredGateway extends Gateway {}

const brokers: (NatsServer | RedisServer)[] = [];

keepLogs();
afterEach(async () => {
  await Promise.all(brokers.splice(0).map((broker) => broker.stop()));
});

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('over HTTP on %s', (_, adapter) => {
  describe.each(FILTERS)('%s', (__, filtered) => {
    test.each(['development', 'production'])('clients read a status, and neither key nor host, in %s', async (environment) => {
      process.env['NODE_ENV'] = environment;
      const http = request((await start(adapter(), { filtered })).getHttpServer());
      for (const kind of KINDS) {
        logged.length = 0;
        const { status, text } = await http.get(`/fail/${kind}`);
        expect(status).toBe(STATUSES[kind]);
        expect(secretsIn(text)).toEqual([]);
        expect(text.includes(CODES[kind])).toBe(filtered);
        expectFullLog(kind);
      }
    });
  });

  test('an Observable that is skipped is 500, unless its handler says what it answers then', async () => {
    const http = request((await start(adapter())).getHttpServer());
    await http.get('/skipped').expect(500);
    await http.get('/answered').expect(200);
  });

  test('a response that has begun ends where its call gets no lock', async () => {
    const { text } = await request((await start(adapter(), { filtered: true })).getHttpServer())
      .get('/begun')
      .timeout(5_000);
    expect(text).toBe('[');
  });

  test('an event stream that loses its lock names neither key nor host', async () => {
    const { text } = await request((await start(adapter())).getHttpServer()).get('/watch');
    expect(text).toMatch(/event: error\n/);
    expect(secretsIn(text)).toEqual([]);
  });

  describe('beside a filter that catches everything', () => {
    @Catch()
    class Everything implements ExceptionFilter {
      catch(exception: unknown, host: ArgumentsHost): void {
        const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: unknown): void } }>();
        const status = exception instanceof HttpException ? exception.getStatus() : 500;
        const message = exception instanceof Error ? exception.message : 'Internal server error';
        response.status(status).send({ statusCode: status, message });
      }
    }

    test('no message names key or host, though it sends the message of every error', async () => {
      const application = await start(adapter(), {}, (app) => app.useGlobalFilters(new Everything()));
      for (const kind of KINDS) {
        const { status, text } = await request(application.getHttpServer()).get(`/fail/${kind}`);
        expect(status).toBe(500);
        expect(secretsIn(text)).toEqual([]);
      }
    });

    test('busy is 423 where LockExceptionFilter comes after it in useGlobalFilters', async () => {
      const application = await start(adapter(), {}, (app) => app.useGlobalFilters(new Everything(), new LockExceptionFilter()));
      await request(application.getHttpServer()).get('/fail/busy').expect(423);
    });

    test('busy is 423 where LockExceptionFilter comes after it among the providers', async () => {
      const providers = [
        { provide: APP_FILTER, useClass: Everything },
        { provide: APP_FILTER, useClass: LockExceptionFilter },
      ];
      await request((await start(adapter(), { providers })).getHttpServer())
        .get('/fail/busy')
        .expect(423);
    });
  });
});

/** Transports of microservices beside gRPC, each with its broker. */
const MICROSERVICES: readonly [string, () => Promise<ClientOptions>][] = [
  ['TCP', async () => ({ transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } })],
  ['NATS', async () => ({ transport: Transport.NATS, options: { servers: [`127.0.0.1:${(await begun(NatsServer.start())).port}`] } })],
  ['Redis', async () => ({ transport: Transport.REDIS, options: { host: '127.0.0.1', port: (await begun(RedisServer.start())).port } })],
];

async function begun<Broker extends NatsServer | RedisServer>(starting: Promise<Broker>): Promise<Broker> {
  const broker = await starting;
  brokers.push(broker);
  return broker;
}

describe.each(MICROSERVICES)('over a microservice on %s', (_, broker) => {
  test.each(FILTERS)('%s, clients read neither key nor host', async (__, filtered) => {
    const options = await broker();
    await start(new ExpressAdapter(), { filtered }, async (app) => {
      app.connectMicroservice(options as MicroserviceOptions);
      await app.startAllMicroservices();
    });
    const client = ClientProxyFactory.create(options);
    try {
      for (const kind of KINDS) {
        logged.length = 0;
        const reply: unknown = await firstValueFrom(client.send('fail', kind)).catch((error: unknown) => error);
        const body = { status: 'error', code: CODES[kind], statusCode: STATUSES[kind] };
        expect(reply).toMatchObject(filtered ? body : { status: 'error', message: 'Internal server error' });
        if (filtered && kind === 'busy') {
          expect(reply).toMatchObject({ message: 'Locked', retryAfterMs: expect.any(Number) as number });
        }
        expect(secretsIn(inspect(reply))).toEqual([]);
        expectFullLog(kind);
      }
    } finally {
      await client.close();
    }
  });
});

describe.each(FILTERS)('over WebSocket %s', (_, filtered) => {
  test('clients read neither key nor host', async () => {
    const application = await start(new ExpressAdapter(), { filtered, more: [filtered ? FilteredGateway : Gateway] }, (app) =>
      app.useWebSocketAdapter(new WsAdapter(app)),
    );
    await application.listen(0, '127.0.0.1');
    const socket = new WebSocket((await application.getUrl()).replace('http', 'ws'));
    try {
      await once(socket, 'open');
      for (const kind of KINDS) {
        logged.length = 0;
        socket.send(JSON.stringify({ event: 'fail', data: kind }));
        if (!filtered && NEST_MAJOR < 12) {
          // Nest sends its own errors there, and no others.
          await until('its log', () => logged.length > 0);
          expectFullLog(kind);
          continue;
        }
        const [reply] = (await once(socket, 'message')) as [Buffer];
        expect(JSON.parse(reply.toString())).toMatchObject({
          event: 'exception',
          data: filtered
            ? { code: CODES[kind], ...(kind === 'busy' && { retryAfterMs: expect.any(Number) as number }) }
            : { message: 'Internal server error' },
        });
        expect(secretsIn(reply.toString())).toEqual([]);
        expectFullLog(kind);
      }
    } finally {
      socket.terminate();
    }
  });
});

describe('an error of a lock', () => {
  async function failure(kind: Kind): Promise<LockError> {
    const application = await start(new ExpressAdapter());
    const error: unknown = await application
      .get(Vault)
      .fail(kind)
      .catch((failed: unknown) => failed);
    expect(error).toBeInstanceOf(LockError);
    return error as LockError;
  }

  test.each(KINDS)('tells developers everything in its detail, its stack and the console, and transports nothing: %s', async (kind) => {
    const error = await failure(kind);
    const { detail, stack = '' } = error;
    expect(secretsIn(detail)).not.toEqual([]);
    expect(stack.startsWith(`${error.name}: ${detail}\n    at `)).toBe(true);
    expect(inspect(error).startsWith(`${error.name}: ${detail}\n    at `)).toBe(true);
    expect(Object.keys(error)).not.toContain('detail');

    expect(secretsIn(error.message)).toEqual([]);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ statusCode: STATUSES[kind], code: CODES[kind] });
    expect(secretsIn(JSON.stringify([error, error.extensions]))).toEqual([]);
  });
});

test.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const)('on %s, a call whose client has gone leaves the queue and never runs', async (_name, adapter) => {
  const imports = [LockModule.forRoot({ store: new MemoryLockStore() })];
  const module = await Test.createTestingModule({ imports, controllers: [Orders] }).compile();
  const app = module.createNestApplication(adapter(), { logger: false });
  app.useGlobalFilters(new LockExceptionFilter());
  let isLate = false;
  await prepareForMiddleware(app);
  app.use('/orders/late', (_request: unknown, response: EventEmitter, next: () => void) => {
    isLate = true;
    response.once('close', next);
  });
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  const orders = module.get(Orders);
  const send = (id: string, signal?: AbortSignal): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/orders/${id}/shipment`, { method: 'POST', signal: signal ?? null });
  const waiting = async (): Promise<number> => (await orders.locks.operations.inspect('order:7'))?.waitingHere ?? 0;

  const elsewhere = await orders.locks.acquire('order:7');
  const client = new AbortController();
  const gone = send('7', client.signal).catch((error: unknown) => (error as Error).name);
  await until('the call waits', async () => (await waiting()) === 1);
  client.abort();
  expect(await gone).toBe('AbortError');
  await until('the call has left the queue', async () => (await waiting()) === 0);
  const beforeTheHandler = new AbortController();
  const late = send('late', beforeTheHandler.signal).catch((error: unknown) => (error as Error).name);
  await until('the request is there', () => isLate);
  beforeTheHandler.abort();
  expect(await late).toBe('AbortError');
  const stays = send('7');
  await until('the next call waits', async () => (await waiting()) === 1);
  await elsewhere.release();
  expect((await stays).status).toBe(201);
  expect((await send('8')).status).toBe(201);
  expect(orders.shipped).toEqual(['7', '8']);
  await app.close();
  // Also when the connections have ended: these clients had their answers.
  expect(orders.signals.map(({ aborted }) => aborted)).toEqual([false, false]);
});

test('an error of a transport that the filter does not know goes to the caller as it is', () => {
  const error = new LockConfigurationError('wrong');
  const host = { getType: () => 'rmq' } as unknown as ArgumentsHost;
  expect(() => new LockExceptionFilter().catch(error, host)).toThrow(error);
});
