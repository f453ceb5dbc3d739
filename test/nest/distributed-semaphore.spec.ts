import 'reflect-metadata';
import { Controller, Get, Injectable, Param, UseFilters, type INestApplication } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  DistributedSemaphore,
  LOCK_CHANNEL,
  LockConfigurationError,
  LockExceptionFilter,
  LockModule,
  LockService,
  LockStoreError,
  enterTickets,
  makeTickets,
  outsideLocks,
  MemoryLockStore,
  type LockEvent,
} from 'nestjs-distributed-lock';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { firstValueFrom, from, Observable } from 'rxjs';
import request from 'supertest';
import { saying } from '../support/saying';
import { playTime, sleep } from '../support/virtual-time';

const modules: TestingModule[] = [];
afterEach(async () => {
  await Promise.all(modules.splice(0).map((module) => module.close()));
});

/** A store that is away, as far as permits and locks are concerned. */
class StoreThatIsAway extends MemoryLockStore {
  override acquire(): Promise<never> {
    return Promise.reject(new LockStoreError('no server answers', '', { unknown: false }));
  }
}

async function boot(providers: (new () => object)[], store = new MemoryLockStore(), controllers: (new () => object)[] = []) {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store, wait: '1m' })],
    providers,
    controllers,
  }).compile();
  modules.push(module);
  return module;
}

/** Counts how many run at once, and the most that did. */
class Room {
  static now = 0;
  static most = 0;

  static async run(ms = 10): Promise<void> {
    this.now++;
    this.most = Math.max(this.most, this.now);
    await sleep(ms);
    this.now--;
  }
}

beforeEach(() => {
  Room.now = 0;
  Room.most = 0;
});

@Injectable()
class Erp {
  @DistributedSemaphore({ key: 'erp:<0>', permits: 3 })
  async sync(_tenant: string): Promise<number> {
    await Room.run();
    return Room.most;
  }

  @DistributedSemaphore({ key: 'erp:<0>', permits: (_tenant: string, permits: number) => permits })
  async syncAt(_tenant: string, _permits: number): Promise<void> {
    await Room.run();
  }

  @DistributedSemaphore({ key: 'erp:<0>', permits: 2 })
  stream(_tenant: string): Observable<unknown> {
    return from(Room.run());
  }

  @DistributedSemaphore({ key: 'erp:<0>', permits: 2, returns: 'generator' })
  async *rows(_tenant: string): AsyncGenerator<number> {
    await Room.run();
    yield Room.most;
  }

  @DistributedSemaphore({ key: (tenant: string) => ['a', tenant] as unknown as string, permits: 2 })
  async twoKeys(_tenant: string): Promise<void> {}

  @DistributedSemaphore({ key: 'erp:<0>', permits: 2, onUnavailable: 'run' })
  async shaped(_tenant: string): Promise<string> {
    return 'ran';
  }

  @DistributedSemaphore({ key: 'erp:<0>', permits: 2, onBusy: 'skip' })
  async skipped(_tenant: string): Promise<string | undefined> {
    return 'ran';
  }
}

describe('@DistributedSemaphore()', () => {
  playTime();

  test('runs at most so many calls of a key at once', async () => {
    const erp = (await boot([Erp])).get(Erp);
    await Promise.all(Array.from({ length: 12 }, () => erp.sync('acme')));
    expect(Room.most).toBe(3);
  });

  test('does not make calls of another key wait', async () => {
    const erp = (await boot([Erp])).get(Erp);
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((tenant) => erp.sync(tenant)));
    expect(Room.most).toBe(5);
  });

  test('takes the count from a function of the arguments, and refuses what is no count', async () => {
    const erp = (await boot([Erp])).get(Erp);
    await Promise.all(Array.from({ length: 6 }, () => erp.syncAt('acme', 2)));
    expect(Room.most).toBe(2);
    for (const wrong of [0, 1.5, 1_001, Number.NaN, undefined as unknown as number]) {
      await expect(erp.syncAt('acme', wrong)).rejects.toThrow(saying(`Erp.syncAt: permits is ${wrong}. Pass how many may run at once`));
    }
  });

  test('limits Observables and generators, for as long as they last', async () => {
    const erp = (await boot([Erp])).get(Erp);
    await Promise.all(Array.from({ length: 5 }, () => firstValueFrom(erp.stream('acme'))));
    expect(Room.most).toBe(2);
    const rows = Array.from({ length: 5 }, async () => {
      for await (const most of erp.rows('acme')) {
        expect(most).toBeLessThanOrEqual(2);
      }
    });
    await Promise.all(rows);
  });

  test('refuses several keys', async () => {
    const erp = (await boot([Erp])).get(Erp);
    await expect(erp.twoKeys('b')).rejects.toThrow(saying('Erp.twoKeys: a semaphore has one key, and got 2'));
  });

  test("skips where all permits are taken, with onBusy: 'skip'", async () => {
    const module = await boot([Erp]);
    await using permit = await module.get(LockService).acquirePermit('erp:acme', 1);
    expect(permit.isHeld()).toBe(true);
    expect(await module.get(Erp).skipped('acme')).toBeUndefined();
  });

  test('is no lock that a ticket could be made of', async () => {
    const locks = (await boot([])).get(LockService);
    expect(await locks.withPermit('k', 2, () => makeTickets())).toBeUndefined();
  });

  test('is refused while the class is loaded without a count, with a mode, or with a count that is none', () => {
    const decorate = (options: object) => (): void => {
      class Wrong {
        @DistributedSemaphore(options as never)
        async run(): Promise<void> {}
      }
      void Wrong;
    };
    expect(decorate({ key: 'k' })).toThrow(saying('Wrong.run: permits is undefined. Pass how many may run at once'));
    expect(decorate({ key: 'k', permits: 0 })).toThrow(saying('permits is 0'));
    expect(decorate({ permits: 2 })).toThrow(saying('@DistributedSemaphore() has no key'));
    expect(decorate({ permits: 2, key: ['a', 'b'] })).toThrow(saying('or a function of the arguments, which returns a key: @Distrib'));
    expect(decorate({ key: 'k', permits: 2, mode: 'read' })).toThrow(saying("'mode' is no option here, but one of @DistributedLock()"));
  });

  test('a lock with permits, a wrong mode, or onUnavailable: run is refused with the next step', () => {
    const decorate = (options: object) => (): void => {
      class Wrong {
        @DistributedLock(options as never)
        async run(): Promise<void> {}
      }
      void Wrong;
    };
    expect(decorate({ key: 'k', permits: 2 })).toThrow(saying("'permits' is no option here, but one of @DistributedSemaphore()"));
    expect(decorate({ key: 'k', mode: 'reading' })).toThrow(saying("mode is 'reading'. Use 'write' or 'read'"));
    expect(decorate({ key: 'k', onUnavailable: 'run' })).toThrow(saying('which only a semaphore can have'));
  });
});

describe("onUnavailable: 'run'", () => {
  playTime();

  test('runs the method without a permit while the store is away, and an event says so', async () => {
    const erp = (await boot([Erp], new StoreThatIsAway())).get(Erp);
    const events: LockEvent[] = [];
    const note = (event: unknown): void => void events.push(event as LockEvent);
    subscribe(LOCK_CHANNEL, note);
    expect(await erp.shaped('acme')).toBe('ran');
    unsubscribe(LOCK_CHANNEL, note);
    expect(events.filter(({ type }) => type === 'ranWithout')).toEqual([
      expect.objectContaining({ key: 'erp:acme', site: 'Erp.shaped', error: expect.any(LockStoreError) as LockStoreError }),
    ]);
  });

  test('gives the body a permit that is not held', async () => {
    const locks = (await boot([], new StoreThatIsAway())).get(LockService);
    const seen = await locks.withPermit('k', 2, { onUnavailable: 'run' }, async (permit) => {
      expect(() => permit.assertHeld()).toThrow(saying('this call runs without one, since the store is away'));
      await permit.release();
      return [permit.key, permit.isHeld(), permit.remainingMs(), permit.signal.aborted, permit.run(() => 'inside')];
    });
    expect(seen).toEqual(['k', false, 0, false, 'inside']);
  });

  test('does not catch errors of the body', async () => {
    const locks = (await boot([], new StoreThatIsAway())).get(LockService);
    const failing = locks.withPermit('k', 2, { onUnavailable: 'run' }, () => Promise.reject(new Error('of the body')));
    await expect(failing).rejects.toThrow('of the body');
  });
});

test('a store without the capability refuses readers and permits by name, and says what to do', async () => {
  class OldStore extends MemoryLockStore {
    override readonly shared = false as unknown as true;
    override readonly permits = false as unknown as true;
  }
  const locks = (await boot([], new OldStore())).get(LockService);
  await expect(locks.withLock('k', { mode: 'read' }, () => 'ran')).rejects.toThrow(
    saying("the store 'default' offers no locks of read mode (the capability 'shared')"),
  );
  await expect(locks.withPermit('k', 2, () => 'ran')).rejects.toThrow(saying("offers no semaphores (the capability 'permits')"));
  expect(await locks.withLock('k', () => 'ran')).toBe('ran');
});

test('a reader enters the lock of a reader by its ticket, and a writer is refused', async () => {
  const locks = (await boot([])).get(LockService);
  await locks.withLock('k', { mode: 'read' }, async (lock) => {
    const ticket = lock.makeTicket();
    const tickets = makeTickets();
    await outsideLocks(async () => {
      expect(await locks.withLock('k', { ticket, mode: 'read' }, (guest) => guest.fence)).toBe(lock.fence);
      expect(await enterTickets(tickets, () => locks.withLock('k', { mode: 'read' }, (guest) => guest.fence))).toBe(lock.fence);
      const refusal = saying('LockService.withLock writes, and came with the ticket of a call that only reads');
      await expect(locks.withLock('k', { ticket }, () => 'ran')).rejects.toThrow(refusal);
      await expect(enterTickets(tickets, () => locks.withLock('k', () => 'ran'))).rejects.toThrow(refusal);
    });
    expect((await locks.operations.inspect('k'))?.holds).toBe(1);
  });
  expect(await locks.operations.inspect('k')).toBeNull();
});

test('over HTTP a semaphore that is full is 429 with Retry-After', async () => {
  @Controller()
  @UseFilters(LockExceptionFilter)
  class Limited {
    @Get(':tenant')
    @DistributedSemaphore({ key: 'erp:<tenant>', permits: 1, wait: 0 })
    async get(@Param('tenant') tenant: string): Promise<string> {
      return tenant;
    }
  }
  const module = await boot([], new MemoryLockStore(), [Limited]);
  const application: INestApplication = module.createNestApplication();
  await application.init();
  await using permit = await module.get(LockService).acquirePermit('erp:acme', 1);
  expect(permit.key).toBe('erp:acme');
  const answer = await request(application.getHttpServer() as never).get('/acme');
  expect(answer.status).toBe(429);
  expect(answer.body).toMatchObject({ statusCode: 429, code: 'LOCK_NOT_ACQUIRED', message: 'Too Many Requests' });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  await application.close();
});

test('the error of a wrong call is a LockConfigurationError', async () => {
  const locks = (await boot([])).get(LockService);
  await expect(locks.withPermit('k', 0, () => 'ran')).rejects.toThrow(LockConfigurationError);
  await expect(locks.acquirePermit('k', 1, { mode: 'read' } as never)).rejects.toThrow(LockConfigurationError);
  await expect(locks.tryAcquirePermit(['a', 'b'] as never, 1)).rejects.toThrow(saying('a semaphore has one key'));
});
