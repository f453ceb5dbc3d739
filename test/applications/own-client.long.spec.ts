import 'reflect-metadata';
import {
  Controller,
  Get,
  Inject,
  Module,
  Param,
  type DynamicModule,
  type INestApplication,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DistributedLock, LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

const REDIS = 'the client of the application';

let server: RedisServer;
/** Those that run. */
const applications = new Set<INestApplication>();
const clients: Redis[] = [];
beforeAll(async () => {
  server = await RedisServer.start();
});
afterEach(async () => {
  await Promise.all([...applications].map(end));
  clients.splice(0).forEach((client) => client.disconnect());
});
afterAll(() => server.stop());

/** The application's own module of Redis, which ends its client where it is told to. */
@Module({})
class RedisModule implements OnApplicationShutdown {
  constructor(
    @Inject(REDIS) private readonly client: Redis,
    @Inject('ENDS') private readonly ends: boolean,
  ) {}

  static with(client: Redis, ends: boolean): DynamicModule {
    const providers = [
      { provide: REDIS, useValue: client },
      { provide: 'ENDS', useValue: ends },
    ];
    return { module: RedisModule, providers, exports: [REDIS] };
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.ends) {
      await this.client.quit();
    }
  }
}

@Controller()
class Counters {
  entered = 0;
  mayLeave = Promise.resolve();

  /** Reads, and writes a moment later. */
  @Get('count/:name')
  @DistributedLock({ key: 'counter:<name>', wait: '1m', ttl: '30s' })
  async count(@Param('name') name: string): Promise<number> {
    this.entered++;
    await this.mayLeave;
    const before = Number(await server.client.get(`count:${name}`));
    await sleep(2);
    await server.client.set(`count:${name}`, before + 1);
    return before + 1;
  }
}

interface Started {
  readonly client: Redis;
  readonly application: INestApplication;
  readonly counters: Counters;
  readonly url: string;
}

async function start({ ends = false } = {}): Promise<Started> {
  const client = new Redis(server.url).on('error', () => undefined);
  clients.push(client);
  const locks = LockModule.forRootAsync({
    imports: [RedisModule.with(client, ends)],
    inject: [REDIS],
    useFactory: (injected: Redis) => ({ store: new RedisLockStore(injected) }),
  });
  const module = { module: class AppModule {}, imports: [locks], controllers: [Counters] };
  const application = await NestFactory.create(module, { logger: false, abortOnError: false });
  applications.add(application);
  await application.listen(0, '127.0.0.1');
  return { client, application, counters: application.get(Counters), url: await application.getUrl() };
}

/** Ends it once: before Nest 12 a second end calls its hooks again. */
async function end(application: INestApplication): Promise<void> {
  applications.delete(application);
  await application.close();
}

/** The locks that Redis has, but for what the start-up check of a slow server leaves for a moment. */
async function locksLeft(): Promise<string[]> {
  return (await server.client.keys('lock:lock:*')).filter((key) => !key.includes('start-up check'));
}

async function connections(): Promise<number> {
  return ((await server.client.client('LIST')) as string).trim().split('\n').length;
}

test('an injected client locks in two applications, and is open when both have closed', async () => {
  const before = await connections();
  const [first, second] = await Promise.all([start(), start()]);
  await Promise.all(Array.from({ length: 100 }, (_, call) => (call % 2 === 0 ? first : second).counters.count('injected')));
  expect(await server.client.get('count:injected')).toBe('100');
  await Promise.all([first.application, second.application].map(end));
  expect(await Promise.all([first.client.ping(), second.client.ping()])).toEqual(['PONG', 'PONG']);
  // Only the two clients are left: the store has closed the connections of its own.
  await until('the connections of the stores are closed', async () => (await connections()) === before + 2);
});

test.each([
  ['is kept', false],
  ['is ended by its module', true],
])('a request in flight at the shutdown ends, and releases its lock, where the client %s', async (_, ends) => {
  const { application, counters, client, url } = await start({ ends });
  let leave = (): void => undefined;
  counters.mayLeave = new Promise<void>((resolve) => (leave = resolve));
  const name = `in flight ${ends}`;
  const answer = fetch(`${url}/count/${encodeURIComponent(name)}`, { headers: { connection: 'close' } });
  await until('the request is inside', () => counters.entered === 1);
  const during = await locksLeft();
  const closing = end(application);
  await until('the server takes no more requests', () => !(application.getHttpServer() as { listening: boolean }).listening);
  leave();
  expect([(await answer).status, await (await answer).text()]).toEqual([200, '1']);
  await closing;
  expect(during).not.toEqual([]);
  expect(await locksLeft()).toEqual([]);
  await until('the client is as its module has left it', () => client.status === (ends ? 'end' : 'ready'));
});

test('what is held at the shutdown is released, though the client is ended before it', async () => {
  const { application } = await start({ ends: true });
  const held = await application.get(LockService).acquire('left behind', { ttl: '10m' });
  expect(await locksLeft()).not.toEqual([]);
  await end(application);
  expect(held.isHeld()).toBe(false);
  expect(await locksLeft()).toEqual([]);
});

test('calls go on, one at a time, while all connections are killed again and again', async () => {
  const [first, second] = await Promise.all([start(), start()]);
  const calls = Array.from({ length: 200 }, (_, call) => (call % 2 === 0 ? first : second).counters.count('killed'));
  const outcomes = Promise.allSettled(calls);
  for (let entered = 20; entered < calls.length; entered += 20) {
    await until(`${entered} calls`, () => first.counters.entered + second.counters.entered >= entered);
    // Those that were killed last may not be back.
    await until(
      'connections are killed',
      async () => Number(await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')) > 0,
    );
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  }
  expect((await outcomes).filter(({ status }) => status === 'rejected')).toEqual([]);
  expect(await server.client.get('count:killed')).toBe('200');
  expect(await Promise.all([first.client.ping(), second.client.ping()])).toEqual(['PONG', 'PONG']);
  await until('no lock is left', async () => (await locksLeft()).length === 0);
});
