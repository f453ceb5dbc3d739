import 'reflect-metadata';
import { jest } from '@jest/globals';
import {
  Controller,
  Get,
  Inject,
  Injectable,
  Logger,
  Module,
  type DynamicModule,
  type ModuleMetadata,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  DistributedLock,
  InjectLocks,
  LOCK_CHANNEL,
  LockExceptionFilter,
  LockModule,
  LockService,
  LockStoreError,
  MemoryLockStore,
  outsideLocks,
  RedisLockStore,
  type LockEvent,
  type LockStore,
  type LockModuleOptions,
  type LockOptionsFactory,
} from 'nestjs-distributed-lock';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import request from 'supertest';
import { run } from '../package/run';
import { NEST_MAJOR } from '../support/nest-major';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { saying } from '../support/saying';
import { sleep as virtualSleep, startTime, stopTime } from '../support/virtual-time';

@Injectable()
class Balance {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string): Promise<string> {
    return customerId;
  }
}

@Injectable()
class Factory implements LockOptionsFactory {
  createLockOptions(): LockModuleOptions {
    return { store: new MemoryLockStore() };
  }
}

@Module({ providers: [Factory], exports: [Factory] })
class Settings {}

describe('registration', () => {
  test('is global also where a spread has set isGlobal to undefined', () => {
    const spread = { isGlobal: undefined } as object;
    expect(LockModule.forRoot({ store: new MemoryLockStore(), ...spread }).global).toBe(true);
  });

  test.each([
    ['forRoot', LockModule.forRoot({ store: new MemoryLockStore() })],
    [
      'forRootAsync with useFactory',
      LockModule.forRootAsync({ imports: [Settings], inject: [Factory], useFactory: (factory: Factory) => factory.createLockOptions() }),
    ],
    ['forRootAsync with an async useFactory', LockModule.forRootAsync({ useFactory: async () => ({ store: new MemoryLockStore() }) })],
    ['forRootAsync with useClass', LockModule.forRootAsync({ useClass: Factory })],
    ['forRootAsync with useExisting', LockModule.forRootAsync({ imports: [Settings], useExisting: Factory })],
  ])('%s', async (_, imported) => {
    const module = await Test.createTestingModule({ imports: [imported], providers: [Balance] }).compile();
    expect(await module.get(Balance).credit('1')).toBe('1');
    expect(await module.get(LockService).withLock('k', () => 'ran')).toBe('ran');
    await module.close();
  });

  test('the defaults of the module are those of every call', async () => {
    const imports = [LockModule.forRoot({ store: new MemoryLockStore(), ttl: '2s', wait: 20 })];
    const locks = (await Test.createTestingModule({ imports }).compile()).get(LockService);
    await locks.withLock('k', async (lock) => {
      expect(lock.remainingMs()).toBeLessThan(2_000);
      await outsideLocks(() => expect(locks.withLock('k', () => 1)).rejects.toThrow(saying(/within 20 ms/)));
    });
  });
});

describe("users' own tests", () => {
  @Injectable()
  class Slow {
    @DistributedLock({ key: 'k', ttl: 1_000 })
    async run(): Promise<string> {
      await sleep(1);
      return this.nested();
    }
    @DistributedLock('k')
    async nested(): Promise<string> {
      return 'ran';
    }
  }

  async function testing(): Promise<TestingModule> {
    return Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Slow] }).compile();
  }

  test('forTesting has no timers while nothing is contended, and no lease ends under fake timers', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
    try {
      const module = await testing();
      const locks = module.get(LockService);
      const lock = await locks.acquire('k', { ttl: 1_000 });
      expect(jest.getTimerCount()).toBe(0);
      jest.advanceTimersByTime(3_600_000);
      expect(lock.isHeld()).toBe(true);
      expect(await lock.run(() => module.get(Slow).nested())).toBe('ran');
      await lock.release();
      expect(jest.getTimerCount()).toBe(0);
      await module.close();
    } finally {
      jest.useRealTimers();
    }
  });

  test('locked methods and generators run, alone, while fake timers hold up microtasks too', async () => {
    @Injectable()
    class Pages {
      running = 0;
      @DistributedLock('pages')
      async *pages(): AsyncGenerator<number> {
        yield ++this.running;
        this.running--;
      }
    }
    const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Slow, Pages] }).compile();
    const [slow, pages] = [module.get(Slow), module.get(Pages)];
    jest.useFakeTimers();
    try {
      const read = async (): Promise<number[]> => {
        const all: number[] = [];
        for await (const page of pages.pages()) {
          all.push(page);
        }
        return all;
      };
      expect(await Promise.all([read(), read()])).toEqual([[1], [1]]);
      expect(await slow.nested()).toBe('ran');
    } finally {
      jest.useRealTimers();
    }
    await module.close();
  });

  test('forTesting runs methods alone, too', async () => {
    const slow = (await testing()).get(Slow);
    expect(await Promise.all([slow.run(), slow.run()])).toEqual(['ran', 'ran']);
  });

  test('forTesting has the stores that the code names', async () => {
    @Injectable()
    class Reports {
      constructor(@InjectLocks('reports') readonly locks: LockService) {}
      @DistributedLock({ key: 'k', store: 'reports' })
      async write(): Promise<string> {
        return 'ran';
      }
    }
    const imports = [LockModule.forTesting({ storeNames: ['reports'] })];
    const reports = (await Test.createTestingModule({ imports, providers: [Reports] }).compile()).get(Reports);
    expect(await reports.write()).toBe('ran');
    expect(await reports.locks.withLock('k', () => 'ran')).toBe('ran');
  });

  test("an application's own module runs on the locks of forTesting", async () => {
    const inMemory = (await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile()).get(LockService);
    const imports = [LockModule.forRoot({ store: new RedisLockStore('redis://127.0.0.1:1') })];
    const module = await Test.createTestingModule({ imports, providers: [Slow] })
      .overrideProvider(LockService)
      .useValue(inMemory)
      .compile();
    expect(await module.get(Slow).run()).toBe('ran');
    await module.close();
  });

  test('attach makes an object work that Nest did not make', async () => {
    const locks = (await testing()).get(LockService);
    const slow = locks.attach(new Slow());
    expect(slow).toBeInstanceOf(Slow);
    expect(await slow.run()).toBe('ran');
    expect(Object.keys(slow)).toEqual([]);
  });

  test('overrideProvider(LockService): a replacement that runs the body and returns its result, without a connection', async () => {
    const keys: unknown[] = [];
    const replacement = {
      withLock: (key: unknown, _options: unknown, body: () => unknown) => {
        keys.push(key);
        return body();
      },
    };
    const nowhere = new RedisLockStore('redis://127.0.0.1:1');
    const imports = [LockModule.forRoot({ stores: { default: nowhere, reports: new MemoryLockStore() } })];
    const module = await Test.createTestingModule({ imports, providers: [Slow] })
      .overrideProvider(LockService)
      .useValue(replacement)
      .compile();
    expect(await module.get(Slow).run()).toBe('ran');
    expect(keys).toEqual(['k', 'k']);
    await module.close();
  });
});

test('a replacement that delegates to the real service may be busy', async () => {
  @Injectable()
  class Job {
    @DistributedLock({ key: 'job', onBusy: 'skip' })
    async run(): Promise<string | undefined> {
      return 'ran';
    }
  }
  const real = (await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile()).get(LockService);
  const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Job] })
    .overrideProvider(LockService)
    .useValue({ withLock: (...args: Parameters<LockService['withLock']>) => real.withLock(...args) })
    .compile();
  expect(await module.get(Job).run()).toBe('ran');
  await using held = await real.acquire('job');
  expect(held.isHeld()).toBe(true);
  expect(await module.get(Job).run()).toBeUndefined();
});

test('a replacement whose store is away has the method answer, and is not taken for a mock', async () => {
  @Injectable()
  class Job {
    @DistributedLock({ key: 'job', onUnavailable: (error) => error.code })
    async run(): Promise<string> {
      return 'ran';
    }
  }
  const away = new LockStoreError('no answer', 'job', { unknown: true });
  const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Job] })
    .overrideProvider(LockService)
    .useValue({ withLock: async (_key: string, options: { onUnavailable(error: Error): unknown }) => options.onUnavailable(away) })
    .compile();
  expect(await module.get(Job).run()).toBe('LOCK_STORE');
});

describe('events and logs', () => {
  test('show no control characters of a key or a caller raw', async () => {
    const lines: string[] = [];
    const logs = (['error', 'warn'] as const).map((level) =>
      jest.spyOn(Logger.prototype, level).mockImplementation((...args: unknown[]) => void lines.push(args.join(' '))),
    );
    const store = new MemoryLockStore();
    const module = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })] }).compile();
    const locks = module.get(LockService);
    const key = 'a\u001b[2J\nb';
    const lost = await locks
      .withLock(key, { by: 'job\r\u009b' }, async (lock) =>
        locks.operations.forceRelease(key, { fence: lock.fence, by: 'a\u001bda', reason: 'It\nhangs.' }),
      )
      .catch((error: unknown) => error as Error);
    await module.close();
    logs.forEach((log) => log.mockRestore());

    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(String.raw`Lock "a\u001b[2J\u000ab" of `);
    expect(lines[0]).toContain(String.raw`job\u000d\u009b was lost`);
    expect(lines[1]).toMatch(
      /^Lock "a\\u001b\[2J\\u000ab" was released by force at fence \d+, by a\\u001bda from .* \(pid \d+\): It\\u000ahangs\.$/,
    );
    // eslint-disable-next-line no-control-regex -- control characters are what it looks for
    expect(`${lines.join('')}${(lost as Error).message}`).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });

  test('tell what operators need to see, and no owners and tickets', async () => {
    const events: LockEvent[] = [];
    const listener = (event: unknown): number => events.push(event as LockEvent);
    const logged: unknown[] = [];
    const logs = (['error', 'warn'] as const).map((level) =>
      jest.spyOn(Logger.prototype, level).mockImplementation((...args: unknown[]) => void logged.push(...args)),
    );
    subscribe(LOCK_CHANNEL, listener);
    const server = await RedisServer.start();
    const store = new RedisLockStore(server.url);
    const module = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })], providers: [Balance] }).compile();
    const locks = module.get(LockService);
    await locks.withLock('k', { by: 'Balance.credit' }, async () => {
      const giveUp = new AbortController();
      const waiting = outsideLocks(() => locks.withLock('k', { wait: '1m', signal: giveUp.signal }, () => 1)).catch(() => undefined);
      await until('the wait', async () => (await locks.operations.health()).waitingHere === 1);
      giveUp.abort();
      await waiting;
    });
    await locks.withLock('k', () => server.client.flushall()).catch(() => undefined);
    const secrets: string[] = [];
    await locks
      .withLock('k', async (lock) => {
        secrets.push(lock.makeTicket(), ...(await server.client.hmget('lock:lock:{k}', 'owner')).map(String));
        await server.kill();
      })
      .catch(() => undefined);
    await locks.acquire('k', { wait: 0 }).catch(() => undefined);
    await module.close();
    await server.stop();
    unsubscribe(LOCK_CHANNEL, listener);
    logs.forEach((log) => log.mockRestore());

    const types = new Set(events.map(({ type }) => type));
    // A server that is slow once answers again before it is gone, and a section that takes long is renewed.
    types.delete('storeAnswered');
    types.delete('renewed');
    expect(types).toEqual(new Set(['acquired', 'waited', 'refused', 'released', 'lost', 'releaseFailed', 'storeUnavailable']));
    expect(events.find(({ type }) => type === 'acquired')).toMatchObject({
      store: 'default',
      key: 'k',
      by: expect.stringMatching(/\(pid \d+\) Balance\.credit$/) as unknown,
    });
    expect(events.find(({ type }) => type === 'waited')).toMatchObject({ gaveUp: 'aborted', waitedMs: expect.any(Number) as unknown });
    expect(events.find(({ type }) => type === 'lost')).toMatchObject({ reason: 'expired' });
    expect(logged).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Lock "k" of .* was lost after \d+ ms: the store no longer has it\. It was deleted/),
        expect.stringMatching(/store 'default' is unavailable/),
      ]),
    );
    const told = JSON.stringify([events, logged, events.map((event) => ('error' in event ? event.error.detail : ''))]);
    expect(secrets).toHaveLength(2);
    for (const secret of secrets) {
      expect(told).not.toContain(secret);
    }
  });
});

describe('shutdown', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  test("locks work from everybody's onModuleInit until the server has drained, then nothing is left behind", async () => {
    const phases: string[] = [];
    @Injectable()
    class Early implements OnModuleInit, OnApplicationShutdown {
      constructor(@Inject(LockService) private readonly locks: LockService) {}
      onModuleInit(): Promise<unknown> {
        return this.locks.withLock('k', () => phases.push('init'));
      }
      onModuleDestroy(): Promise<unknown> {
        return this.locks.withLock('k', () => phases.push('destroy'));
      }
      beforeApplicationShutdown(): Promise<unknown> {
        return this.locks.withLock('k', () => phases.push('before shutdown'));
      }
      onApplicationShutdown(): void {
        phases.push('shutdown');
      }
    }
    @Controller()
    class Requests {
      @Get()
      @DistributedLock('request')
      async slow(): Promise<string> {
        phases.push('request');
        await until('that the application shuts down', () => phases.includes('before shutdown'));
        return this.nested();
      }
      @DistributedLock('another')
      async nested(): Promise<string> {
        return 'drained';
      }
    }
    const client = new Redis(server.port);
    const module = await Test.createTestingModule({
      imports: [LockModule.forRootAsync({ useFactory: () => ({ store: new RedisLockStore(client) }) })],
      providers: [Early],
      controllers: [Requests],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0);
    const inFlight = request(await app.getUrl())
      .get('/')
      .then(({ text }) => text);
    await until('the request', () => phases.includes('request'));
    await module.get(LockService).acquire('left behind');
    await app.close();
    expect(await inFlight).toBe('drained');
    expect(phases).toEqual(['init', 'request', 'destroy', 'before shutdown', 'shutdown']);
    await expect(module.get(LockService).acquire('k')).rejects.toMatchObject({ reason: 'shutdown' });
    // The lock of a check which a slow server cut short ends by itself.
    expect((await server.client.keys('lock:lock:*')).filter((key) => !key.includes('start-up check'))).toEqual([]);
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });

  describe('a warning says so where shutdown hooks are off', () => {
    let warnings: string[];
    beforeEach(() => {
      warnings = [];
      startTime();
      jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void warnings.push(String(message)));
    });
    afterEach(() => {
      stopTime();
      jest.restoreAllMocks();
    });

    /** An application whose store connects, and which needs a while to start. */
    async function start(): Promise<TestingModule> {
      const store = Object.assign(new MemoryLockStore(), { open: async () => undefined });
      const slow = { provide: 'slow', useValue: { onApplicationBootstrap: () => virtualSleep(4_000) } };
      return (await Test.createTestingModule({ imports: [LockModule.forRoot({ store })], providers: [slow] }).compile()).init();
    }

    test.each([
      ['where none are on, once', [], [expect.stringContaining('Shutdown hooks are off for SIGTERM')]],
      ['not where they are on', ['SIGTERM'], []],
      [
        'also where they are on, and not for the signal that stops a process',
        ['SIGINT'],
        [expect.stringContaining('Shutdown hooks are off for SIGTERM')],
      ],
    ])('%s, after a start that takes long', async (_, signals, said) => {
      const module = await start();
      if (signals.length > 0) {
        module.enableShutdownHooks(signals);
      }
      await virtualSleep(60_000);
      await module.close();
      expect(warnings).toEqual(said);
    });

    test('not after the application has ended', async () => {
      await (await start()).close();
      expect(jest.getTimerCount()).toBe(0);
      expect(warnings).toEqual([]);
    });
  });
});

describe('several modules and applications', () => {
  async function warnings(...imports: DynamicModule[]): Promise<string[]> {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    try {
      const module = await Test.createTestingModule({ imports }).compile();
      await module.init();
      await module.close();
      return warn.mock.calls.map(([message]) => String(message)).filter((message) => message.includes('imported'));
    } finally {
      warn.mockRestore();
    }
  }

  test('a warning, once, says that LockModule is imported twice', async () => {
    const once = LockModule.forTesting();
    expect(await warnings(once, once)).toEqual([]);
    expect(await warnings(LockModule.forTesting(), LockModule.forTesting())).toEqual([
      expect.stringMatching(/^LockModule is imported 2 times, .* do not re-enter .* once, in the root module\.$/),
    ]);
  });

  describe('on one store object', () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await RedisServer.start();
    });
    afterAll(() => server.stop());

    async function open(store: LockStore, prefix?: string): Promise<TestingModule> {
      const module = await Test.createTestingModule({ imports: [LockModule.forRoot({ store, prefix })] }).compile();
      return module.init();
    }

    test.each<[string, () => LockStore]>([
      ['Redis', () => new RedisLockStore(server.url)],
      ['memory', () => new MemoryLockStore()],
    ])('the store of two applications outlives the first, and ends with the last: %s', async (name, make) => {
      const store = make();
      const [first, second] = [await open(store), await open(store)];
      const held = await second.get(LockService).acquire('held');
      await first.close();
      expect(await second.get(LockService).withLock('k', () => 'ran')).toBe('ran');
      expect(await second.get(LockService).operations.inspect('held')).toMatchObject({ fence: held.fence });
      await second.close();
      if (name === 'Redis') {
        await expect(store.operator?.inspect('k')).rejects.toThrow('RedisLockStore was closed');
      }
      const third = await open(store);
      expect(await third.get(LockService).withLock('held', () => 'ran')).toBe('ran');
      await third.close();
    });

    test.each<[string, () => LockStore, 'before' | 'after']>([
      ['memory, which closes first', () => new MemoryLockStore(), 'before'],
      ['memory', () => new MemoryLockStore(), 'after'],
      ['Redis, which closes first', () => new RedisLockStore(server.url), 'before'],
      ['Redis', () => new RedisLockStore(server.url), 'after'],
    ])('an application that starts while another one closes hears what the store is told: %s', async (_, make, closes) => {
      for (let round = 0; round < 5; round++) {
        const store = make();
        const first = await open(store);
        const closing = closes === 'before' ? first.close() : undefined;
        const starting = open(store);
        await Promise.all([starting, closing ?? first.close()]);
        const locks = (await starting).get(LockService);
        await until('that it hears', async () => {
          const held = await locks.acquire('k', { ttl: '60s' });
          // Long before a renewal finds it out.
          const hears = new Promise((resolve) =>
            held.signal.addEventListener('abort', () => resolve((held.signal.reason as { reason: string }).reason)),
          );
          await locks.operations.forceRelease('k', { fence: held.fence });
          const reason = await Promise.race([hears, sleep(2_000)]);
          await held.release().catch(() => undefined);
          return reason === 'forced';
        });
        await (await starting).close();
      }
    });

    test('a store is opened again once it is closed', async () => {
      const steps: string[] = [];
      let hasClosed = (): void => undefined;
      const store = Object.assign(new MemoryLockStore(), {
        open: async () => void steps.push('open'),
        close: () => {
          steps.push('closing');
          return new Promise<void>((resolve) => {
            hasClosed = () => {
              steps.push('closed');
              resolve();
            };
          });
        },
      });
      const closing = (await open(store)).close();
      await until('that it closes', () => steps.includes('closing'));
      const starting = open(store);
      await sleep(20);
      hasClosed();
      await closing;
      const second = await starting;
      expect(steps).toEqual(['open', 'closing', 'closed', 'open']);
      const last = second.close();
      await until('that it closes again', () => steps.length === 5);
      hasClosed();
      await last;
    });

    test('a store whose close has failed can be opened again, also by one that waits for it', async () => {
      const { openStore, closeStore } = await import('../../lib/nest/application/open-stores');
      const opened = jest.fn(async () => undefined);
      const close = (): Promise<void> => sleep(20).then(() => Promise.reject(new Error('failed')));
      const store = Object.assign(new MemoryLockStore(), { open: opened, close });
      const options = { prefix: 'lock', warn: () => undefined };
      const opening = openStore(store, 'default', options);
      const closing = opening.then(() => closeStore(store, opening));
      await opening;
      await expect(Promise.all([closing, sleep(1).then(() => openStore(store, 'default', options))])).rejects.toThrow('failed');
      await until('the next start', () => opened.mock.calls.length === 2);
    });

    test('users by two copies of this package are counted together', async () => {
      const opened = jest.fn(async () => undefined);
      const closed = jest.fn(async () => undefined);
      const store = Object.assign(new MemoryLockStore(), { open: opened, close: closed });
      const options = { prefix: 'lock', warn: () => undefined };
      const uses: (() => Promise<void>)[] = [];
      for (let copies = 0; copies < 2; copies++) {
        await jest.isolateModulesAsync(async () => {
          const { openStore, closeStore } = await import('../../lib/nest/application/open-stores');
          const opening = openStore(store, 'default', options);
          await opening;
          uses.push(() => closeStore(store, opening));
        });
      }
      expect(opened).toHaveBeenCalledTimes(1);
      await uses[0]?.();
      expect(closed).not.toHaveBeenCalled();
      await uses[1]?.();
      expect(closed).toHaveBeenCalledTimes(1);
    });

    test('another prefix is refused, and breaks nothing', async () => {
      const store = new RedisLockStore(server.url);
      const first = await open(store, 'one');
      await expect(open(store, 'two')).rejects.toThrow(
        /the store 'default' is open already with the prefix 'one'.* Make a store for each prefix/,
      );
      expect(await first.get(LockService).withLock('k', () => 'ran')).toBe('ran');
      await first.close();
    });
  });
});

describe('a boot that fails', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  async function connections(): Promise<number> {
    return ((await server.client.client('LIST')) as string).trim().split('\n').length;
  }

  @Injectable()
  class FailsAtOnce {
    constructor() {
      throw new Error('at once');
    }
  }
  @Controller()
  class FailingController {
    constructor() {
      throw new Error('a controller');
    }
  }

  test.each<[string, ModuleMetadata]>([
    ['a provider at once', { providers: [FailsAtOnce] }],
    ['a controller', { controllers: [FailingController] }],
    [
      'a factory, later',
      {
        providers: [
          {
            provide: 'later',
            inject: [LockService],
            useFactory: async (locks: LockService) => {
              await locks.withLock('k', () => sleep(30));
              throw new Error('later');
            },
          },
        ],
      },
    ],
  ])('in %s leaves no connection of the store open, and the store can be used again', async (_, metadata) => {
    const before = await connections();
    const store = new RedisLockStore(server.url);
    const boot = (parts: ModuleMetadata): Promise<TestingModule> =>
      Test.createTestingModule({ ...parts, imports: [LockModule.forRoot({ store })] }).compile();
    await expect(boot(metadata)).rejects.toThrow(/^(at once|a controller|later)$/);
    await until('the connections are closed', async () => (await connections()) === before);
    const module = await boot({});
    expect(await module.get(LockService).withLock('k', () => 'ran')).toBe('ran');
    expect(await connections()).toBeGreaterThan(before);
    await module.close();
    await until('the connections are closed', async () => (await connections()) === before);
  });

  test('in an onModuleInit leaves no connection once the application, or before Nest 12 the store, is closed', async () => {
    const before = await connections();
    const fails = { onModuleInit: () => Promise.reject(new Error('in onModuleInit')) };
    const store = new RedisLockStore(server.url);
    const imports = [LockModule.forRoot({ store })];
    const module = await Test.createTestingModule({ imports, providers: [{ provide: 'fails', useValue: fails }] }).compile();
    await expect(module.init()).rejects.toThrow('in onModuleInit');
    expect(await connections()).toBeGreaterThan(before);
    const closing = module.close();
    // Older versions run no hook, and reject with what the start has failed with.
    await (NEST_MAJOR >= 12 ? closing : closing.catch(() => store.close()));
    await until('the connections are closed', async () => (await connections()) === before);
  });

  /** In a process of its own: whether it ends by itself is what is asked. */
  test('in an onModuleInit of an application context lets the process end once the store is closed', async () => {
    const code = `
      import { NestFactory } from '@nestjs/core';
      import { LockModule, RedisLockStore } from 'nestjs-distributed-lock';
      const store = new RedisLockStore('${server.url}');
      const module = {
        module: class {},
        imports: [LockModule.forRoot({ store })],
        providers: [{ provide: 'fails', useValue: { onModuleInit: () => Promise.reject(new Error('in onModuleInit')) } }],
      };
      try {
        await NestFactory.createApplicationContext(module, { logger: false });
      } catch (error) {
        console.log(error.message);
        await store.close();
      }`;
    const { stdout } = await run('node', ['--input-type=module', '--eval', code], { cwd: '.', timeout: 120_000 });
    expect(stdout).toBe('in onModuleInit\n');
  }, 130_000);
});

test('a store that is still opening when another one fails is closed as soon as it is open', async () => {
  class SlowStore extends MemoryLockStore {
    states: string[] = [];
    async open(): Promise<void> {
      await sleep(50);
      this.states.push('open');
    }
    override async close(): Promise<void> {
      this.states.push('closed');
    }
  }
  class FailingStore extends MemoryLockStore {
    open(): Promise<void> {
      return Promise.reject(new Error('no rights'));
    }
  }
  const slow = new SlowStore();
  const stores = { default: new FailingStore(), slow };
  await expect(Test.createTestingModule({ imports: [LockModule.forRoot({ stores })] }).compile()).rejects.toThrow('no rights');
  await until('the store is closed', () => slow.states.at(-1) === 'closed');
  expect(slow.states).toEqual(['open', 'closed']);
});

describe('LockExceptionFilter', () => {
  test('answers busy over HTTP with Retry-After and a code, and tells no key', async () => {
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    @Controller()
    class Customers {
      @Get()
      @DistributedLock({ key: 'secret-key', wait: 0 })
      async slow(): Promise<void> {
        await left;
      }
    }
    const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], controllers: [Customers] }).compile();
    const app = module.createNestApplication({ logger: false });
    app.useGlobalFilters(new LockExceptionFilter());
    await app.init();
    const http = request(app.getHttpServer());
    // The one that is refused ends the other.
    const responses = await Promise.all([1, 2].map(() => http.get('/').then((response) => (leave(), response))));
    const busy = responses.find(({ status }) => status === 423);
    expect(busy?.headers['retry-after']).toBe('1');
    expect(busy?.body).toEqual({
      statusCode: 423,
      message: 'Locked',
      code: 'LOCK_NOT_ACQUIRED',
      retryAfterMs: expect.any(Number) as unknown,
    });
    expect(busy?.text).not.toContain('secret-key');
    await app.close();
  });
});
