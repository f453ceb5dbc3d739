import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  LOCK_CHANNEL,
  LockModule,
  LockService,
  LockStoreError,
  MemoryLockStore,
  RedisLockStore,
  type HoldRecord,
  type LockEvent,
  type LockStore,
} from 'nestjs-distributed-lock';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { hostname } from 'node:os';
import { RedisServer } from '../support/redis-server';
import { playTime, sleep } from '../support/virtual-time';

const PROCESS = `${hostname()} (pid ${process.pid})`;

@Injectable()
class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, body: () => unknown = () => undefined): Promise<unknown> {
    return [customerId, await body()];
  }

  @DistributedLock({ key: (customerId: string) => `balance:${customerId}`, onBusy: 'skip' })
  async report(_customerId: string): Promise<void> {}

  @DistributedLock({ key: 'limit:<customerId>', store: 'other' })
  async limit(customerId: string, body: () => unknown): Promise<unknown> {
    return [customerId, await body()];
  }
}

let module: TestingModule;
let balances: Balances;
let locks: LockService;
let events: LockEvent[];
const onEvent = (event: unknown): void => void events.push(event as LockEvent);

async function start(store: LockStore): Promise<void> {
  module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ stores: { default: store, other: new MemoryLockStore() }, maxWaiters: 1 })],
    providers: [Balances],
  }).compile();
  [balances, locks] = [module.get(Balances), module.get(LockService)];
}

beforeEach(() => {
  events = [];
  subscribe(LOCK_CHANNEL, onEvent);
});
afterEach(async () => {
  unsubscribe(LOCK_CHANNEL, onEvent);
  await module.close();
});

function eventsOf<Type extends LockEvent['type']>(type: Type): (LockEvent & { type: Type })[] {
  return events.filter((event): event is LockEvent & { type: Type } => event.type === type);
}

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => Promise.reject(new Error('nothing was thrown')),
    (error: unknown) => error,
  );

/** Fails every attempt. */
class AwayStore extends MemoryLockStore {
  override acquire({ key }: HoldRecord): Promise<never> {
    return Promise.reject(new LockStoreError(`Lock "${key}": no answer`, key, { unknown: false }));
  }
}

describe('of a store that fails', () => {
  playTime();

  test('a call that the store failed is refused with that reason', async () => {
    await start(new AwayStore());
    await failure(locks.acquire('k', { wait: 0 }));
    expect(eventsOf('refused')).toEqual([expect.objectContaining({ reason: 'store', key: 'k', holder: undefined })]);
    expect(eventsOf('waited')).toEqual([]);
  });

  test('a call that waited for a store that failed has not got its turn', async () => {
    await start(new AwayStore());
    await failure(locks.acquire('k', { wait: 1_500 }));
    expect(eventsOf('waited')).toEqual([expect.objectContaining({ gaveUp: 'store', holder: undefined })]);
  });
});

describe('in a process', () => {
  playTime();
  beforeEach(() => start(new MemoryLockStore()));

  test('a call that waited names who had the lock before', async () => {
    await Promise.all([balances.credit('1', () => sleep(2_000)), balances.credit('1')]);
    const holder = { by: `${PROCESS} Balances.credit`, heldMs: 2_000 };
    expect(eventsOf('waited')).toEqual([expect.objectContaining({ gaveUp: undefined, holder, waitedMs: 2_000 })]);
  });

  test('a renewal says how much of the lease was left', async () => {
    await locks.withLock('k', { ttl: 3_000, name: 'long' }, () => sleep(3_000));
    // A lock of another test may still be renewed.
    const renewed = eventsOf('renewed').filter(({ name }) => name === 'long');
    expect(renewed.length).toBeGreaterThanOrEqual(2);
    for (const { margin, key } of renewed) {
      expect(key).toBe('k');
      // It is sent after a third of the lease, or up to a tenth earlier.
      expect(margin).toBeGreaterThan(0.64);
      expect(margin).toBeLessThan(0.75);
    }
  });

  test('an event has the name of its calls, the process and the place in the code', async () => {
    await balances.credit('42');
    await balances.report('42');
    await locks.withLock('by hand', () => undefined);
    await locks.withLock('by hand', { by: 'Importer.run' }, () => undefined);
    await locks.withLock('by hand', { by: 'Importer.run', name: 'import' }, () => undefined);
    await locks.acquire('by hand').then((lock) => lock.release());
    await locks.tryAcquire('by hand').then((lock) => lock?.release());
    await locks.tryAcquire('by hand', { by: 'Importer.try' }).then((lock) => lock?.release());
    const named = ['acquired', 'released'].map((type) =>
      events.filter((event) => event.type === type).map(({ name, site }) => [name, site]),
    );
    const expected = [
      ['balance:<customerId>', 'Balances.credit'],
      ['Balances.report', 'Balances.report'],
      ['LockService.withLock', 'LockService.withLock'],
      ['Importer.run', 'Importer.run'],
      ['import', 'Importer.run'],
      ['LockService.acquire', 'LockService.acquire'],
      ['LockService.tryAcquire', 'LockService.tryAcquire'],
      ['Importer.try', 'Importer.try'],
    ];
    expect(named).toEqual([expected, expected]);
    expect(new Set(events.map((event) => event.process))).toEqual(new Set([PROCESS]));
    expect(events[0]).toMatchObject({ store: 'default', key: 'balance:42', by: `${PROCESS} Balances.credit` });
  });

  test('an event says how the call has its key, or wanted it', async () => {
    await locks.withLock('k', () => undefined);
    await locks.withLock('k', { mode: 'read' }, () => failure(locks.acquire('k')));
    await locks.withPermit('erp', 1, () => failure(locks.acquirePermit('erp', 1, { wait: 0, reentry: 'never' })));
    await locks.acquire('k').then(({ fence }) => locks.operations.forceRelease('k', { fence }));
    expect(events.map(({ type, mode }) => `${type} ${mode}`)).toEqual([
      ...['acquired write', 'released write'],
      ...['acquired read', 'refused write', 'released read'],
      ...['acquired permit', 'refused permit', 'released permit'],
      ...['acquired write', 'lost write', 'forced undefined'],
    ]);
  });

  test.each([5, ''])('a name that is %j is refused', async (name) => {
    await expect(locks.withLock('k', { name: name as string }, () => undefined)).rejects.toThrow(
      /LockService.withLock: name is .*Pass a text/,
    );
  });

  test('a call that ends without its lock is refused, whether it waited or not', async () => {
    const aborted = AbortSignal.abort();
    await locks.withLock('balance:1', { by: 'Holder.run' }, async () => {
      await module.get(LockService).tryAcquire('balance:1', { reentry: 'never' });
      await balances.credit('1').catch(() => undefined);
    });
    expect(eventsOf('refused').map(({ reason }) => reason)).toEqual(['busy']);
    events = [];
    const held = await locks.acquire('balance:1', { by: 'Holder.run' });
    await balances.report('1');
    expect(await locks.tryAcquire('balance:1')).toBeNull();
    await failure(locks.acquire('balance:1', { wait: 1_500 }));
    await failure(locks.acquire('balance:1', { signal: aborted }));
    const waiting = locks.acquire('balance:1', { wait: '1m' });
    await failure(locks.acquire('balance:1', { wait: '1m' }));
    await failure(locks.acquire('balance:2', { ticket: held.makeTicket() }));
    await held.release();
    await (await waiting).release();
    const holder = { by: `${PROCESS} Holder.run` };
    expect(eventsOf('refused')).toEqual([
      expect.objectContaining({ reason: 'busy', name: 'Balances.report', key: 'balance:1', holder: expect.objectContaining(holder) }),
      expect.objectContaining({ reason: 'busy', name: 'LockService.tryAcquire', holder: expect.objectContaining(holder) }),
      expect.objectContaining({ reason: 'busy', waitedMs: 1_500 }),
      expect.objectContaining({ reason: 'aborted' }),
      expect.objectContaining({ reason: 'tooManyWaiters' }),
      expect.objectContaining({ reason: 'configuration', key: 'balance:2' }),
    ]);
    expect(eventsOf('waited').map(({ gaveUp }) => gaveUp)).toEqual(['busy', undefined]);
  });

  test('a call that is refused at shutdown says so', async () => {
    const held = await locks.acquire('k');
    const waiting = failure(locks.acquire('k', { wait: '1m' }));
    await module.close();
    await waiting;
    await failure(locks.acquire('k'));
    expect(eventsOf('refused').map(({ reason }) => reason)).toEqual(['shutdown', 'shutdown']);
    await held.release();
  });

  test('a forced release is told by the process that forced it', async () => {
    const held = await locks.acquire('k');
    const { fence } = held;
    expect(await locks.operations.forceRelease('k', { fence: fence - 1 })).toBe(false);
    expect(eventsOf('forced')).toEqual([]);
    expect(await locks.operations.forceRelease('k', { fence })).toBe(true);
    expect(eventsOf('forced')).toEqual([
      expect.objectContaining({ key: 'k', fence, by: PROCESS, name: 'LockOperations.forceRelease', site: 'LockOperations.forceRelease' }),
    ]);
    await held.release().catch(() => undefined);
  });

  test('a call for several keys is refused with the key that was busy', async () => {
    const held = await locks.acquire('b');
    expect(await locks.tryAcquire(['a', 'b', 'c'])).toBeNull();
    expect(eventsOf('refused')).toEqual([expect.objectContaining({ reason: 'busy', key: 'b' })]);
    await held.release();
  });

  test('a ticket whose lock was released is refused as lost', async () => {
    const held = await locks.acquire('k');
    const ticket = held.makeTicket();
    await held.release();
    await failure(locks.acquire('k', { ticket }));
    expect(eventsOf('refused')).toEqual([expect.objectContaining({ reason: 'lost', key: 'k' })]);
  });

  test('calls that would wait for each other through two stores are a cycle, which is told', async () => {
    const inside: (() => void)[] = [];
    const both = new Promise<void>((resolve) => inside.push(resolve));
    let entered = 0;
    const meet = (): Promise<void> => {
      entered++;
      if (entered === 2) {
        inside.forEach((go) => go());
      }
      return both;
    };
    const outcomes = await Promise.allSettled([
      balances.credit('7', () => meet().then(() => balances.limit('7', () => 'first'))),
      balances.limit('7', () => meet().then(() => balances.credit('7', () => 'second'))),
    ]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const rejected = outcomes.find((outcome) => outcome.status === 'rejected');
    expect(rejected?.reason).toMatchObject({ reason: 'cycle' });
    expect(eventsOf('refused').map(({ reason }) => reason)).toEqual(['cycle']);
    const [cycle, ...more] = eventsOf('cycle');
    expect(more).toEqual([]);
    expect(new Set(cycle?.keys)).toEqual(new Set(['balance:7', 'limit:7']));
    expect(cycle?.name).toMatch(/^(balance|limit):<customerId>$/);
  });
});

describe('on a server', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    await server.client.flushall();
    await start(new RedisLockStore(server.url));
  });

  test('a call that the server refuses is refused too', async () => {
    await server.client.acl('SETUSER', 'default', '-evalsha', '-eval');
    await failure(locks.acquire('k', { wait: 0 }));
    await server.client.acl('SETUSER', 'default', '+evalsha', '+eval');
    expect(eventsOf('refused')).toEqual([expect.objectContaining({ reason: 'configuration', key: 'k' })]);
  });
});
