import 'reflect-metadata';
import {
  Controller,
  Global,
  Inject,
  Injectable,
  Module,
  Scope,
  type INestApplicationContext,
  type LoggerService,
  type Provider,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, CronExpression, Interval, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import {
  assertLocked,
  Leader,
  LOCK_CHANNEL,
  LockModule,
  LockService,
  LockStoreError,
  MemoryLockStore,
  RedisLockStore,
  type HoldRecord,
  type Lock,
  type LockEvent,
  type LockInspection,
} from 'nestjs-distributed-lock';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Prices, type Feed } from '../readme/leader';
import { healthWith } from '../support/health-with';
import { NEST_MAJOR } from '../support/nest-major';
import { answered } from '../support/patient';
import { RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';
import { STORES, type StoreKind, type StorePlace } from '../support/stores';
import { until } from '../support/until';
import { playTime, sleep } from '../support/virtual-time';

/** The diary of the leaders of all applications, in order: `began`, then `told`, then `ended`. */
let diary: string[];
/** The leaders that run at a time, and the most that ever did. */
let running: string[];
let most: number;
/** Where applications write. */
let logger: LoggerService | false;

@Injectable()
class Poller {
  constructor(@Inject('NAME') private readonly name: string) {}

  @Leader({ key: 'poller', pause: 100 })
  async poll(lock: Lock): Promise<void> {
    running.push(this.name);
    most = Math.max(most, running.length);
    diary.push(`${this.name} began`);
    if (!lock.signal.aborted) {
      await once(lock.signal, 'abort');
    }
    diary.push(`${this.name} told ${(lock.signal.reason as { reason: string }).reason}`);
    await sleep(50);
    running.splice(running.indexOf(this.name), 1);
    diary.push(`${this.name} ended`);
  }
}

beforeEach(() => {
  diary = [];
  running = [];
  most = 0;
  logger = false;
});

const began = (): string[] => diary.filter((line) => line.endsWith('began')).map((line) => line.split(' ')[0] as string);

async function boot(imports: ReturnType<typeof LockModule.forRoot>, ...providers: Provider[]): Promise<INestApplicationContext> {
  @Module({ imports: [imports], providers })
  class AppModule {}

  return NestFactory.createApplicationContext(AppModule, { logger, abortOnError: false });
}

describe.each(['memory', 'redis', 'postgres', 'mysql'])('three applications on the %s store', (name) => {
  const kind = STORES[name] as StoreKind;
  let place: StorePlace;
  let apps: Map<string, INestApplicationContext>;

  beforeAll(async () => {
    place = await kind.start();
  });
  afterAll(() => place.stop());

  const start = async (ttl: number): Promise<void> => {
    apps = new Map();
    for (const app of ['a', 'b', 'c']) {
      const locks = LockModule.forRoot({ store: await place.make(), ttl });
      apps.set(app, await boot(locks, Poller, { provide: 'NAME', useValue: app }));
      // The first leads, and the others queue in this order.
      await until('that it leads or stands by', async () => {
        const found = await inspected('a');
        return found !== null && found.waiters.length === apps.size - 1;
      });
    }
  };
  const locksOf = (app: string): LockService => (apps.get(app) as INestApplicationContext).get(LockService);
  const inspected = (app: string): Promise<LockInspection | null> => answered(() => locksOf(app).operations.inspect('poller'));
  const stop = async (): Promise<void> => {
    for (const app of apps.values()) {
      await app.close();
    }
  };

  test('one leads, and all see which; when its application closes, its code ends, and the next one leads at once', async () => {
    await start(60_000);
    expect(began()).toEqual(['a']);
    expect(await inspected('c')).toMatchObject({ by: expect.stringContaining(`(pid ${process.pid}) Poller.poll as leader`) as unknown });
    await apps.get('a')?.close();
    await until('the next leader', () => began().length === 2);
    // It is b, unless that stood still for as long as the lock is reserved for it.
    const next = began()[1] as string;
    expect(diary).toEqual(['a began', 'a told shutdown', 'a ended', `${next} began`]);
    await apps.get(next)?.close();
    await until('the last leader', () => began().length === 3);
    expect(most).toBe(1);
    await stop();
    const last = began()[2] as string;
    expect(diary.slice(-3)).toEqual([`${last} began`, `${last} told shutdown`, `${last} ended`]);
    expect(began().toSorted()).toEqual(['a', 'b', 'c']);
    expect(running).toEqual([]);
  });

  test('a leader whose lock was released by force is told, and stands by again, last in the queue', async () => {
    // Where it is notified, no renewal comes first.
    await start(kind.offers.includes('forced') ? 60_000 : 3_000);
    if (kind.offers.includes('forced')) {
      await Promise.all([...apps.keys()].map((app) => healthWith(locksOf(app))));
    }
    // One that stood still for as long as the lock was reserved for it queues anew, and the order begins anew.
    for (let round = 0; round < 6 && !inTurn(began()); round++) {
      const before = began().length;
      const held = await inspected('b');
      await answered(() => locksOf('b').operations.forceRelease('poller', { fence: held?.fence as number }));
      await until('the next one to lead', () => began().length > before);
      await until('that the old one has ended, and stands by', async () => {
        return running.length === 1 && (await inspected('b'))?.waiters.length === 2;
      });
    }
    expect(inTurn(began()) || began()).toBe(true);
    const forced = began().slice(0, -1);
    expect(diary.filter((line) => line.includes('told'))).toEqual(forced.map((app) => toldBy(`${app} told forced`)));
    await stop();
  });

  /** Whether the last one to lead was the first of the last three before it, who all differ. */
  function inTurn(leaders: readonly string[]): boolean {
    const [first, ...others] = leaders.slice(-4);
    return new Set(others).size === 3 && others[2] === first;
  }

  /** Where nobody is notified of a forced release, the next renewal finds the loss. */
  function toldBy(line: string): string {
    return kind.offers.includes('forced') ? line : line.replace('forced', 'expired');
  }
});

/** Answers nothing while it is away. */
class UnsteadyStore extends MemoryLockStore {
  isAway = false;

  override acquire(...args: Parameters<MemoryLockStore['acquire']>): ReturnType<MemoryLockStore['acquire']> {
    return this.isAway ? this.#fail(args[0]) : super.acquire(...args);
  }

  override renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    return this.isAway ? this.#fail(holds[0]) : super.renew(holds);
  }

  #fail(hold: HoldRecord | undefined): Promise<never> {
    return Promise.reject(new LockStoreError('no answer', hold?.key ?? '', { unknown: true }));
  }
}

describe('a store that goes away', () => {
  playTime();
  let events: LockEvent[];
  const onEvent = (event: unknown): void => void events.push(event as LockEvent);

  beforeEach(() => {
    events = [];
    subscribe(LOCK_CHANNEL, onEvent);
  });
  afterEach(() => unsubscribe(LOCK_CHANNEL, onEvent));

  test('the leader is told when its lease is over; it leads again when the store is back, and the log has a few lines only', async () => {
    const lines: string[] = [];
    const write = (message: unknown, ...rest: unknown[]): unknown => rest.at(-1) === 'LockModule' && lines.push(String(message));
    logger = { log: write, error: write, warn: write };
    const store = new UnsteadyStore();
    const app = await boot(LockModule.forRoot({ store, ttl: 5_000 }), Poller, { provide: 'NAME', useValue: 'a' });
    await until('a leader', () => began().length === 1);
    store.isAway = true;
    const awayAt = performance.now();
    await until('that it is told', () => diary.includes('a told expired'));
    expect(performance.now() - awayAt).toBeLessThan(5_000);
    await sleep(60_000);
    expect(began()).toHaveLength(1);
    store.isAway = false;
    await until('a leader again', () => began().length === 2);
    await app.close();
    const changes = events.filter(({ type }) => type === 'leader').map((event) => (event as { change: string }).change);
    expect(changes).toEqual(['standby', 'elected', 'revoked', 'ended', 'standby', 'elected', 'revoked', 'ended']);
    expect(lines.filter((line) => /leads "poller"/.test(line))).toHaveLength(4);
    expect(lines.length).toBeLessThan(12);
  });
});

describe('what can be marked', () => {
  playTime();

  const memory = (): ReturnType<typeof LockModule.forRoot> => LockModule.forRoot({ store: new MemoryLockStore() });
  const name: Provider = { provide: 'NAME', useValue: 'a' };

  test('a provider or a controller, and inherited methods; an alias makes no second candidate', async () => {
    class Base {
      @Leader('base')
      async base(lock: Lock): Promise<void> {
        diary.push(`base ${lock.keys[0]}`);
        await once(lock.signal, 'abort');
      }
    }

    @Controller()
    class Web extends Base {
      @Leader('own')
      async own(lock: Lock): Promise<void> {
        diary.push(`own ${lock.keys[0]}`);
        await once(lock.signal, 'abort');
      }
    }

    @Module({ imports: [memory()], controllers: [Web], providers: [Poller, name, { provide: 'ALIAS', useExisting: Poller }] })
    class AppModule {}

    const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
    await until('all leaders', () => diary.length === 3);
    expect(diary.toSorted()).toEqual(['a began', 'base base', 'own own']);
    await sleep(60_000);
    expect(await app.get(LockService).operations.inspect('poller')).toMatchObject({ waiters: [], waitingHere: 0 });
    await app.close();
  });

  test('an instance that a factory made, once it is attached', async () => {
    const factory = { provide: 'POLLER', inject: [LockService], useFactory: (locks: LockService) => locks.attach(new Poller('made')) };
    const app = await boot(memory(), factory);
    await until('a leader', () => began().length === 1);
    await app.close();
    await expect(boot(memory(), { provide: 'POLLER', useFactory: () => new Poller('made') })).rejects.toThrow(
      saying(/Poller\.poll: @Leader\(\) has no LockService.*lockService\.attach/),
    );
  });

  test('a static method, wrong options and an unknown store are refused', async () => {
    const decorate = (options: unknown, target: object = Poller.prototype): void =>
      Leader(options as string)(target as never, 'poll', { value: async () => undefined });
    expect(() => decorate('role', Poller)).toThrow(saying(/Poller\.poll: @Leader\(\) does not work on static methods/));
    expect(() => decorate('', class {}.prototype)).toThrow(saying(/key/));
    expect(() => decorate({ key: 'role', ttl: 1 }, class {}.prototype)).toThrow(saying(/ttl is 1/));
    expect(() => decorate({ key: 'role', pause: 'soon' }, class {}.prototype)).toThrow(saying(/pause is/));
    expect(() => decorate({ key: 'role', wait: 1 }, class {}.prototype)).toThrow(saying(/'wait' is no option here/));
    @Injectable()
    class Elsewhere {
      @Leader({ key: 'role', store: 'reports' })
      async lead(): Promise<void> {}
    }
    await expect(boot(memory(), Elsewhere)).rejects.toThrow(saying(/no store 'reports'/));
  });

  test('nobody leads before the application starts, nor where the LockService was replaced by a mock', async () => {
    const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Poller, name] }).compile();
    await sleep(60_000);
    expect(began()).toEqual([]);
    await module.init();
    await until('a leader', () => began().length === 1);
    await module.close();
    const mocked = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Poller, name] })
      .overrideProvider(LockService)
      .useValue({ withLock: () => undefined })
      .compile();
    await mocked.init();
    await mocked.close();
    expect(began()).toHaveLength(1);
  });

  test('a LockService of another application leads for this one, as long as this one runs', async () => {
    const testing = await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile();
    const module = await Test.createTestingModule({ imports: [memory()], providers: [Poller, name] })
      .overrideProvider(LockService)
      .useValue(testing.get(LockService))
      .compile();
    await module.init();
    await until('a leader', () => began().length === 1);
    await module.close();
    expect(diary.at(-1)).toBe('a ended');
    await testing.close();
  });
});

test.each([Scope.REQUEST, Scope.TRANSIENT])('a provider of scope %i is refused at bootstrap, and no connection is left', async (scope) => {
  @Injectable({ scope })
  class Scoped {
    @Leader('scoped')
    async lead(): Promise<void> {}
  }
  const server = await RedisServer.start();
  const booting = boot(LockModule.forRoot({ store: new RedisLockStore(server.url) }), Scoped, Poller, { provide: 'NAME', useValue: 'a' });
  await expect(booting).rejects.toThrow(saying(/Scoped\.lead: @Leader\(\) does not work on a provider that is made for each request/));
  expect(began()).toEqual([]);
  await until(
    'that all connections are closed',
    async () => !/addr=.*name=.*cmd=(?!client)/.test(String(await server.client.client('LIST'))),
  );
  await server.stop();
});

describe('a method of a leader', () => {
  const role = Leader('role') as MethodDecorator;

  test.each<[string, readonly MethodDecorator[]]>([
    ['@Cron() below', [role, Cron(CronExpression.EVERY_SECOND)]],
    ['@Cron() above', [Cron(CronExpression.EVERY_SECOND), role]],
    ['@Interval()', [Interval(1_000), role]],
    ['@Timeout()', [role, Timeout(1_000)]],
  ])('is refused at bootstrap with %s, which every process would start', async (_, decorators) => {
    class Feed {
      async read(): Promise<void> {
        diary.push('read');
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Feed.prototype, 'read') as PropertyDescriptor;
    for (const decorate of decorators.toReversed()) {
      decorate(Feed.prototype, 'read', descriptor);
    }
    Object.defineProperty(Feed.prototype, 'read', descriptor);
    await expect(boot(LockModule.forTesting(), Feed)).rejects.toThrow(
      saying(/^Feed\.read: @Leader\(\) and a schedule, such as @Cron\(\), .*@DistributedLock\(\) for a job .*docs\/leader\.md/),
    );
    expect(diary).toEqual([]);
  });

  test('rejects whoever calls it without the lock of its key, such as an interval of its own, and runs once for who has it', async () => {
    class Feed {
      readonly seen: unknown[] = [];

      @Leader('feed')
      async read(...args: unknown[]): Promise<unknown> {
        this.seen.push(...args);
        return this;
      }
    }
    const testing = await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile();
    const locks = testing.get(LockService);
    const feed = locks.attach(new Feed());
    const refused = saying(/^Feed\.read: this method was called without the lock on "feed"\. @Leader\(\) runs it .* do not call it/);
    for (const args of [[], [undefined], [{ keys: ['other'] }], [() => undefined], [new Map()]]) {
      await expect(feed.read(...args)).rejects.toThrow(refused);
    }
    await expect(locks.withLock('other', (lock) => feed.read(lock))).rejects.toThrow(refused);
    expect(feed.seen).toEqual([]);
    await expect(locks.withLock('feed', (lock) => feed.read(lock))).resolves.toBe(feed);
    expect(feed.seen).toHaveLength(1);
    class Renamed extends Feed {
      @Leader('renamed')
      override async read(...args: unknown[]): Promise<unknown> {
        return super.read(...args);
      }
    }
    const renamed = locks.attach(new Renamed());
    await expect(locks.withLock('renamed', (lock) => renamed.read(lock))).resolves.toBe(renamed);
    await expect(locks.withLock('feed', (lock) => renamed.read(lock))).rejects.toThrow(saying(/without the lock on "renamed"/));
    expect([Feed.prototype.read.name, Feed.prototype.read.length]).toEqual(['read', 0]);
  });
});

describe('a schedule', () => {
  playTime();

  test('follows the leader: the job of one leader has ended before that of the next one begins', async () => {
    const store = new MemoryLockStore();
    const jobs: string[] = [];
    const feedOf = (app: string): Feed => ({
      next: async () => {
        assertLocked('prices');
        jobs.push(`${app} began`);
        await sleep(300);
        return [];
      },
      apply: async () => void jobs.push(`${app} ended`),
      subscribe: () => ({ close: () => undefined }),
    });
    const started = async (app: string): Promise<INestApplicationContext> =>
      boot(LockModule.forRoot({ store }), {
        provide: Prices,
        inject: [LockService],
        useFactory: (locks: LockService) => locks.attach(new Prices(feedOf(app))),
      });
    const first = await started('a');
    const second = await started('b');
    await until('a job that runs, after another one', () => jobs.length >= 3);
    await first.close();
    await until('two jobs of the next leader', () => jobs.filter((job) => job === 'b ended').length >= 2);
    await second.close();
    const apps = jobs.filter((_, at) => at % 2 === 0).map((job) => job[0] as string);
    expect(jobs).toEqual(apps.flatMap((app) => [`${app} began`, `${app} ended`]));
    expect(apps.join('')).toMatch(/^aa+bb+$/);
  });
});

/** Says when Nest ends it. */
class Pool {
  constructor(private readonly name: string) {}

  onModuleDestroy(): void {
    diary.push(`${this.name} destroyed`);
  }
}

describe('at a shutdown', () => {
  @Module({ providers: [{ provide: 'IMPORTED', useFactory: () => new Pool('imported') }], exports: ['IMPORTED'] })
  class PoolModule {}

  const feature = (feed: Provider): unknown => {
    @Module({ imports: [PoolModule], providers: [feed, { provide: 'BESIDE', useFactory: () => new Pool('beside') }] })
    class FeatureModule {}
    return FeatureModule;
  };

  const run = async (feed: Provider, ...others: Provider[]): Promise<void> => {
    const locks = LockModule.forRoot({ store: new MemoryLockStore() });
    @Module({ providers: [{ provide: 'EARLIER', useFactory: () => new Pool('earlier') }] })
    class EarlierModule {}
    @Global()
    @Module({ providers: [{ provide: 'EVERYWHERE', useFactory: () => new Pool('everywhere') }] })
    class EverywhereModule {}
    @Module({
      imports: [EarlierModule, EverywhereModule, locks, feature(feed) as never],
      providers: [...others, { provide: 'ROOT', useFactory: () => new Pool('root') }],
    })
    class AppModule {}
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
    await until('all leaders', () => diary.includes('feed began'));
    await app.close();
  };

  const leads = async (name: string, lock: Lock): Promise<void> => {
    diary.push(`${name} began`);
    await once(lock.signal, 'abort');
    await sleep(20);
    diary.push(`${name} ended`);
  };

  test('the method has ended before Nest ends anything: what it injects, its own instance, other modules', async () => {
    @Injectable()
    class Feed {
      constructor(
        @Inject('IMPORTED') readonly imported: Pool,
        @Inject('BESIDE') readonly beside: Pool,
      ) {}

      @Leader('feed')
      async read(lock: Lock): Promise<void> {
        await leads('feed', lock);
      }

      onModuleDestroy(): void {
        diary.push('feed destroyed');
      }
    }

    await run(Feed);
    expect(diary.slice(0, 2)).toEqual(['feed began', 'feed ended']);
    expect(diary.slice(2).toSorted()).toEqual(
      ['beside', 'earlier', 'everywhere', 'feed', 'imported', 'root'].map((name) => `${name} destroyed`),
    );
    if (NEST_MAJOR >= 12) {
      const own = diary.indexOf('feed destroyed');
      expect(own).toBeLessThan(Math.min(diary.indexOf('beside destroyed'), diary.indexOf('imported destroyed')));
    }
  });

  test('the method of an instance that is frozen ends all the same', async () => {
    class Frozen {
      @Leader('feed')
      async read(lock: Lock): Promise<void> {
        await leads('feed', lock);
      }
    }
    await run({
      provide: Frozen,
      inject: [LockService],
      useFactory: (locks: LockService) => Object.freeze(locks.attach(new Frozen())),
    });
    expect(diary).toContain('feed ended');
  });
});
