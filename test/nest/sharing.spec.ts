import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  assertLocked,
  currentLock,
  DistributedLock,
  DistributedSemaphore,
  LockConfigurationError,
  LockModule,
  LockNotAcquiredError,
  LockService,
} from 'nestjs-distributed-lock';
import { LockTesting } from 'nestjs-distributed-lock/testing';
import { lastValueFrom, Observable, timer } from 'rxjs';
import { saying } from '../support/saying';
import { playTime, sleep } from '../support/virtual-time';

playTime();

/** Counts how many run at once, and the most that did. */
class Room {
  static now = 0;
  static most = 0;

  static enter(): void {
    this.now++;
    this.most = Math.max(this.most, this.now);
  }

  static async run(): Promise<void> {
    this.enter();
    await sleep(10);
    this.now--;
  }
}

@Injectable()
class Carts {
  @DistributedLock({ key: (one: string, two: string) => [`cart:${one}`, `cart:${two}`], mode: 'read' })
  async compare(_one: string, _two: string): Promise<number[]> {
    await Room.run();
    return ['cart:a', 'cart:b'].map((key) => assertLocked(key).fenceOf(key));
  }

  @DistributedLock({ key: (one: string, two: string) => [`cart:${one}`, `cart:${two}`] })
  async merge(one: string, two: string): Promise<number[]> {
    return this.compare(one, two);
  }

  @DistributedLock({ key: (one: string, two: string) => [`cart:${one}`, `cart:${two}`], mode: 'read' })
  async compareAndMerge(one: string, two: string): Promise<unknown> {
    return this.merge(one, two);
  }

  @DistributedLock({ key: 'cart:<0>', mode: 'read', returns: 'generator' })
  async *rows(_cart: string): AsyncGenerator<number> {
    Room.enter();
    try {
      for (let row = 0; row < 3; row++) {
        await sleep(10);
        yield row;
      }
    } finally {
      Room.now--;
    }
  }

  @DistributedLock({ key: 'cart:<0>', mode: 'read' })
  stream(_cart: string): Observable<unknown> {
    return new Observable((subscriber) => {
      Room.enter();
      const inner = timer(30).subscribe(subscriber);
      return () => {
        Room.now--;
        inner.unsubscribe();
      };
    });
  }

  @DistributedSemaphore({ key: 'erp:<0>', permits: 2, returns: 'generator' })
  async *synced(_tenant: string): AsyncGenerator<AbortSignal | undefined> {
    for (;;) {
      await Room.run();
      yield currentLock()?.signal;
    }
  }

  @DistributedSemaphore({ key: 'erp:<0>', permits: 1 })
  pushed(_tenant: string): Observable<unknown> {
    return timer(0, 10);
  }
}

let app: TestingModule;
let carts: Carts;
let locks: LockService;
let control: LockTesting;
beforeEach(async () => {
  Object.assign(Room, { now: 0, most: 0 });
  control = new LockTesting();
  app = await Test.createTestingModule({ imports: [LockModule.forTesting({ controller: control })], providers: [Carts] })
    .setLogger({ log: () => undefined, warn: () => undefined, error: () => undefined })
    .compile();
  [carts, locks] = [app.get(Carts), app.get(LockService)];
});
afterEach(() => app.close());

const read = async (rows: AsyncGenerator): Promise<unknown[]> => {
  const all: unknown[] = [];
  for await (const row of rows) {
    all.push(row);
  }
  return all;
};

describe('a method in read mode on several keys', () => {
  test('reads all of them, beside others, and keeps writers of each out', async () => {
    const [one, other] = await Promise.all([carts.compare('a', 'b'), carts.compare('b', 'a')]);
    expect(Room.most).toBe(2);
    expect(one).toEqual(other);
    const reading = carts.compare('a', 'b');
    await sleep(5);
    expect(await Promise.all(['cart:a', 'cart:b'].map((key) => locks.tryAcquire(key)))).toEqual([null, null]);
    await reading;
  });

  test('is entered from a method that writes them, and a method that writes is refused inside it', async () => {
    expect(await carts.merge('a', 'b')).toHaveLength(2);
    const refused = carts.compareAndMerge('a', 'b');
    await expect(refused).rejects.toThrow(LockNotAcquiredError);
    await expect(refused).rejects.toMatchObject({ reason: 'upgrade' });
  });
});

describe('a generator in read mode', () => {
  test('reads beside others for as long as it runs, and keeps writers out until it has ended', async () => {
    const reading = Promise.all([read(carts.rows('a')), read(carts.rows('a')), read(carts.rows('a'))]);
    await sleep(15);
    expect(Room.now).toBe(3);
    expect(await locks.tryAcquire('cart:a')).toBeNull();
    expect(await reading).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0, 1, 2],
    ]);
    await using lock = await locks.acquire('cart:a', { wait: 0 });
    expect(lock.isHeld()).toBe(true);
  });

  test('that is left early lets a writer in, and one that was lost throws the loss', async () => {
    for await (const row of carts.rows('a')) {
      expect(row).toBe(0);
      break;
    }
    expect(await locks.withLock('cart:a', { wait: 0 }, () => 'wrote')).toBe('wrote');
    const rows = carts.rows('a');
    await rows.next();
    await control.lose('cart:a');
    await expect(rows.next()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });
});

describe('an Observable in read mode', () => {
  test('reads beside others until it completes', async () => {
    const streams = [carts.stream('a'), carts.stream('a')].map((stream) => lastValueFrom(stream));
    await sleep(10);
    expect(Room.now).toBe(2);
    expect(await locks.tryAcquire('cart:a')).toBeNull();
    await Promise.all(streams);
    expect(await locks.withLock('cart:a', { wait: 0 }, () => 'wrote')).toBe('wrote');
  });

  test('that is unsubscribed lets a writer in, and one that was lost errors', async () => {
    const subscription = carts.stream('a').subscribe();
    await sleep(10);
    subscription.unsubscribe();
    expect(await locks.withLock('cart:a', () => Room.now)).toBe(0);
    const lost = lastValueFrom(carts.stream('a'));
    lost.catch(() => undefined);
    await sleep(10);
    await control.lose('cart:a');
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });
});

describe('a permit of a generator or an Observable', () => {
  test('that is left early, or unsubscribed, is given back', async () => {
    for await (const signal of carts.synced('a')) {
      // Code with a permit is inside of no lock.
      expect(signal).toBeUndefined();
      break;
    }
    expect(await locks.operations.inspect('erp:a')).toBeNull();
    const subscription = carts.pushed('b').subscribe();
    await sleep(25);
    expect(await locks.tryAcquirePermit('erp:b', 1)).toBeNull();
    subscription.unsubscribe();
    expect(await locks.withPermit('erp:b', 1, () => 'ran')).toBe('ran');
  });

  test('that was lost ends them with the loss', async () => {
    const rows = carts.synced('a');
    await rows.next();
    await control.lose('erp:a', 'forced');
    await expect(rows.next()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    const lost = lastValueFrom(carts.pushed('b'));
    lost.catch(() => undefined);
    await sleep(25);
    await control.lose('erp:b');
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });
});

test('a leader leads alone: a mode and permits are no options of it', () => {
  for (const option of [{ mode: 'read' }, { permits: 2 }]) {
    const [name] = Object.keys(option);
    expect(() => locks.lead('k', async () => undefined, option as never)).toThrow(LockConfigurationError);
    expect(() => locks.lead('k', async () => undefined, option as never)).toThrow(saying(`'${name}'`));
  }
});
