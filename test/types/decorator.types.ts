// Compiled, not run: what must compile does, and each `@ts-expect-error` fails the type check if its line compiles.
import { Injectable } from '@nestjs/common';
import { DistributedLock, LockModule, LockService, MemoryLockStore, RedisLockStore, type Lock } from 'nestjs-distributed-lock';
import { Cluster, Redis } from 'ioredis';
import type { Observable } from 'rxjs';

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
  @DistributedLock({ key: 'k', onBusy: 'skip' })
  async skipped(): Promise<string | undefined> {
    return undefined;
  }
  @DistributedLock({ key: 'k', onBusy: 'skip' })
  async job(): Promise<void> {}

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
  const lock: Lock | null = await locks.tryAcquire(['a', 'b']);
  // @ts-expect-error -- tryAcquire never waits
  await locks.tryAcquire('k', { wait: 5 });
  await using held = await locks.acquire('k', { ttl: '30s' });
  const rows: Promise<number> = held.run(() => query);
  const count: number = held.run(() => 1);
  const waitedMs: number = held.waitedMs;
  // @ts-expect-error -- 'wait' or 'throw'
  await locks.acquire('k', { onUnavailable: 'fail' });
  void [text, maybe, never, lock, rows, count, waitedMs];
}

export const modules = [
  LockModule.forRoot({ store: new RedisLockStore(new Redis()), ttl: '10s' }),
  LockModule.forRoot({ store: new RedisLockStore(new Cluster([])), isGlobal: false, debug: true, onUnavailable: 'throw' }),
  LockModule.forRoot({ store: new RedisLockStore({ host: 'localhost', sentinels: [] }) }),
  LockModule.forRoot({ store: new RedisLockStore(new Redis(), { minReplicas: 1 }) }),
  LockModule.forRoot({ store: new RedisLockStore('redis://localhost', { minReplicas: undefined }) }),
  // @ts-expect-error -- a number, not a text
  LockModule.forRoot({ store: new RedisLockStore(new Redis(), { minReplicas: '1' }) }),
  LockModule.forRootAsync({ useFactory: async (url: string) => ({ store: new RedisLockStore(url) }), inject: ['URL'] }),
  LockModule.forRoot({ stores: { default: new MemoryLockStore(), reports: new MemoryLockStore() } }),
];
