import 'reflect-metadata';
import { jest } from '@jest/globals';
import {
  Controller,
  Get,
  Inject,
  Injectable,
  Logger,
  NotFoundException,
  Param,
  Scope,
  SetMetadata,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
} from '@nestjs/common';
import { ModuleRef, Reflector } from '@nestjs/core';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  currentLock,
  DistributedLock,
  InjectLocks,
  LOCK_CHANNEL,
  LockKey,
  LockModule,
  LockNotAcquiredError,
  LockService,
  MemoryLockStore,
  outsideLocks,
  RedisLockStore,
  type LockEvent,
} from 'nestjs-distributed-lock';
import { AsyncResource } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import PQueue from 'p-queue';
import { firstValueFrom, interval, Observable, of, Subject, take, tap, throwError, toArray } from 'rxjs';
import request from 'supertest';
import { EntityService, locked } from '../readme/entity-service';
import { NEST_MAJOR } from '../support/nest-major';
import { watchRejections } from '../support/watch-rejections';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { playTime, sleep } from '../support/virtual-time';

let server: RedisServer;
const modules: TestingModule[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterEach(async () => {
  await Promise.all(modules.splice(0).map((module) => module.close()));
});
afterAll(() => server.stop());

async function makeModule(metadata: Parameters<typeof Test.createTestingModule>[0], url?: string): Promise<TestingModule> {
  const store = url ? new RedisLockStore(url) : new MemoryLockStore();
  const module = await Test.createTestingModule({
    ...metadata,
    imports: [LockModule.forRoot({ store }), ...(metadata.imports ?? [])],
  }).compile();
  modules.push(module);
  return module.init();
}

async function provide<T extends object>(type: new (...args: never[]) => T): Promise<T> {
  return (await makeModule({ providers: [type] })).get<T>(type);
}

describe('the sum of parallel credits', () => {
  const balances = new Map<string, number>();

  async function add(customerId: string, amount: number): Promise<void> {
    const seen = balances.get(customerId) ?? 0;
    await sleep(1);
    balances.set(customerId, seen + amount);
  }

  @Injectable()
  class Locked {
    @DistributedLock({ key: 'balance:<customerId>', ttl: '30s', wait: '60s' })
    async credit(customerId: string, amount: number): Promise<void> {
      await add(customerId, amount);
    }
  }
  @Injectable()
  class Unlocked {
    async credit(customerId: string, amount: number): Promise<void> {
      await add(customerId, amount);
    }
  }

  test.each([
    ['is exact over two applications and a real Redis', Locked, (sum: number) => expect(sum).toBe(100)],
    ['is not with the decorator removed', Unlocked, (sum: number) => expect(sum).toBeLessThan(100)],
  ])(
    '%s',
    async (name, type, check) => {
      const services = [
        (await makeModule({ providers: [type] }, server.url)).get<Locked>(type),
        (await makeModule({ providers: [type] }, server.url)).get<Locked>(type),
      ];
      await Promise.all(Array.from({ length: 100 }, (_, index) => services[index % 2]?.credit(name, 1)));
      check(balances.get(name) ?? 0);
    },
    90_000,
  );
});

describe('where the decorator works', () => {
  test('in default, request and transient scope, by self-calls and by inheritance', async () => {
    let running = 0;
    let most = 0;
    const section = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await sleep(5);
      running--;
    };
    class Base {
      @DistributedLock('k:<id>')
      async run(id: string): Promise<void> {
        await section();
        expect(currentLock()?.keys).toEqual([`k:${id}`]);
      }
    }
    @Injectable()
    class Default extends Base {
      @DistributedLock('k:<id>')
      async outer(id: string): Promise<void> {
        await this.run(id);
      }
      override async run(id: string): Promise<void> {
        await super.run(id);
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest extends Base {}
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Base {}
    const mixin = (parent: new () => Base): new () => Base => {
      @Injectable()
      class Mixed extends parent {
        @DistributedLock('other:<name>')
        async other(name: string): Promise<void> {
          await this.run(name);
        }
      }
      return Mixed;
    };
    const Mixed = mixin(Base);
    const module = await makeModule({ providers: [Default, PerRequest, Transient, Mixed] });
    const instances: Base[] = [
      module.get(Default),
      await module.resolve(PerRequest),
      await module.resolve(PerRequest),
      await module.resolve(Transient),
      module.get<Base>(Mixed),
    ];
    await Promise.all([...instances.map((instance) => instance.run('1')), module.get(Default).outer('1')]);
    expect(most).toBe(1);
  });

  test('on controllers, with guards and their metadata, over HTTP', async () => {
    @Injectable()
    class Roles implements CanActivate {
      constructor(@Inject(Reflector) private readonly reflector: Reflector) {}
      canActivate(context: ExecutionContext): boolean {
        return this.reflector.get<string>('role', context.getHandler()) === 'admin';
      }
    }
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    @Controller()
    class Customers {
      @Get('above/:id')
      @UseGuards(Roles)
      @SetMetadata('role', 'admin')
      @DistributedLock('customer:<id>')
      async above(@Param('id') id: string): Promise<string> {
        return `${id} ${currentLock()?.keys[0]}`;
      }
      @DistributedLock('customer:<id>')
      @Get('below/:id')
      @UseGuards(Roles)
      @SetMetadata('role', 'admin')
      async below(@Param('id') id: string): Promise<string> {
        return `${id} ${currentLock()?.keys[0]}`;
      }
      @DistributedLock('customer:<id>')
      @Get('missing/:id')
      async missing(@Param('id') id: string): Promise<string> {
        throw new NotFoundException(`no customer ${id}`);
      }
      @DistributedLock({ key: 'taken', wait: 0 })
      @Get('taken')
      async taken(): Promise<void> {
        await left;
      }
    }
    const module = await makeModule({ controllers: [Customers], providers: [Roles] });
    const app: INestApplication = module.createNestApplication({ logger: false });
    await app.init();
    const http = request(app.getHttpServer());
    await http.get('/above/7').expect(200, '7 customer:7');
    await http.get('/below/7').expect(200, '7 customer:7');
    await http
      .get('/missing/7')
      .expect(404)
      .expect(({ body }) => expect(body).toMatchObject({ message: 'no customer 7' }));
    // The one that is refused ends the other.
    const responses = await Promise.all([1, 2].map(() => http.get('/taken').then((response) => (leave(), response))));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 423]);
    const refused = responses.find(({ status }) => status === 423);
    expect(refused?.text).not.toContain('taken"');
    const told = 'The lock was not acquired: other calls hold it or wait for it. Repeat the call later.';
    // Nest 10 sends the message of any error that has a status.
    expect(refused?.body).toEqual({ statusCode: 423, message: NEST_MAJOR === 10 ? told : 'Locked' });
    await app.close();
  });

  test('name, length and metadata of the method survive', () => {
    class Sample {
      @DistributedLock('k:<first>')
      @SetMetadata('below', 1)
      async method(first: string, second: string): Promise<string> {
        return first + second;
      }
    }
    const { method } = Sample.prototype as unknown as { method: (...args: unknown[]) => unknown };
    expect(method.name).toBe('method');
    expect(method).toHaveLength(2);
    expect(Reflect.getMetadata('below', method)).toBe(1);
  });

  test('what is injected does not show', async () => {
    @Injectable()
    class Sample {
      @DistributedLock('k')
      async method(): Promise<void> {}
    }
    const sample = await provide(Sample);
    expect(Object.keys(sample)).toEqual([]);
    expect(Object.getOwnPropertySymbols({ ...sample })).toEqual([]);
    expect(JSON.stringify(sample)).toBe('{}');
  });

  test('two applications in one process keep their locks apart', async () => {
    @Injectable()
    class Sample {
      @DistributedLock({ key: 'k', wait: 0 })
      async run<T>(body: () => T): Promise<Awaited<T>> {
        return await body();
      }
    }
    const [first, second] = [await provide(Sample), await provide(Sample)];
    expect(await first.run(() => second.run(() => 'both'))).toBe('both');
    await expect(first.run(() => outsideLocks(() => first.run(() => 1)))).rejects.toBeInstanceOf(LockNotAcquiredError);
  });

  test('named stores: each its own locks, injectable by name, also from forRootAsync', async () => {
    @Injectable()
    class Reports {
      constructor(@InjectLocks('reports') readonly locks: LockService) {}
      @DistributedLock({ key: 'k', store: 'reports', wait: 0 })
      async write<T>(body: () => T): Promise<Awaited<T>> {
        return await body();
      }
    }
    const stores = (): Record<string, MemoryLockStore> => ({ default: new MemoryLockStore(), reports: new MemoryLockStore() });
    const imports = [
      LockModule.forRoot({ stores: stores() }),
      LockModule.forRootAsync({ storeNames: ['reports'], useFactory: () => ({ stores: stores() }) }),
    ];
    for (const imported of imports) {
      const module = await Test.createTestingModule({ imports: [imported], providers: [Reports] }).compile();
      const reports = module.get(Reports);
      const locks = module.get(LockService);
      await reports.write(async () => {
        expect(await locks.operations.inspect('k')).toBeNull();
        expect(await reports.locks.operations.inspect('k')).toMatchObject({ by: expect.stringContaining('Reports.write') as unknown });
        await outsideLocks(() => locks.withLock('k', { wait: 0 }, () => undefined));
      });
      await module.close();
    }
  });

  test('the lock outlives the commit of a transaction decorator below it', async () => {
    const events: string[] = [];
    const Transactional =
      (): MethodDecorator =>
      (_target, _name, descriptor: PropertyDescriptor): void => {
        const body = descriptor.value as (...args: unknown[]) => Promise<unknown>;
        descriptor.value = async function (this: unknown, ...args: unknown[]) {
          events.push('begin');
          const result = await body.apply(this, args);
          await sleep(10);
          events.push('commit');
          return result;
        };
      };
    @Injectable()
    class Sample {
      @DistributedLock({ key: (id: string) => `k:${id}` })
      @Transactional()
      async run(id: string): Promise<void> {
        events.push(id);
      }
    }
    const sample = await provide(Sample);
    await Promise.all([sample.run('1'), sample.run('1')]);
    expect(events).toEqual(['begin', '1', 'commit', 'begin', '1', 'commit']);
  });
});

describe('jobs', () => {
  test("a @Cron with onBusy: 'skip' and minHold runs once on two replicas that start at about the same time", async () => {
    let runs = 0;
    @Injectable()
    class Jobs {
      @Cron('0 0 1 1 *', { name: 'report' })
      @DistributedLock({ key: 'job:report', onBusy: 'skip', minHold: '10s' })
      async report(): Promise<void> {
        runs++;
      }
    }
    const replicas = [
      await makeModule({ imports: [ScheduleModule.forRoot()], providers: [Jobs] }, server.url),
      await makeModule({ imports: [ScheduleModule.forRoot()], providers: [Jobs] }, server.url),
    ];
    const told = new Set<string>();
    const onEvent = (event: unknown): unknown => told.add((event as LockEvent).type);
    subscribe(LOCK_CHANNEL, onEvent);
    const [first, second] = replicas.map((replica) => replica.get(SchedulerRegistry).getCronJob('report'));
    await first?.fireOnTick();
    // Then its lock is renewed for minHold.
    await until('the end of the first run', () => told.has('renewed'));
    await second?.fireOnTick();
    await until('the end of the second call', () => told.has('refused'));
    unsubscribe(LOCK_CHANNEL, onEvent);
    expect(runs).toBe(1);
  });

  test('two requests behind one p-queue do not run together once the documented cure is applied', async () => {
    let running = 0;
    let most = 0;
    const queue = new PQueue({ concurrency: 2 });
    @Injectable()
    class Sample {
      @DistributedLock('k')
      async task(): Promise<void> {
        most = Math.max(most, ++running);
        await sleep(10);
        running--;
      }
      @DistributedLock('other:<id>')
      async request(id: string): Promise<void> {
        await queue.add(AsyncResource.bind(() => this.task()));
      }
    }
    const sample = await provide(Sample);
    await Promise.all([sample.request('1'), sample.request('2'), sample.request('3')]);
    expect(most).toBe(1);
  });

  test("without the cure, a shared queue runs one request's task inside another's lock", async () => {
    const queue = new PQueue({ concurrency: 1 });
    @Injectable()
    class Sample {
      @DistributedLock('k:<id>')
      async request(id: string, bound: boolean): Promise<readonly string[] | undefined> {
        const task = async (): Promise<readonly string[] | undefined> => {
          await sleep(5);
          return currentLock()?.keys;
        };
        return queue.add(bound ? AsyncResource.bind(task) : task);
      }
    }
    const sample = await provide(Sample);
    const seen = (bound: boolean): Promise<unknown> => Promise.all([sample.request('1', bound), sample.request('2', bound)]);
    expect(await seen(true)).toEqual([['k:1'], ['k:2']]);
    expect(await seen(false)).not.toEqual([['k:1'], ['k:2']]);
  });
});

describe('what a method returns', () => {
  @Injectable()
  class Streams {
    readonly source = new Subject<number>();
    subscribed = 0;

    @DistributedLock('k')
    watch(): Observable<number> {
      this.subscribed++;
      return this.source;
    }
    @DistributedLock({ key: 'k', wait: 0 })
    count(): Observable<readonly string[] | undefined> {
      return of(currentLock()?.keys);
    }
    @DistributedLock('k')
    fail(): Observable<never> {
      return throwError(() => new NotFoundException('nothing'));
    }
    @DistributedLock({ key: 'k', ttl: 150, renew: false })
    long(): Observable<number> {
      return interval(20);
    }
    @DistributedLock('k')
    async *pages(count: number): AsyncGenerator<number, string, string | undefined> {
      for (let page = 0; page < count; page++) {
        expect(currentLock()?.keys).toEqual(['k']);
        await this.inside();
        if ((yield page) === 'enough') {
          break;
        }
      }
      return 'end';
    }
    @DistributedLock('k')
    async *cleansUp(seen: unknown[]): AsyncGenerator<number> {
      try {
        yield 1;
        yield 2;
      } finally {
        const inside = await this.inside().catch(({ code }: { code: string }) => code);
        seen.push(currentLock()?.keys, inside);
      }
    }
    @DistributedLock({ key: 'k', wait: 0 })
    async inside(): Promise<string> {
      return 'inside';
    }
    @DistributedLock({ key: 'k', onBusy: 'skip' })
    async *skipped(): AsyncGenerator<number> {
      yield 1;
    }
    @DistributedLock({ key: 'k', onBusy: 'skip' })
    skippedStream(): Observable<number> {
      return of(1);
    }
    @DistributedLock('k')
    undeclared(): Promise<unknown> {
      return of(1) as unknown as Promise<unknown>;
    }
    @DistributedLock({ key: 'k', returns: 'observable' })
    declared(): Promise<unknown> {
      return of(1) as unknown as Promise<unknown>;
    }
    @DistributedLock('k')
    synchronous(): Promise<number> {
      return 1 as unknown as Promise<number>;
    }
  }

  let streams: Streams;
  let locks: LockService;
  playTime();
  beforeEach(async () => {
    const module = await makeModule({ providers: [Streams] });
    streams = module.get(Streams);
    locks = module.get(LockService);
  });

  const isFree = async (): Promise<boolean> => {
    await sleep(1);
    return (await locks.operations.inspect('k')) === null;
  };

  test.each(['breaks', 'goes on'])('a generator that lost its lock cleans up inside it, and its consumer, who %s, is told', async (how) => {
    const seen: unknown[] = [];
    const consume = async (): Promise<void> => {
      for await (const page of streams.cleansUp(seen)) {
        expect(page).toBe(1);
        await locks.operations.forceRelease('k', { fence: (await locks.operations.inspect('k'))?.fence ?? 0 });
        if (how === 'breaks') {
          break;
        }
      }
    };
    await expect(consume()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    expect(seen).toEqual([['k'], 'LOCK_LOST']);
  });

  test('an Observable is locked on subscribe and free when it completes; its body runs inside the lock', async () => {
    const stream = streams.count();
    expect(await isFree()).toBe(true);
    expect(await firstValueFrom(stream)).toEqual(['k']);
    expect(await isFree()).toBe(true);
  });

  test('an Observable that is unsubscribed frees the lock', async () => {
    const subscription = streams.watch().subscribe();
    await sleep(1);
    expect(await locks.operations.inspect('k')).not.toBeNull();
    subscription.unsubscribe();
    expect(await isFree()).toBe(true);
  });

  test('an Observable that is unsubscribed while it waits never runs', async () => {
    await locks.withLock('k', async () => {
      const subscription = outsideLocks(() => streams.watch().subscribe());
      await sleep(1);
      subscription.unsubscribe();
    });
    expect(await isFree()).toBe(true);
    expect(streams.subscribed).toBe(0);
  });

  test('an Observable that is unsubscribed while it enters frees the lock, at whatever moment', async () => {
    for (let steps = 0; steps < 25; steps++) {
      const subscription = streams.watch().subscribe();
      for (let step = 0; step < steps; step++) {
        await Promise.resolve();
      }
      subscription.unsubscribe();
      await sleep(1);
      expect(await locks.operations.inspect('k')).toBeNull();
    }
    expect(streams.source.observed).toBe(false);
  });

  test('each subscription is a call of its own', async () => {
    const stream = streams.watch();
    const values: number[] = [];
    stream.pipe(take(1)).subscribe((value) => values.push(value));
    stream.pipe(take(1)).subscribe((value) => values.push(value * 10));
    await sleep(1);
    expect(streams.subscribed).toBe(1);
    streams.source.next(1);
    await sleep(1);
    expect(streams.subscribed).toBe(2);
    streams.source.next(2);
    expect(values).toEqual([1, 20]);
    expect(await isFree()).toBe(true);
  });

  test("an Observable's error arrives unchanged and frees the lock", async () => {
    await expect(firstValueFrom(streams.fail())).rejects.toBeInstanceOf(NotFoundException);
    expect(await isFree()).toBe(true);
  });

  test('an Observable errors at once when its lease is lost', async () => {
    const values: number[] = [];
    const stream = streams.long().pipe(tap((value) => values.push(value)));
    await expect(firstValueFrom(stream.pipe(toArray()))).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(values).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(await isFree()).toBe(true);
  });

  test('an async generator is held from the first next to the end, and its body runs inside the lock each time', async () => {
    const pages = streams.pages(2);
    expect(await isFree()).toBe(true);
    expect(await pages.next()).toEqual({ value: 0, done: false });
    expect(await isFree()).toBe(false);
    expect(await pages.next()).toEqual({ value: 1, done: false });
    expect(await pages.next()).toEqual({ value: 'end', done: true });
    expect(await isFree()).toBe(true);
  });

  test('an async generator passes values in, and is free after return and throw', async () => {
    const first = streams.pages(5);
    await first.next();
    expect(await first.next('enough')).toEqual({ value: 'end', done: true });
    expect(await isFree()).toBe(true);
    for await (const page of streams.pages(5)) {
      expect(page).toBe(0);
      break;
    }
    expect(await isFree()).toBe(true);
    const second = streams.pages(5);
    await second.next();
    await expect(second.throw(new NotFoundException())).rejects.toBeInstanceOf(NotFoundException);
    expect(await isFree()).toBe(true);
  });

  test('a generator whose lease is lost is ended where it stands, and its own error goes first', async () => {
    const ended: string[] = [];
    @Injectable()
    class Sample {
      @DistributedLock({ key: 'own', ttl: 1_200, renew: false })
      async *pages(error?: Error): AsyncGenerator<number> {
        try {
          yield 1;
          yield 2;
        } finally {
          ended.push('closed');
          if (error) {
            // oxlint-disable-next-line no-unsafe-finally -- the body's own error is the point
            throw error;
          }
        }
      }
    }
    const sample = await provide(Sample);
    const first = sample.pages();
    await first.next();
    await sleep(1_250);
    await expect(first.next()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    const own = new TypeError('own');
    const second = sample.pages(own);
    await second.next();
    await sleep(1_250);
    await expect(second.next()).rejects.toBe(own);
    expect(ended).toEqual(['closed', 'closed']);
  });

  test('a source that emits while it is subscribed to sees an unsubscription', async () => {
    let emitted = 0;
    @Injectable()
    class Sample {
      @DistributedLock('endless')
      count(): Observable<number> {
        return new Observable((subscriber) => {
          while (!subscriber.closed && emitted < 1_000) {
            subscriber.next(++emitted);
          }
        });
      }
    }
    expect(await firstValueFrom((await provide(Sample)).count().pipe(take(1)))).toBe(1);
    expect(emitted).toBe(1);
  });

  test('onBusy as a function answers for an Observable and a generator', async () => {
    @Injectable()
    class Sample {
      @DistributedLock({ key: 'busy', wait: 0, onBusy: () => of('a', 'b') })
      stream(): Observable<string> {
        return of('ran');
      }
      @DistributedLock({ key: 'busy', wait: 0, onBusy: () => 'one' })
      value(): Observable<string> {
        return of('ran');
      }
      @DistributedLock({ key: 'busy', wait: 0, onBusy: () => 'answer' })
      async *generator(): AsyncGenerator<string, string> {
        yield 'ran';
        return 'ran';
      }
    }
    const module = await makeModule({ providers: [Sample] });
    const sample = module.get(Sample);
    const held = await module.get(LockService).acquire('busy');
    expect(await firstValueFrom(sample.stream().pipe(toArray()))).toEqual(['a', 'b']);
    expect(await firstValueFrom(sample.value().pipe(toArray()))).toEqual(['one']);
    expect(await sample.generator().next()).toEqual({ value: 'answer', done: true });
    await held.release();
    expect(await firstValueFrom(sample.stream().pipe(toArray()))).toEqual(['ran']);
  });

  test("onBusy: 'skip' completes an Observable and a generator empty", async () => {
    await locks.withLock('k', () =>
      outsideLocks(async () => {
        expect(await firstValueFrom(streams.skippedStream().pipe(toArray()))).toEqual([]);
        expect(await streams.skipped().next()).toEqual({ value: undefined, done: true });
      }),
    );
    expect(await streams.skipped().next()).toEqual({ value: 1, done: false });
  });

  test('a body that hands back something else is refused with what to declare', async () => {
    await expect(streams.undeclared()).rejects.toThrow(
      /^Streams\.undeclared is locked .* it returned an Observable\. Declare the return type Observable<…>, or set returns: 'observable'/,
    );
    expect(await firstValueFrom(streams.declared() as unknown as Observable<number>)).toBe(1);
    await expect(streams.synchronous()).rejects.toThrow(
      /^Streams\.synchronous .*neither a promise nor an Observable\. Make the method async/,
    );
    expect(await isFree()).toBe(true);
  });
});

test('an Observable whose lease ended before it could emit errors at once', async () => {
  @Injectable()
  class Sample {
    @DistributedLock({ key: 'late', ttl: 100, renew: false })
    stream(): Observable<number> {
      // The loop is blocked past the lease.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
      return interval(5);
    }
  }
  await expect(firstValueFrom((await provide(Sample)).stream())).rejects.toMatchObject({ code: 'LOCK_LOST' });
});

describe('a method whose promise gives what works after the lock', () => {
  @Injectable()
  class Rows {
    @DistributedLock('rows')
    async observable(): Promise<unknown> {
      return of(1);
    }
    @DistributedLock('rows')
    async generator(): Promise<unknown> {
      return (async function* () {})();
    }
    @DistributedLock('rows')
    async plain(): Promise<unknown> {
      return { pipe: 1 };
    }
    @DistributedLock('rows')
    async fails(): Promise<unknown> {
      throw new NotFoundException();
    }
  }

  let warn: jest.SpiedFunction<(message: unknown) => void>;
  beforeEach(() => {
    warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  });
  afterEach(() => warn.mockRestore());

  test.each([
    ['observable', 'an Observable', 'Return the Observable itself'],
    ['generator', 'an async generator', 'Make the method itself an async generator'],
  ] as const)('is warned of once: %s', async (method, what, cure) => {
    const rows = await provide(Rows);
    expect(typeof (await rows[method]())).toBe('object');
    await rows[method]();
    expect(warn.mock.calls.map(([message]) => message)).toEqual([
      expect.stringMatching(`^Rows.${method} is locked until its promise settles, which gave ${what}: its work is not locked\\. ${cure}`),
    ]);
  });

  test('is no other method', async () => {
    const rows = await provide(Rows);
    expect(await rows.plain()).toEqual({ pipe: 1 });
    await expect(rows.fails()).rejects.toThrow(NotFoundException);
    expect(warn).not.toHaveBeenCalled();
  });
});

describe('a method whose Observable is not declared', () => {
  @Injectable()
  class Streams {
    ran = 0;
    @DistributedLock('inferred')
    // oxlint-disable-next-line explicit-function-return-type -- what is inferred is the point
    inferred() {
      this.ran++;
      return of(1);
    }
  }

  test.each<[string, (stream: Observable<number>) => unknown]>([
    ['subscribe()', (stream) => stream.subscribe()],
    ['pipe()', (stream) => stream.pipe(take(1))],
    ['firstValueFrom()', (stream) => firstValueFrom(stream)],
  ])('throws where its caller uses %s, and leaves no unhandled rejection', async (_, use) => {
    const unhandled: unknown[] = [];
    const end = watchRejections((reason) => unhandled.push(reason));
    try {
      const streams = await provide(Streams);
      await expect((async () => use(streams.inferred()))()).rejects.toThrow(
        /^Streams\.inferred is locked .* its caller subscribes .*Declare the return type Observable<…>, or set returns: 'observable'/,
      );
      await sleep(20);
    } finally {
      end();
    }
    expect(unhandled).toEqual([]);
  });

  test('rejects where its caller awaits it', async () => {
    const streams = await provide(Streams);
    await expect(streams.inferred()).rejects.toThrow(/^Streams\.inferred is locked .* it returned an Observable\. Declare/);
  });
});

describe('an event that is emitted inside a lock', () => {
  @Injectable()
  class Orders {
    readonly steps: string[] = [];
    constructor(@Inject('bus') private readonly bus: EventEmitter) {
      bus.on('settled', () => void this.notify());
    }

    @DistributedLock('order')
    async settle(): Promise<void> {
      this.steps.push('settle begins');
      this.bus.emit('settled');
      await sleep(20);
      this.steps.push('settle ends');
    }

    @DistributedLock('order')
    async settleAndHandOver(): Promise<void> {
      this.steps.push('settle begins');
      outsideLocks(() => this.bus.emit('settled'));
      await sleep(20);
      this.steps.push('settle ends');
    }

    @DistributedLock('order')
    async notify(): Promise<void> {
      this.steps.push('notify');
    }
  }

  test.each([
    ['what is fired and forgotten inside a lock runs beside the rest of the method', 'settle', ['settle begins', 'notify', 'settle ends']],
    ['what is handed over with outsideLocks waits for the lock', 'settleAndHandOver', ['settle begins', 'settle ends', 'notify']],
  ] as const)('%s', async (_, method, steps) => {
    const orders = (await makeModule({ providers: [Orders, { provide: 'bus', useValue: new EventEmitter() }] })).get(Orders);
    await orders[method]();
    await sleep(0);
    await orders.notify();
    expect(orders.steps).toEqual([...steps, 'notify']);
  });
});

describe('onBusy as a function', () => {
  test('answers with the error and the arguments', async () => {
    @Injectable()
    class Sample {
      @DistributedLock({
        key: (id: string) => `k:${id}`,
        wait: 0,
        onBusy: (error, id: string) => `${id} ${error.reason}`,
      })
      async run(id: string): Promise<string> {
        return outsideLocks(() => this.run(id));
      }
    }
    expect(await (await provide(Sample)).run('7')).toBe('7 busy');
  });
});

describe('onUnavailable as a function', () => {
  @Injectable()
  class Sample {
    readonly name = 'Sample';
    @DistributedLock({
      key: 'k:<id>',
      wait: 0,
      onUnavailable(this: Sample, error, id: string) {
        return `${this.name} ${id} ${error.code}`;
      },
    })
    async run(id: string): Promise<string> {
      return `ran ${id}`;
    }
    @DistributedLock({ key: 'k', ttl: () => '5s', wait: '10m', onUnavailable: 'throw' })
    async thrown(): Promise<string> {
      return 'ran';
    }
    @DistributedLock({ key: 'k', ttl: () => '5s', wait: '10m', onUnavailable: (error) => error.code })
    async answered(): Promise<string> {
      return 'ran';
    }
    @DistributedLock({ key: 'k', wait: '10m', onUnavailable: (error) => error.code })
    async patient(): Promise<string> {
      return 'ran';
    }
    @DistributedLock({ key: 'k', wait: 0, onUnavailable: () => of('a', 'b') })
    stream(): Observable<string> {
      return of('ran');
    }
    @DistributedLock({ key: 'k', wait: 0, onUnavailable: () => 'answer' })
    async *generator(): AsyncGenerator<string, string> {
      yield 'ran';
      return 'ran';
    }
  }

  test('answers for a promise, an Observable and a generator once the server is killed', async () => {
    const redis = await RedisServer.start();
    const module = await makeModule({ providers: [Sample] }, redis.url);
    const sample = module.get(Sample);
    expect(await sample.run('7')).toBe('ran 7');
    await redis.stop();
    expect(await sample.run('7')).toBe('Sample 7 LOCK_STORE');
    expect(await firstValueFrom(sample.stream().pipe(toArray()))).toEqual(['a', 'b']);
    expect(await sample.generator().next()).toEqual({ value: 'answer', done: true });
    await module.close();
  });

  test("does not wait, nor does 'throw', also beside options that are functions of the call", async () => {
    const redis = await RedisServer.start();
    const module = await makeModule({ providers: [Sample] }, redis.url);
    const sample = module.get(Sample);
    expect(await sample.thrown()).toBe('ran');
    await redis.stop();
    // Each would wait for ten minutes.
    await expect(sample.thrown()).rejects.toMatchObject({ code: 'LOCK_STORE' });
    expect(await sample.answered()).toBe('LOCK_STORE');
    expect(await sample.patient()).toBe('LOCK_STORE');
    await module.close();
  });
});

describe('a key function and @LockKey', () => {
  test('an array locks several keys; @LockKey names a parameter', async () => {
    @Injectable()
    class Sample {
      @DistributedLock({ key: (from: string, to: string) => [`k:${from}`, `k:${to}`] })
      async transfer(_from: string, _to: string): Promise<readonly string[] | undefined> {
        return currentLock()?.keys;
      }
      @DistributedLock('k:<customerId>')
      async named(@LockKey('customerId') _id: string): Promise<readonly string[] | undefined> {
        return currentLock()?.keys;
      }
    }
    const sample = await provide(Sample);
    expect(await sample.transfer('2', '1')).toEqual(['k:1', 'k:2']);
    expect(await sample.named('7')).toEqual(['k:7']);
  });

  test('a method of a base class locks another key in each subclass', async () => {
    @Injectable()
    class Users extends EntityService {
      readonly entity = 'user';
    }
    @Injectable()
    class Orders extends EntityService {
      readonly entity = 'order';
    }
    const module = await makeModule({ providers: [Users, Orders] });
    const services = [module.get(Users), module.get(Orders)];
    await Promise.all(services.map((service) => service.update('1', new AbortController().signal)));
    expect(locked).toEqual(['user:1', 'order:1']);
  });
});

test('a template names what the method destructures, as handlers of commands do', async () => {
  interface Credit {
    readonly customerId: string;
    readonly order: { readonly id: number };
  }
  @Injectable()
  class Sample {
    @DistributedLock('balance:<customerId>:<orderId>')
    async execute({ customerId, order: { id: orderId } }: Credit): Promise<unknown> {
      return [customerId, orderId, currentLock()?.keys];
    }
  }
  const sample = await provide(Sample);
  expect(await sample.execute({ customerId: '7', order: { id: 8 } })).toEqual(['7', 8, ['balance:7:8']]);
});

test('ModuleRef.create gives instances their service too', async () => {
  @Injectable()
  class Sample {
    @DistributedLock('k')
    async run(): Promise<string> {
      return 'ran';
    }
  }
  const module = await makeModule({});
  expect(await (await module.get(ModuleRef).create(Sample)).run()).toBe('ran');
});
