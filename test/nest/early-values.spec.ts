import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { currentLock, DistributedLock, LockModule, LockNotAcquiredError, LockService, MemoryLockStore } from 'nestjs-distributed-lock';
import {
  BehaviorSubject,
  concatMap,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  Observable,
  ReplaySubject,
  Subject,
  take,
  tap,
  toArray,
  type Subscription,
} from 'rxjs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { until } from '../support/until';
import { watchRejections } from '../support/watch-rejections';

/** A Subject of the user's own, whose code has a private field. */
class Counted extends Subject<number> {
  #emitted = 0;
  get emitted(): number {
    return this.#emitted;
  }
  override next(value: number): void {
    this.#emitted++;
    super.next(value);
  }
}

@Injectable()
class Sums {
  ran = 0;
  readonly seen: unknown[] = [];
  readonly keys: unknown[] = [];

  @DistributedLock('k')
  async promise(values: Observable<number>): Promise<number[]> {
    this.ran++;
    return await lastValueFrom(values.pipe(toArray()));
  }
  @DistributedLock('k')
  observable(values: Observable<number>): Observable<number> {
    this.ran++;
    return values;
  }
  @DistributedLock('k')
  async *generator(values: Observable<number>): AsyncGenerator<number> {
    this.ran++;
    yield* await lastValueFrom(values.pipe(toArray()));
  }
  @DistributedLock({ key: 'k', store: 'other' })
  async elsewhere(values: Observable<number>): Promise<number[]> {
    return await this.promise(values);
  }
  @DistributedLock('outer')
  @DistributedLock('k')
  async twice(values: Observable<number>): Promise<number[]> {
    return await lastValueFrom(values.pipe(toArray()));
  }
  @DistributedLock('k')
  replies(values: Observable<number>): Observable<number> {
    this.ran++;
    const replies = new Subject<number>();
    values.subscribe({ next: (value) => replies.next(value * 10), complete: () => replies.complete() });
    return replies;
  }
  @DistributedLock('k')
  async halves(values: Observable<number>): Promise<number[][]> {
    const parts = [values.pipe(take(1), toArray()), values.pipe(toArray())];
    return await Promise.all(parts.map((part) => lastValueFrom(part)));
  }
  @DistributedLock('k')
  async inside(values: Observable<number>): Promise<unknown[]> {
    const keysOf = async (): Promise<unknown> => this.nested();
    return await lastValueFrom(values.pipe(concatMap(keysOf), toArray()));
  }
  @DistributedLock({ key: 'k', wait: 0 })
  async nested(): Promise<unknown> {
    return currentLock()?.keys[0];
  }
  @DistributedLock('k')
  async emits(progress: Subject<number>): Promise<boolean> {
    progress.next(1);
    await nextTurn();
    progress.next(2);
    return progress.observed;
  }
  @DistributedLock('k')
  async counts(progress: Counted): Promise<number> {
    progress.next(1);
    return progress.emitted;
  }
  @DistributedLock('k')
  async ignores(_values: Observable<number>): Promise<void> {
    await nextTurn();
  }
  @DistributedLock('k')
  async later(values: Observable<number>): Promise<{ readonly values: Observable<number> }> {
    await nextTurn();
    return { values };
  }
  @DistributedLock({ key: 'k', wait: 0 })
  async refused(values: Observable<number>): Promise<number> {
    return await lastValueFrom(values);
  }
  @DistributedLock({ key: 'k', onBusy: 'skip' })
  async skipped(values: Observable<number>): Promise<number | undefined> {
    return await lastValueFrom(values);
  }
  @DistributedLock({
    key: 'k',
    wait: 0,
    onBusy: (_error: LockNotAcquiredError, values: Observable<number>) => lastValueFrom(values.pipe(toArray())),
  })
  async answered(values: Observable<number>): Promise<number[]> {
    return [await lastValueFrom(values)];
  }
  @DistributedLock({ key: 'k', signal: (_values: Observable<number>, signal: AbortSignal) => signal })
  async aborted(values: Observable<number>, _signal: AbortSignal): Promise<number> {
    return await lastValueFrom(values);
  }
}

let module: TestingModule;
let sums: Sums;
let locks: LockService;

beforeEach(async () => {
  module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ stores: { default: new MemoryLockStore(), other: new MemoryLockStore() } })],
    providers: [Sums],
  }).compile();
  await module.init();
  sums = module.get(Sums);
  locks = module.get(LockService);
});
afterEach(() => module.close());

const waits = (): Promise<void> => until('the call waits', async () => (await locks.operations.inspect('k'))?.waitingHere === 1);
const isDropped = (subject: Subject<number>): Promise<void> => until('nobody reads the Subject', () => !subject.observed);

/** Calls while the lock is held elsewhere, lets `meanwhile` emit, and lets the call in. */
async function whileHeld<T>(call: () => Promise<T>, meanwhile: () => void): Promise<T> {
  const held = await locks.acquire('k');
  const called = call();
  await waits();
  meanwhile();
  await held.release();
  return await called;
}

const KINDS: readonly [string, (values: Observable<number>) => Promise<number[]>][] = [
  ['returns a promise', (values) => sums.promise(values)],
  ['returns an Observable', (values) => lastValueFrom(sums.observable(values).pipe(toArray()))],
  ['is a generator', (values) => lastValueFrom(from(sums.generator(values)).pipe(toArray()))],
];

describe.each(KINDS)('a method that %s', (_, call) => {
  test('gets what a Subject emitted while the call waited, and then what follows, in order', async () => {
    const subject = new Subject<number>();
    const called = whileHeld(
      () => call(subject),
      () => [1, 2].forEach((value) => subject.next(value)),
    );
    await until('the method runs', () => sums.ran === 1);
    [3, 4].forEach((value) => subject.next(value));
    subject.complete();
    expect(await called).toEqual([1, 2, 3, 4]);
  });

  test('gets what a Subject emits at once, though the lock is free', async () => {
    const subject = new Subject<number>();
    const called = call(subject.asObservable());
    [1, 2].forEach((value) => subject.next(value));
    subject.complete();
    expect(await called).toEqual([1, 2]);
  });

  test('gets the error of a Subject after what came before it', async () => {
    const subject = new Subject<number>();
    const seen: number[] = [];
    const called = whileHeld(
      () => call(subject.pipe(tap((value) => seen.push(value)))),
      () => {
        subject.next(1);
        subject.error(new TypeError('own'));
      },
    );
    await expect(called).rejects.toThrow(new TypeError('own'));
    expect(seen).toEqual([1]);
  });
});

test('the operators over a Subject run inside the lock, once for each value', async () => {
  const subject = new Subject<number>();
  const keys: unknown[] = [];
  const piped = subject.asObservable().pipe(
    tap(() => keys.push(currentLock()?.keys[0])),
    map((value) => value * 10),
  );
  const called = whileHeld(
    () => sums.promise(piped),
    () => subject.next(1),
  );
  await until('the method runs', () => sums.ran === 1);
  subject.next(2);
  subject.complete();
  expect(await called).toEqual([10, 20]);
  expect(keys).toEqual(['k', 'k']);
});

test('a method reads a Subject inside its lock, also what is emitted outside of it', async () => {
  const subject = new Subject<number>();
  const called = whileHeld(
    () => sums.inside(subject),
    () => subject.next(1),
  );
  await until('the first value was read', async () => (await locks.operations.inspect('k'))?.waitingHere === 0);
  await nextTurn();
  subject.next(2);
  subject.complete();
  expect(await called).toEqual(['k', 'k']);
});

test('a method that subscribes twice gets all of it twice', async () => {
  const subject = new Subject<number>();
  const called = whileHeld(
    () => sums.halves(subject),
    () => {
      [1, 2].forEach((value) => subject.next(value));
      subject.complete();
    },
  );
  expect(await called).toEqual([[1], [1, 2]]);
});

test('a method behind two decorators, and one that calls another, gets all of it once', async () => {
  for (const call of [(values: Observable<number>) => sums.twice(values), (values: Observable<number>) => sums.elsewhere(values)]) {
    const subject = new Subject<number>();
    const called = whileHeld(
      () => call(subject),
      () => {
        [1, 2].forEach((value) => subject.next(value));
        subject.complete();
      },
    );
    expect(await called).toEqual([1, 2]);
  }
});

test('a method that passes values on as they come loses none before its result is subscribed to', async () => {
  const subject = new Subject<number>();
  const called = whileHeld(
    () => lastValueFrom(sums.replies(subject).pipe(toArray())),
    () => [1, 2].forEach((value) => subject.next(value)),
  );
  await until('the method runs', () => sums.ran === 1);
  subject.next(3);
  subject.complete();
  expect(await called).toEqual([10, 20, 30]);
});

test('who gets a Subject from the method that ended still gets what came before', async () => {
  const subject = new Subject<number>();
  const { values } = await whileHeld(
    () => sums.later(subject),
    () => subject.next(1),
  );
  expect(await firstValueFrom(values)).toBe(1);
  await isDropped(subject);
});

test('nothing is read for a call that gets no lock, nor after a method that subscribes to nothing', async () => {
  const subject = new Subject<number>();
  await sums.ignores(subject);
  await isDropped(subject);
  const held = await locks.acquire('k');
  await expect(sums.refused(subject)).rejects.toBeInstanceOf(LockNotAcquiredError);
  expect(await sums.skipped(subject)).toBeUndefined();
  await isDropped(subject);
  const client = new AbortController();
  const aborted = sums.aborted(subject, client.signal);
  await waits();
  expect(subject.observed).toBe(true);
  client.abort();
  await expect(aborted).rejects.toMatchObject({ reason: 'aborted' });
  await isDropped(subject);
  const subscription: Subscription = sums.observable(subject).subscribe();
  await waits();
  subscription.unsubscribe();
  await isDropped(subject);
  await held.release();
  expect(sums.ran).toBe(0);
});

test('onBusy as a function gets what was emitted', async () => {
  const held = await locks.acquire('k');
  const subject = new Subject<number>();
  const answered = sums.answered(subject);
  subject.next(1);
  subject.complete();
  expect(await answered).toEqual([1]);
  await held.release();
});

test('a call that nobody awaits still tells of its refusal', async () => {
  const held = await locks.acquire('k');
  const told: unknown[] = [];
  const stop = watchRejections((error) => told.push(error));
  void sums.refused(new Subject<number>());
  await until('the rejection is told', () => told.length > 0);
  stop();
  expect(told).toEqual([expect.any(LockNotAcquiredError)]);
  await held.release();
});

test('a Subject into which the method emits is kept by nobody, also one with private fields', async () => {
  const subject = new Subject<number>();
  const seen: number[] = [];
  subject.pipe(take(2)).subscribe((value) => seen.push(value));
  expect(await sums.emits(subject)).toBe(false);
  expect(seen).toEqual([1, 2]);
  expect(await sums.counts(new Counted())).toBe(1);
});

test('an Observable that begins its own work is subscribed to inside the lock, once', async () => {
  let begun = 0;
  const cold = new Observable<number>((subscriber) => {
    begun++;
    subscriber.next(sums.ran);
    subscriber.complete();
  });
  const called = whileHeld(
    () => sums.promise(cold.pipe(map((ran) => ran * 10))),
    () => expect(begun).toBe(0),
  );
  expect(await called).toEqual([10]);
  expect(begun).toBe(1);
});

test('a Subject that replays by itself is left to do so', async () => {
  for (const [subject, expected] of [
    [new BehaviorSubject(0), [2]],
    [new ReplaySubject<number>(1), [2]],
  ] as const) {
    const called = whileHeld(
      () => sums.promise(subject.pipe(take(1))),
      () => {
        expect(subject.observed).toBe(false);
        [1, 2].forEach((value) => subject.next(value));
      },
    );
    expect(await called).toEqual(expected);
  }
});

test('a Subject that has ended, or is closed, gives the method what it gives everybody', async () => {
  const ended = new Subject<number>();
  ended.complete();
  expect(await sums.promise(ended)).toEqual([]);
  const closed = new Subject<number>();
  closed.unsubscribe();
  await expect(sums.promise(closed)).rejects.toThrow('object unsubscribed');
});

test('an argument that throws when it is read is none of ours', async () => {
  const strict = new Proxy(new Observable<number>(), {
    get: (_, name) => {
      throw new TypeError(`${String(name)} is unknown`);
    },
  });
  await sums.ignores(strict);
});
