import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  LockModule,
  LockService,
  LockStoreError,
  MemoryLockStore,
  RedisLockStore,
  type HoldRecord,
  type LockedSection,
  type LockEvent,
  type LockModuleOptions,
  type LockSource,
  type LockTelemetry,
  type MeasuredOperation,
} from 'nestjs-distributed-lock';
import { AsyncLocalStorage } from 'node:async_hooks';
import { healthWith } from '../support/health-with';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { playTime, sleep } from '../support/virtual-time';

@Injectable()
class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, body: () => unknown = () => customerId): Promise<unknown> {
    return body();
  }
}

/** Remembers what it is told. */
class Recorder implements LockTelemetry {
  readonly events: LockEvent[] = [];
  readonly operations: MeasuredOperation[] = [];
  readonly sections: LockedSection[] = [];
  readonly resumed: LockedSection[] = [];
  readonly context = new AsyncLocalStorage<string>();
  source!: LockSource;
  hasEnded = false;

  watch(source: LockSource): () => void {
    this.source = source;
    return () => (this.hasEnded = true);
  }

  event(event: LockEvent): void {
    this.events.push(event);
  }

  operation(measured: MeasuredOperation): void {
    this.operations.push(measured);
  }

  section(section: LockedSection, run: () => unknown): void {
    this.sections.push(section);
    this.context.run(section.name, run);
  }

  resume(section: LockedSection, run: () => unknown): void {
    this.resumed.push(section);
    this.context.run(`${section.name} goes on`, run);
  }
}

let module: TestingModule | undefined;
let balances: Balances;
let locks: LockService;

async function start(options: LockModuleOptions): Promise<void> {
  module = await Test.createTestingModule({ imports: [LockModule.forRoot(options)], providers: [Balances] }).compile();
  [balances, locks] = [module.get(Balances), module.get(LockService)];
}

afterEach(async () => {
  await module?.close();
  module = undefined;
});

test('telemetry is told of events and operations, and runs the code of a call', async () => {
  const recorder = new Recorder();
  await start({ store: new MemoryLockStore(), telemetry: recorder });
  const seen = await balances.credit('42', async () => {
    await balances.credit('42');
    await locks.operations.inspect('balance:42');
    return [recorder.context.getStore(), Object.fromEntries(recorder.source.holds())];
  });
  expect(seen).toEqual(['balance:<customerId>', { 'balance:<customerId>': 1 }]);
  expect(recorder.sections).toEqual([
    expect.objectContaining({
      store: 'default',
      name: 'balance:<customerId>',
      site: 'Balances.credit',
      keys: ['balance:42'],
      ttlMs: 10_000,
      contended: false,
    }),
  ]);
  expect(recorder.events.map(({ type }) => type)).toEqual(['acquired', 'released']);
  expect(recorder.events[0]).toMatchObject({ fence: recorder.sections[0]?.fence, contended: false });
  expect(recorder.operations.map(({ operation, error }) => [operation, error])).toEqual([
    ['acquire', undefined],
    ['release', undefined],
  ]);
  expect(recorder.operations.every(({ durationMs, store }) => durationMs >= 0 && store === 'default')).toBe(true);
  expect([...recorder.source.holds()]).toEqual([]);
  await module?.close();
  expect(recorder.hasEnded).toBe(true);
});

test('calls that hold and calls that wait are counted by name', async () => {
  const recorder = new Recorder();
  await start({ store: new MemoryLockStore(), telemetry: [recorder], maxWaiters: { perProcess: 7 } });
  const held = await locks.acquire('balance:1', { name: 'by hand' });
  const waiting = [balances.credit('1'), balances.credit('1'), locks.withLock('balance:1', () => undefined)];
  await until('three wait', async () => [...recorder.source.waiters().values()].reduce((sum, count) => sum + count, 0) === 3);
  expect(Object.fromEntries(recorder.source.waiters())).toEqual({ 'balance:<customerId>': 2, 'LockService.withLock': 1 });
  expect(Object.fromEntries(recorder.source.holds())).toEqual({ 'by hand': 1 });
  expect(recorder.source.maxWaiters).toBe(7);
  expect(await recorder.source.health()).toMatchObject({ status: 'up', heldHere: 1, waitingHere: 3 });
  await held.release();
  await Promise.all(waiting);
  expect([recorder.source.waiters().size, recorder.source.holds().size]).toEqual([0, 0]);
  expect(recorder.sections.map(({ contended }) => contended)).toEqual([true, true, true]);
});

test('what a lock runs later is run by telemetry too, with the section of its call', async () => {
  const recorder = new Recorder();
  await start({ store: new MemoryLockStore(), telemetry: [{ event: () => undefined }, recorder, { section: (_, run) => void run() }] });
  const seen = await locks.withLock('k', { name: 'long' }, (lock) => {
    expect(recorder.resumed).toEqual([]);
    expect(recorder.sections[0]?.signal).toBe(lock.signal);
    return lock.run(async () => [recorder.context.getStore(), lock.isHeld()]);
  });
  expect(seen).toEqual(['long goes on', true]);
  expect(recorder.sections).toHaveLength(1);
  expect(recorder.resumed).toEqual(recorder.sections);
});

test('a part that follows entries is told of each, a re-entry too, also where other parts follow none', async () => {
  const entries: string[] = [];
  const followsEntries: LockTelemetry = { entered: ({ how, key, site }) => entries.push(`${site} ${how} ${key}`) };
  await start({ store: new MemoryLockStore(), telemetry: [new Recorder(), followsEntries, { watch: () => undefined }] });
  await locks.withLock('k', async () => {
    await locks.withLock('k', { by: 'Nested.call' }, () => undefined);
    await balances.credit('1');
  });
  expect(entries).toEqual(['LockService.withLock acquired k', 'Nested.call reentered k', 'Balances.credit acquired balance:1']);
});

describe('in played time', () => {
  playTime();

  test('an operation lasts until the store has answered, or has failed, and then has its error', async () => {
    class SlowStore extends MemoryLockStore {
      override async acquire(...args: [HoldRecord, ...[]]): ReturnType<MemoryLockStore['acquire']> {
        const [{ key }] = args;
        await sleep(key === 'slow' ? 300 : 450);
        if (key === 'fails') {
          throw new LockStoreError('no answer', key, { unknown: false });
        }
        return super.acquire(...args);
      }
    }
    const recorder = new Recorder();
    await start({ store: new SlowStore(), telemetry: recorder });
    module?.useLogger(false);
    expect(await locks.withLock('slow', () => 'done')).toBe('done');
    await expect(locks.withLock('fails', { wait: 0 }, () => 'done')).rejects.toMatchObject({ code: 'LOCK_STORE', key: 'fails' });
    expect(recorder.operations).toEqual([
      expect.objectContaining({ store: 'default', operation: 'acquire', durationMs: 300, error: undefined }),
      expect.objectContaining({ operation: 'release', error: undefined }),
      expect.objectContaining({ operation: 'acquire', durationMs: 450, error: expect.objectContaining({ key: 'fails' }) as object }),
    ]);
  });
});

describe('on a server', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  test('an operation that failed has its error, and a section the signal of its lock', async () => {
    const recorder = new Recorder();
    await start({ store: new RedisLockStore(server.url), telemetry: recorder });
    // It is told of a forced release once it has subscribed.
    await healthWith(locks);
    const lost = balances.credit('1', async () => {
      const [section] = recorder.sections as [LockedSection];
      await locks.operations.forceRelease('balance:1', { fence: section.fence });
      await until('the loss', async () => section.signal.aborted, 10_000);
      return 'ran on';
    });
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    expect(recorder.sections[0]?.signal.reason).toMatchObject({ reason: 'forced' });
    await server.client.acl('SETUSER', 'default', '-evalsha', '-eval');
    await balances.credit('2').catch(() => undefined);
    await server.client.acl('SETUSER', 'default', '+evalsha', '+eval');
    expect(recorder.operations.find(({ error }) => error)).toMatchObject({ operation: 'acquire', error: { code: 'LOCK_CONFIGURATION' } });
  });

  test('every operation is measured, and capabilities work as before', async () => {
    const recorder = new Recorder();
    await start({ store: new RedisLockStore(server.url), telemetry: recorder });
    const held = await locks.acquire('k', { ttl: '3s' });
    await locks.withLock('k', { ticket: held.makeTicket() }, () => undefined);
    await until('a renewal', async () => recorder.operations.some(({ operation }) => operation === 'renew'), 10_000);
    expect(await locks.operations.inspect('k')).toMatchObject({ fence: held.fence });
    const waiting = [1, 2].map((n) => locks.withLock('k', { minHold: 1 }, () => n));
    await held.release();
    expect(await Promise.all(waiting)).toEqual([1, 2]);
    const kinds = new Set(recorder.operations.map(({ operation }) => operation));
    expect([...kinds].toSorted()).toEqual(['acquire', 'exchange', 'join', 'release', 'renew']);
    expect(new Set(recorder.operations.map(({ error }) => error))).toEqual(new Set([undefined]));
  });
});

const fail = (): never => {
  throw new Error('a broken backend');
};
const never = (): never => new Promise(() => undefined) as never;
const BROKEN: Readonly<Record<string, LockTelemetry>> = {
  'throws everywhere': { watch: fail, event: fail, operation: fail, section: fail },
  'does not run the code': { section: () => undefined },
  'runs the code twice': {
    section(_, run) {
      run();
      run();
    },
  },
  'throws when the code has run': {
    section(_, run) {
      run();
      fail();
    },
  },
  'throws when it is to end': { watch: () => fail },
  'never ends what it began': {
    event: never,
    operation: never,
    section: (_, run) => {
      run();
      return never();
    },
  },
  'has one method': { event: () => undefined },
};

test.each(Object.keys(BROKEN))('a part that %s changes nothing for the locks and the other parts', async (what) => {
  const recorders = [new Recorder(), new Recorder()] as const;
  await start({ store: new MemoryLockStore(), telemetry: [recorders[0], BROKEN[what] as LockTelemetry, recorders[1]] });
  let runs = 0;
  expect(await balances.credit('1', async () => ++runs)).toBe(1);
  await expect(balances.credit('2', () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
  expect(await balances.credit('1')).toBe('1');
  for (const { sections, events, operations } of recorders) {
    expect([sections.length, events.length, operations.length]).toEqual([3, 6, 6]);
  }
  await module?.close();
  expect(recorders.map(({ hasEnded }) => hasEnded)).toEqual([true, true]);
});

test.each([['yes'], [[null]]])('telemetry that is %j is refused at start', async (telemetry) => {
  await expect(start({ store: new MemoryLockStore(), telemetry: telemetry as never })).rejects.toThrow(
    /LockModule: telemetry is .*Pass what/,
  );
});
