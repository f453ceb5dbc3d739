import 'reflect-metadata';
import { Injectable, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  currentLock,
  DistributedLock,
  LockConfigurationError,
  lockKey,
  LockModule,
  LockNotAcquiredError,
  LockService,
  MemoryLockStore,
  outsideLocks,
  type LockModuleOptions,
} from 'nestjs-distributed-lock';
import { getEventListeners, once } from 'node:events';
import { types } from 'node:util';
import { firstValueFrom, Observable, of } from 'rxjs';
import { MethodOptions } from '../../lib/nest/methods/method-options';
import { saying } from '../support/saying';
import { playTime } from '../support/virtual-time';

/** A provider, and the service of its application. */
async function provide<T>(type: Type<T>, options: Partial<LockModuleOptions> = {}): Promise<[T, LockService]> {
  const imports = [LockModule.forRoot({ store: new MemoryLockStore(), ...options })];
  const module = await Test.createTestingModule({ imports, providers: [type] }).compile();
  return [module.get(type), module.get(LockService)];
}

describe('functions of a call', () => {
  @Injectable()
  class Orders {
    tenant = 'acme';
    readonly done: string[] = [];

    @DistributedLock({
      key(this: Orders, id: string) {
        return lockKey`${this.tenant}:order:${id}`;
      },
      wait: 0,
      onBusy(this: Orders, error, id: string) {
        return [`${this.tenant} ${id} ${error.key}`];
      },
    })
    async ship(id: string, body?: () => Promise<unknown>): Promise<readonly string[]> {
      await body?.();
      return currentLock()?.keys ?? [];
    }

    @DistributedLock(function (this: Orders, id: string, to?: string) {
      const key = lockKey`${this.tenant}:order:${id}`;
      return to === undefined ? key : [key, lockKey`${this.tenant}:order:${to}`];
    })
    async merge(_id: string, _to?: string): Promise<readonly string[]> {
      return currentLock()?.keys ?? [];
    }

    @DistributedLock({
      key: 'stock',
      ttl(this: Orders, _id: string, patient: boolean) {
        return this.tenant === 'acme' && patient ? '40s' : undefined;
      },
      wait: (_id: string, patient: boolean) => (patient ? '30s' : 0),
      signal: (_id: string, _patient: boolean, client: AbortSignal | undefined) => client,
    })
    async reserve(id: string, _patient: boolean, _client?: AbortSignal): Promise<number> {
      this.done.push(id);
      return currentLock()?.remainingMs() ?? 0;
    }

    @DistributedLock({
      key: 'stock',
      wait: (wait: unknown) => wait as number,
      signal: (_: unknown, signal: unknown) => signal as AbortSignal,
    })
    async checked(_wait: unknown, _signal: unknown): Promise<void> {
      this.done.push('checked');
    }
    @DistributedLock({ key: 'stock', signal: (signal: unknown) => signal as AbortSignal })
    watch(_signal: unknown): Observable<number> {
      this.done.push('watched');
      return of(1);
    }
    @DistributedLock({
      key: 'stock',
      ttl: (): number => {
        throw new RangeError('no such tenant');
      },
    })
    async *list(): AsyncGenerator<number> {
      this.done.push('listed');
      yield 1;
    }
  }

  test('see the instance as `this`: a key has the prefix of its tenant, and so has what is answered when it is busy', async () => {
    const [orders] = await provide(Orders);
    const [other] = await provide(Orders);
    other.tenant = 'other';
    let answers: unknown;
    expect(await other.ship('7')).toEqual(['other:order:7']);
    const answer = await orders.ship('7', async () => {
      answers = await outsideLocks(() => orders.ship('7'));
    });
    expect(answer).toEqual(['acme:order:7']);
    expect(answers).toEqual(['acme 7 acme:order:7']);
  });

  test('are the key itself where one stands alone, which may be a list', async () => {
    const [orders] = await provide(Orders);
    expect(await orders.merge('7')).toEqual(['acme:order:7']);
    expect(await orders.merge('7', '1')).toEqual(['acme:order:1', 'acme:order:7']);
    await expect(orders.merge(undefined as never)).rejects.toThrow(saying(/value 2 is undefined, which cannot be part of a key/));
  });

  test('decide how long a call waits and how long its lease is, or leave that to the module', async () => {
    const [orders, locks] = await provide(Orders, { ttl: '20s' });
    expect(await orders.reserve('1', true)).toBeGreaterThan(20_000);
    expect(await orders.reserve('1', false)).toBeLessThan(20_000);
    const lock = await locks.acquire('stock');
    await expect(orders.reserve('2', false)).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
    const waiting = orders.reserve('3', true);
    await lock.release();
    await waiting;
    expect(orders.done).toEqual(['1', '1', '3']);
  });

  test('name the signal of a request, whose turn never runs once its client has gone', async () => {
    const [orders, locks] = await provide(Orders);
    const lock = await locks.acquire('stock');
    const client = new AbortController();
    const waiting = orders.reserve('gone', true, client.signal);
    const next = orders.reserve('next', true, new AbortController().signal);
    client.abort(new Error('the client closed the connection'));
    await expect(waiting).rejects.toMatchObject({ reason: 'aborted', cause: { message: 'the client closed the connection' } });
    await lock.release();
    await next;
    await expect(orders.reserve('late', true, client.signal)).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(orders.done).toEqual(['next']);
  });

  test('name the signal of an Observable too, beside its own end by unsubscribing', async () => {
    const [orders, locks] = await provide(Orders);
    const lock = await locks.acquire('stock');
    const client = new AbortController();
    const waiting = firstValueFrom(orders.watch(client.signal));
    const unsubscribed = orders.watch(new AbortController().signal).subscribe();
    client.abort();
    await expect(waiting).rejects.toMatchObject({ reason: 'aborted' });
    unsubscribed.unsubscribe();
    await lock.release();
    expect(await firstValueFrom(orders.watch(undefined))).toBe(1);
    expect(orders.done).toEqual(['watched']);
  });

  test('leave nothing in the signal of an Observable that has ended', async () => {
    const [orders] = await provide(Orders);
    const { signal } = new AbortController();
    for (let call = 0; call < 5; call++) {
      await firstValueFrom(orders.watch(signal));
    }
    const ofNode = signal as unknown as Record<symbol, unknown>;
    const kept = Object.getOwnPropertySymbols(signal).filter((name) => types.isSet(ofNode[name]) && ofNode[name].size > 0);
    expect(kept).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('are checked with each call, whose body does not run where they are wrong', async () => {
    const [orders] = await provide(Orders);
    const refused = { constructor: LockConfigurationError };
    await expect(orders.checked(-1, undefined)).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^Orders\.checked: wait is -1, which is not a duration from 0/) as unknown,
    });
    await expect(orders.checked(0, {})).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^Orders\.checked: signal is not an AbortSignal/) as unknown,
    });
    await expect(firstValueFrom(orders.watch(7))).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^Orders\.watch: signal is not an AbortSignal/) as unknown,
    });
    await expect(orders.list().next()).rejects.toThrow(RangeError);
    await orders.checked(0, undefined);
    expect(orders.done).toEqual(['checked']);
  });
});

describe('maxHold of the module', () => {
  playTime();

  @Injectable()
  class Jobs {
    @DistributedLock('job')
    async run(): Promise<string> {
      return reasonOf(currentLock()?.signal as AbortSignal);
    }
    @DistributedLock({ key: 'other', maxHold: '1h' })
    async longer(): Promise<boolean> {
      const signal = currentLock()?.signal as AbortSignal;
      await reasonOf(AbortSignal.timeout(3_000_000));
      return signal.aborted;
    }
  }

  async function reasonOf(signal: AbortSignal): Promise<string> {
    await once(signal, 'abort');
    return (signal.reason as { reason?: string }).reason ?? '';
  }

  test('ends a lock that names none of its own', async () => {
    const [jobs, locks] = await provide(Jobs, { maxHold: 50 });
    const startedAt = performance.now();
    expect(await jobs.run()).toBe('maxHold');
    await using lock = await locks.acquire('handle');
    expect(await reasonOf(lock.signal)).toBe('maxHold');
    expect(performance.now() - startedAt).toBe(100);
    expect(await jobs.longer()).toBe(false);
  });

  test('is a duration', async () => {
    await expect(provide(Jobs, { maxHold: 0 })).rejects.toThrow(/^LockModule: maxHold is 0, which is not a duration from 1/);
  });
});

describe('a method with two locks', () => {
  @Injectable()
  class Transfers {
    @DistributedLock('account:<from>')
    @DistributedLock('owner:<owner.id>')
    async run(owner: { id: string }, from: string): Promise<unknown> {
      return [owner.id, from, [...(currentLock('account:7')?.keys ?? []), ...(currentLock('owner:3')?.keys ?? [])]];
    }
    @DistributedLock('list:<first>')
    @DistributedLock('lists')
    async *list(first: number): AsyncGenerator {
      yield [first, currentLock('list:1')?.keys, currentLock('lists')?.keys];
    }
  }

  test('has the names of its parameters, and what it returns, under both', async () => {
    const [transfers] = await provide(Transfers);
    expect(await transfers.run({ id: '3' }, '7')).toEqual(['3', '7', ['account:7', 'owner:3']]);
    expect(await transfers.list(1).next()).toEqual({ done: false, value: [1, ['list:1'], ['lists']] });
  });
});

test('a method counts under the name that it is given, else under its template', () => {
  const nameOf = (name?: string): string | undefined => new MethodOptions({ key: 'order:<id>', name }, 'Orders.ship').of({}, []).name;
  expect([nameOf('orders'), nameOf()]).toEqual(['orders', 'order:<id>']);
});
