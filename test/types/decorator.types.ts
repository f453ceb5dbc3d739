// Compiled, not run: what must compile does, and each `@ts-expect-error` fails the type check if its line compiles.
import { Injectable } from '@nestjs/common';
import {
  assertLocked,
  DistributedLock,
  Leader,
  lockKey,
  LockModule,
  LockService,
  MemoryLockStore,
  outsideLocks,
  RedisLockStore,
  type Lock,
  type WithLockOptions,
} from 'nestjs-distributed-lock';
import { Cluster, Redis } from 'ioredis';
import { of, type Observable } from 'rxjs';

declare const locks: LockService;
declare const query: PromiseLike<number>;

@Injectable()
export class Methods {
  @DistributedLock('k:<id>')
  async promise(id: string): Promise<string> {
    return id;
  }
  @DistributedLock({ key: 'k:<id>', ttl: undefined, wait: undefined, onBusy: undefined, signal: undefined })
  observable(id: string): Observable<string> {
    throw new Error(id);
  }
  @DistributedLock({ key: (id: string) => `k:${id}` })
  async *generator(id: string, _count: number): AsyncGenerator<string> {
    yield id;
  }
  @DistributedLock({ key: (id: string, to: string) => [id, to], onBusy: (error, id) => `${id} ${error.waitedMs}` })
  async several(id: string, to: string): Promise<string> {
    return id + to;
  }
  @DistributedLock((id: string) => lockKey`k:${id}`)
  async byFunction(id: string, _count: number): Promise<string> {
    return id;
  }
  @DistributedLock((id) => lockKey`k:${id}`)
  async byFunctionWithoutTypes(id: string): Promise<string> {
    return id;
  }
  @DistributedLock((id: string, to: string) => [id, to])
  byFunctionOfAll(id: string, to: string): Observable<string> {
    return of(id, to);
  }
  @DistributedLock(function (this: Methods, id: string) {
    return lockKey`${this.tenant}:${id}`;
  })
  async *byFunctionOfTheInstance(id: string): AsyncGenerator<string> {
    yield id;
  }
  // @ts-expect-error -- the function takes a number, the method a text
  @DistributedLock((id: number) => `k:${id}`)
  async mistypedFunction(id: string): Promise<string> {
    return id;
  }
  // @ts-expect-error -- a number is no key
  @DistributedLock((id: string) => id.length)
  async keyedByNumber(id: string): Promise<string> {
    return id;
  }
  // @ts-expect-error -- the options belong beside the key
  @DistributedLock('k:<id>', { ttl: '30s' })
  async twoArguments(id: string): Promise<string> {
    return id;
  }
  // @ts-expect-error -- a method enters by what tickets it was called with
  @DistributedLock({ key: 'k', ticket: '' })
  async byTicket(): Promise<void> {}

  // @ts-expect-error -- a list of keys comes from a function
  @DistributedLock(['a', 'b'])
  async listed(): Promise<void> {}

  // @ts-expect-error -- the options belong beside the key
  @Leader('k', { ttl: '5s' })
  async leads(): Promise<void> {}

  @DistributedLock({ key: 'k', onBusy: 'skip' })
  async skipped(): Promise<string | undefined> {
    return undefined;
  }
  @DistributedLock({ key: 'k', onBusy: 'skip' })
  async job(): Promise<void> {}

  readonly tenant: string = 'acme';

  @DistributedLock({
    key(this: Methods, id: string) {
      return lockKey`${this.tenant}:${id}`;
    },
    ttl: (id: string, count: number) => id.length * count,
    wait: () => '5s',
    signal(this: Methods, _id: string, _count: number, client: AbortSignal) {
      return this.tenant === '' ? undefined : client;
    },
    onBusy(this: Methods, error, id: string) {
      return Promise.resolve(this.tenant + error.key + id);
    },
  })
  async functions(id: string, _count: number, _client: AbortSignal): Promise<string> {
    return id;
  }
  @DistributedLock({ key: 'k', onBusy: () => of('busy') })
  observableWhenBusy(): Observable<string> {
    throw new Error();
  }
  @DistributedLock({ key: 'k', onBusy: () => undefined })
  emptyWhenBusy(): Observable<string> {
    throw new Error();
  }
  @DistributedLock({ key: 'k', onBusy: (error) => error.waitedMs })
  async *returnWhenBusy(): AsyncGenerator<string, number> {
    yield '';
    return 1;
  }
  @DistributedLock({
    key: 'k',
    onBusy: (error): never => {
      throw error;
    },
  })
  async rethrown(): Promise<string> {
    return '';
  }
  @DistributedLock({ key: 'k', onBusy: (error) => error.message })
  async nothingExpected(): Promise<void> {}

  @DistributedLock({ key: 'k:<id>', onUnavailable: (error, id: string) => `${id} ${error.code}` })
  async whileAway(id: string): Promise<string> {
    return id;
  }
  @DistributedLock({
    key: 'k',
    onBusy: (error) => error.waitedMs,
    onUnavailable(this: Methods, error) {
      return error.code === 'LOCK_STORE' && error.unknown ? this.tenant : undefined;
    },
  })
  async otherwiseWhileAway(): Promise<string | number | undefined> {
    return '';
  }
  @DistributedLock({ key: 'k', onBusy: 'skip', onUnavailable: () => '' })
  async skippedOrAway(): Promise<string | undefined> {
    return '';
  }
  // @ts-expect-error -- a number, where the method gives a text
  @DistributedLock({ key: 'k', onUnavailable: () => 1 })
  async answeredWronglyWhileAway(): Promise<string> {
    return '';
  }
  // @ts-expect-error -- a number, where the method gives a text
  @DistributedLock({ key: 'k', onBusy: 'skip', onUnavailable: () => 1 })
  async skippedOrWronglyAway(): Promise<string | undefined> {
    return '';
  }

  // @ts-expect-error -- a number, where the method gives a text
  @DistributedLock({ key: 'k', onBusy: (error) => error.waitedMs })
  async answeredWrongly(): Promise<string> {
    return '';
  }
  // @ts-expect-error -- numbers, where the method gives texts
  @DistributedLock({ key: 'k', onBusy: () => of(1) })
  emittedWrongly(): Observable<string> {
    throw new Error();
  }
  // @ts-expect-error -- what a generator returns is no text
  @DistributedLock({ key: 'k', onBusy: () => '' })
  async *returnedWrongly(): AsyncGenerator<string, number> {
    yield '';
    return 1;
  }
  // @ts-expect-error -- the function takes a number, the method a text
  @DistributedLock({ key: 'k', wait: (id: number) => id })
  async waitedWrongly(id: string): Promise<string> {
    return id;
  }
  // @ts-expect-error -- the function takes a number, the method a text
  @DistributedLock({ key: 'k', signal: (id: number) => AbortSignal.timeout(id) })
  async abortedWrongly(id: string): Promise<string> {
    return id;
  }
  // @ts-expect-error -- the method is not one of that class
  @DistributedLock({
    key(this: Date) {
      return this.toISOString();
    },
  })
  async elsewhere(): Promise<void> {}

  // @ts-expect-error -- a static method belongs to no instance
  @DistributedLock('k')
  static async ofTheClass(): Promise<void> {}

  // @ts-expect-error -- a synchronous method cannot be locked
  @DistributedLock('k')
  synchronous(): string {
    return '';
  }
  // @ts-expect-error -- the key function takes a number, the method a string
  @DistributedLock({ key: (id: number) => `k:${id}` })
  async mistyped(id: string): Promise<string> {
    return id;
  }
  // @ts-expect-error -- a skipped call resolves undefined, which this method never does
  @DistributedLock({ key: 'k', onBusy: 'skip' })
  async neverUndefined(): Promise<string> {
    return '';
  }
  // @ts-expect-error -- onBusy knows no such word
  @DistributedLock({ key: 'k', onBusy: 'ignore' })
  async misunderstood(): Promise<void> {}

  // @ts-expect-error -- there is no such option
  @DistributedLock({ key: 'k', timeout: 5 })
  async misspelt(): Promise<void> {}
}

export async function calls(): Promise<void> {
  const text: string = await locks.withLock('k', () => 'text');
  const maybe: string | undefined = await locks.withLock('k', { onBusy: 'skip' }, () => 'text');
  // @ts-expect-error -- a skipped call may be undefined
  const never: string = await locks.withLock('k', { onBusy: 'skip' }, () => 'text');
  const isBusyHour = Math.random() < 0.5;
  // @ts-expect-error -- nor is one that may be skipped certain
  const perhaps: string = await locks.withLock('k', { onBusy: isBusyHour ? 'skip' : 'throw' }, () => 'text');
  const options: WithLockOptions<string> = { ttl: '30s' };
  // @ts-expect-error -- nor one whose options may say so
  const given: string = await locks.withLock('k', options, () => 'text');
  const thrown: string = await locks.withLock('k', { onBusy: 'throw', ttl: '30s' }, () => 'text');
  const without: string = await locks.withLock('k', undefined, () => 'text');
  const lock: Lock | null = await locks.tryAcquire(['a', 'b']);
  // @ts-expect-error -- tryAcquire never waits
  await locks.tryAcquire('k', { wait: 5 });
  await using held = await locks.acquire('k', { ttl: '30s' });
  const rows: Promise<number> = held.run(() => query);
  const count: number = held.run(() => 1);
  const waitedMs: number = held.waitedMs;
  // @ts-expect-error -- 'wait' or 'throw'
  await locks.acquire('k', { onUnavailable: 'fail' });
  // @ts-expect-error -- there is no such option
  await locks.withLock('k', { tll: 5 }, () => 1);
  // @ts-expect-error -- options are an object
  await locks.withLock('k', 5_000, () => 1);
  // @ts-expect-error -- of withLock only
  await locks.acquire('k', { onBusy: 'skip' });
  // @ts-expect-error -- there is no result that a function could give
  await locks.acquire('k', { onUnavailable: () => 1 });
  const away: string = await locks.withLock('k', { onUnavailable: (error) => error.code }, () => 'text');
  // @ts-expect-error -- a number, where the body gives a text
  await locks.withLock<string>('k', { onUnavailable: () => 1 }, () => 'text');
  // @ts-expect-error -- a tag, and no function
  await locks.acquire(lockKey('k:' + text));
  // @ts-expect-error -- an instance is missing
  locks.attach();
  // @ts-expect-error -- a function that begins the work
  outsideLocks(query);
  // @ts-expect-error -- the key is missing
  assertLocked();
  void [text, maybe, never, perhaps, given, away, thrown, without, lock, rows, count, waitedMs];
}

export const modules = [
  LockModule.forRoot({ store: new RedisLockStore(new Redis()), ttl: '10s', maxHold: '10m' }),
  LockModule.forRoot({ store: new RedisLockStore(new Cluster([])), isGlobal: false, debug: true, onUnavailable: 'throw' }),
  LockModule.forRoot({ store: new RedisLockStore({ host: 'localhost', sentinels: [] }) }),
  LockModule.forRoot({ store: new RedisLockStore(new Redis(), { minReplicas: 1 }) }),
  LockModule.forRoot({ store: new RedisLockStore('redis://localhost', { minReplicas: undefined }) }),
  // @ts-expect-error -- a number, not a text
  LockModule.forRoot({ store: new RedisLockStore(new Redis(), { minReplicas: '1' }) }),
  LockModule.forRootAsync({ useFactory: async (url: string) => ({ store: new RedisLockStore(url) }), inject: ['URL'] }),
  LockModule.forRoot({ stores: { default: new MemoryLockStore(), reports: new MemoryLockStore() } }),
  // @ts-expect-error -- the mistyped option of a store
  LockModule.forRoot({ store: new RedisLockStore(new Redis(), { minReplica: 1 }) }),
  // @ts-expect-error -- names are a list
  LockModule.forTesting({ storeNames: 'reports' }),
  // @ts-expect-error -- options of forRoot
  LockModule.forTesting({ ttl: '1s' }),
  // @ts-expect-error -- what makes the options is missing
  LockModule.forRootAsync(),
];
