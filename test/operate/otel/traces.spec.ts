import 'reflect-metadata';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type TracerProvider } from '@opentelemetry/api';
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
  type LockStore,
} from 'nestjs-distributed-lock';
import { otelTelemetry, type OtelTelemetryOptions } from 'nestjs-distributed-lock/otel';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { defer, lastValueFrom, Observable } from 'rxjs';
import { healthWith } from '../../support/health-with';
import { startHolder } from '../../support/holder';
import { holdIds } from '../../support/hold-ids';
import { RedisServer } from '../../support/redis-server';
import { durationOf, idOf, parentOf, Spans } from '../../support/spans';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';

@Injectable()
class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, body: () => unknown = () => undefined): Promise<unknown> {
    return [customerId, await body()];
  }

  @DistributedLock({ key: 'balance:<customerId>', wait: 100 })
  async brief(customerId: string): Promise<string> {
    return customerId;
  }

  @DistributedLock('balance:<customerId>')
  watch(customerId: string, body: () => Promise<unknown>): Observable<unknown> {
    return defer(body);
  }

  @DistributedLock('balance:<customerId>')
  async *list(customerId: string, body: () => Promise<unknown>): AsyncGenerator {
    yield await body();
    yield await body();
  }
}

const HOLD = 'lock balance:<customerId>';
const WAIT = 'wait_for lock balance:<customerId>';
/** An id, of which an owner is made, or the digest that stands in the store. */
const SECRET = /[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{64}|[\w-]{43}/;

/** The names of holds. */
let holds: RegExp;
let spans: Spans;
let server: RedisServer;
const modules: TestingModule[] = [];

interface Application {
  readonly balances: Balances;
  readonly locks: LockService;
}

async function start(store: LockStore, options?: OtelTelemetryOptions): Promise<Application> {
  const telemetry = otelTelemetry({ tracerProvider: spans.provider, ...options });
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store, telemetry, wait: '1m' })],
    providers: [Balances],
  }).compile();
  modules.push(module);
  return { balances: module.get(Balances), locks: module.get(LockService) };
}

async function onRedis(options?: OtelTelemetryOptions): Promise<Application> {
  const application = await start(new RedisLockStore(server.url), options);
  // A store that opened without an answer has no connection yet: ioredis keeps the command, and sends it under nobody
  // as soon as it has one, and the call has the span of a wait.
  await healthWith(application.locks);
  return application;
}

const inMemory = (options?: OtelTelemetryOptions): Promise<Application> => start(new MemoryLockStore(), options);

/** Where the one lock is stored. */
async function lockKeyOf({ client }: RedisServer): Promise<string> {
  const [key] = await client.keys('lock:lock:*');
  return key as string;
}

const activeSpan = (): string | undefined => trace.getSpanContext(context.active())?.spanId;

beforeAll(async () => {
  spans = new Spans();
  server = await RedisServer.start();
  holds = await holdIds(server);
});
afterAll(async () => {
  spans.end();
  await server.stop();
});
beforeEach(() => spans.clear());
afterEach(async () => {
  await Promise.all(modules.splice(0).map((module) => module.close()));
  expect(spans.text.replaceAll(hostname(), 'host')).not.toMatch(SECRET);
  expect(spans.text).not.toMatch(holds);
  await server.client.flushall();
});

test('a call has a span, which is a child of its caller and the parent of what its code does', async () => {
  const { balances } = await inMemory();
  await spans.inside('request', () => balances.credit('customer-4242', () => spans.inside('query', async () => undefined)));
  const hold = spans.one(HOLD);
  expect(parentOf(hold)).toBe(idOf(spans.one('request')));
  expect(parentOf(spans.one('query'))).toBe(idOf(hold));
  expect(hold.kind).toBe(SpanKind.INTERNAL);
  expect(hold.instrumentationScope.name).toBe('nestjs-distributed-lock');
  expect(hold.attributes).toEqual({
    'distributed_lock.name': 'balance:<customerId>',
    'distributed_lock.store': 'default',
    'distributed_lock.mode': 'write',
    'distributed_lock.fence': expect.any(Number) as unknown,
    'distributed_lock.ttl_ms': 10_000,
    'distributed_lock.wait_ms': expect.any(Number) as unknown,
    'distributed_lock.contended': false,
    'code.function.name': 'Balances.credit',
  });
  expect(hold.status.code).toBe(SpanStatusCode.UNSET);
  expect([spans.ended.length, hold.events.length]).toEqual([3, 0]);
  expect(spans.text).not.toContain('customer-4242');
});

test('a reader and a permit have spans that say so, a permit without a fence', async () => {
  const { locks } = await inMemory();
  await locks.withLock('k', { mode: 'read', name: 'reads' }, () => undefined);
  await locks.withPermit('erp', 2, { name: 'permitted' }, () => undefined);
  expect(spans.one('lock reads').attributes).toMatchObject({
    'distributed_lock.mode': 'read',
    'distributed_lock.fence': expect.any(Number),
  });
  expect(spans.one('lock permitted').attributes).toMatchObject({ 'distributed_lock.mode': 'permit' });
  expect(spans.one('lock permitted').attributes).not.toHaveProperty(['distributed_lock.fence']);
});

test('two applications contend: the one that waits has a span of its wait, behind the other', async () => {
  const [one, other] = await Promise.all([onRedis(), onRedis()]);
  let waits: Promise<unknown> | undefined;
  let heldMs = 0;
  await spans.inside('first', () =>
    one.balances.credit('customer-4242', async () => {
      waits = spans.inside('second', () => other.balances.credit('customer-4242', activeSpan));
      await until('that it waits', async () => (await other.locks.operations.health()).waitingHere === 1);
      const isKnownAt = performance.now();
      await sleep(50);
      heldMs = performance.now() - isKnownAt;
    }),
  );
  await waits;
  const wait = spans.one(WAIT);
  const [firstHold, secondHold] = spans.named(HOLD);
  expect(parentOf(wait)).toBe(idOf(spans.one('second')));
  expect(parentOf(secondHold!)).toBe(idOf(spans.one('second')));
  expect(wait.kind).toBe(SpanKind.INTERNAL);
  expect(wait.attributes).toEqual({
    'distributed_lock.name': 'balance:<customerId>',
    'distributed_lock.store': 'default',
    'distributed_lock.mode': 'write',
    'distributed_lock.wait_ms': expect.any(Number) as unknown,
    'distributed_lock.blocked_by': expect.stringContaining(`${hostname()} (pid ${process.pid}) Balances.credit (trace=`) as unknown,
    'code.function.name': 'Balances.credit',
  });
  expect(wait.links.map(({ context: { spanId } }) => spanId)).toEqual([idOf(spans.one('first'))]);
  expect(durationOf(wait)).toBeGreaterThan(heldMs - 1);
  // The clock of spans is not the one that waits are measured with, and the process may stand still between the two.
  expect(Math.abs(durationOf(wait) - Number(wait.attributes['distributed_lock.wait_ms']))).toBeLessThan(250);
  expect([firstHold, secondHold].map((hold) => hold?.attributes['distributed_lock.contended'])).toEqual([false, true]);
  expect(spans.text).not.toContain('customer-4242');
});

test('a call that waits for another process has the span of its wait, behind that process', async () => {
  const { balances } = await onRedis();
  const holder = await startHolder(server.url, 'balance:customer-4242', 5_000);
  const waiting = balances.credit('customer-4242');
  await until('that it waits', async () => (await server.client.keys('lock:queue:*')).length === 1);
  await holder.leave();
  await waiting;
  expect(spans.one(WAIT).attributes['distributed_lock.blocked_by']).toBe(`${hostname()} (pid ${holder.child.pid}) holder`);
  expect(spans.one(HOLD).attributes['distributed_lock.contended']).toBe(true);
});

test('calls of one process that queue behind each other have a span of their wait too', async () => {
  const { balances } = await inMemory();
  await Promise.all([balances.credit('1', () => sleep(20)), balances.credit('1')]);
  expect(spans.one(WAIT).status.code).toBe(SpanStatusCode.UNSET);
  expect(spans.named(HOLD)).toHaveLength(2);
});

test.each([
  ['is refused', 'throw', { code: SpanStatusCode.ERROR }, { 'error.type': 'busy' }],
  ['skips a busy lock', 'skip', { code: SpanStatusCode.UNSET }, { 'distributed_lock.outcome': 'skipped' }],
] as const)('a call that %s at once has one span, and no other', async (_, onBusy, status, attributes) => {
  const { locks } = await onRedis();
  const other = await onRedis();
  await using held = await other.locks.acquire('balance:customer-4242', { by: 'by hand' });
  expect(held.isHeld()).toBe(true);
  await spans.inside('request', () =>
    locks
      .withLock('balance:customer-4242', { onBusy, wait: 0, name: 'nightly' }, () => undefined)
      .catch((error: unknown) => expect(error).toMatchObject({ reason: 'busy' })),
  );
  expect(spans.ended).toHaveLength(2);
  const wait = spans.one('wait_for lock nightly');
  expect(parentOf(wait)).toBe(idOf(spans.one('request')));
  expect(wait.status).toEqual(status);
  expect(wait.attributes).toMatchObject({
    ...attributes,
    'distributed_lock.blocked_by': `${hostname()} (pid ${process.pid}) by hand`,
  });
  expect('error.type' in wait.attributes).toBe(onBusy === 'throw');
  expect(spans.text).not.toContain('customer-4242');
});

test('a wait is linked to the span in which the lock was taken, in whichever process', async () => {
  const [{ locks }, other] = [await onRedis(), await onRedis()];
  const held = await spans.inside('night run', () => other.locks.acquire('report', { ttl: '1m' }));
  const { traceId, spanId } = spans.one('night run').spanContext();
  expect((await locks.operations.inspect('report'))?.by).toContain(` (trace=${traceId} span=${spanId})`);
  await spans.inside('request', () => locks.tryAcquire('report', { name: 'blocked' }));
  expect(spans.one('wait_for lock blocked').links).toMatchObject([{ context: { traceId, spanId, isRemote: true } }]);
  await held.release();
});

test.each<[string, OtelTelemetryOptions]>([
  ['without an active span', {}],
  ['where no spans are made', { spans: false }],
  ['of a trace that is not sampled', {}],
])('%s no trace is told', async (name, options) => {
  const { locks } = await onRedis(options);
  const acquire = (): ReturnType<LockService['acquire']> => locks.acquire('k', { ttl: '1m', by: 'plain' });
  const unsampled = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7', traceFlags: 0 };
  const inside = new Map([
    ['where no spans are made', () => spans.inside('request', acquire)],
    ['of a trace that is not sampled', () => context.with(trace.setSpanContext(ROOT_CONTEXT, unsampled), acquire)],
  ]);
  const held = await (inside.get(name) ?? acquire)();
  expect([name, (await locks.operations.inspect('k'))?.by]).toEqual([name, `${hostname()} (pid ${process.pid}) plain`]);
  await held.release();
});

/** Fails every attempt. */
class AwayStore extends MemoryLockStore {
  override acquire({ key }: HoldRecord): Promise<never> {
    return Promise.reject(new LockStoreError(`Lock "${key}": no answer`, key, { unknown: false }));
  }
}

describe('of time', () => {
  playTime();

  test('a call that waited and was refused has one span', async () => {
    const { locks } = await inMemory();
    await using held = await locks.acquire('k');
    expect(held.isHeld()).toBe(true);
    await expect(locks.withLock('k', { wait: 2_000 }, () => undefined)).rejects.toMatchObject({ reason: 'busy' });
    expect(spans.ended.map(({ name }) => name)).toEqual(['wait_for lock LockService.withLock']);
    expect(durationOf(spans.ended[0]!)).toBe(2_000);
  });

  test('a call that waited for a store that fails has one span, with that reason', async () => {
    const { balances } = await start(new AwayStore());
    await expect(balances.brief('customer-4242')).rejects.toMatchObject({ code: 'LOCK_STORE' });
    expect(spans.ended).toHaveLength(1);
    expect(durationOf(spans.one(WAIT))).toBe(100);
    expect(spans.one(WAIT)).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'store' } });
  });

  test('the span of a lock that is lost ends as an error at the moment of the loss, while its code goes on', async () => {
    const { locks } = await inMemory();
    let whenEnded = 0;
    const lost = locks.withLock('k', { ttl: '3s', renew: false, name: 'lost' }, async (lock) => {
      await once(lock.signal, 'abort');
      whenEnded = spans.named('lock lost').length;
      throw new Error('too late to be in the span');
    });
    await expect(lost).rejects.toThrow('too late');
    expect(whenEnded).toBe(1);
    expect(spans.one('lock lost')).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'expired' } });
  });
});

test('keys are attributes where they are asked for: one, or several', async () => {
  const { locks } = await inMemory({ keys: true });
  await locks.withLock('a', { name: 'one' }, () => locks.withLock(['c', 'b'], { name: 'two' }, () => undefined));
  await using held = await locks.acquire('d');
  await locks.withLock(['d', 'e'], { wait: 0, name: 'refused' }, () => held.keys).catch(() => undefined);
  expect(spans.one('lock one').attributes['distributed_lock.key']).toBe('a');
  expect(spans.one('lock two').attributes['distributed_lock.keys']).toEqual(['b', 'c']);
  expect(spans.one('wait_for lock refused').attributes['distributed_lock.key']).toBe('d');
});

test('several keys have one span, and show no key where none is asked for', async () => {
  const { locks } = await inMemory();
  await locks.withLock(['balance:customer-4242', 'limit:customer-4242'], { name: 'transfer' }, () => undefined);
  expect(spans.ended.map(({ name }) => name)).toEqual(['lock transfer']);
  expect(spans.text).not.toContain('customer-4242');
});

test('an error of the code is the class of the error in the span, without its message', async () => {
  const { balances, locks } = await inMemory();
  const failed = balances.credit('1', () => Promise.reject(new RangeError('customer-4242 is away')));
  await expect(failed).rejects.toThrow(RangeError);
  expect(spans.one(HOLD)).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'RangeError' } });
  const thrown = locks.withLock('k', { name: 'sync' }, () => {
    throw new TypeError('at once');
  });
  await expect(thrown).rejects.toThrow('at once');
  expect(spans.one('lock sync').attributes['error.type']).toBe('TypeError');
  expect(spans.text).not.toContain('customer-4242');
});

test('the span of an inner lock is a child of that of the outer one, and a re-entry has none', async () => {
  const { locks } = await inMemory();
  await locks.withLock('a', { name: 'outer' }, () =>
    locks.withLock('b', { name: 'inner' }, () =>
      locks.withLock('a', { name: 'again' }, () => spans.inside('query', async () => undefined)),
    ),
  );
  expect(parentOf(spans.one('lock outer'))).toBeUndefined();
  expect(parentOf(spans.one('lock inner'))).toBe(idOf(spans.one('lock outer')));
  expect(parentOf(spans.one('query'))).toBe(idOf(spans.one('lock inner')));
  expect(spans.ended).toHaveLength(3);
});

test('a call that waits for another one inside the same lock has a span of that wait, and none of its own', async () => {
  const { locks } = await inMemory();
  const again = (): Promise<void> => locks.withLock('k', { name: 'again' }, () => new Promise((resolve) => setTimeout(resolve, 5)));
  await locks.withLock('k', { name: 'outer' }, () => Promise.all([again(), again()]));
  expect(spans.one('wait_for lock again').attributes).toMatchObject({ 'distributed_lock.inside': true });
  expect(parentOf(spans.one('wait_for lock again'))).toBe(idOf(spans.one('lock outer')));
  expect(spans.ended).toHaveLength(2);
});

test('the holder of a ticket has a span in its own trace', async () => {
  const { locks } = await onRedis();
  const other = await onRedis();
  await spans.inside('first', () =>
    locks.withLock('k', { name: 'first' }, async (lock) => {
      const ticket = lock.makeTicket();
      expect(ticket).toMatch(SECRET);
      expect(JSON.stringify(await server.client.hgetall(await lockKeyOf(server)))).toMatch(holds);
      await context.with(ROOT_CONTEXT, () =>
        spans.inside('second', () => other.locks.withLock('k', { ticket, name: 'second' }, () => undefined)),
      );
    }),
  );
  const [first, second] = [spans.one('lock first'), spans.one('lock second')];
  expect(parentOf(second)).toBe(idOf(spans.one('second')));
  expect(second.spanContext().traceId).not.toBe(first.spanContext().traceId);
});

test('the span of an Observable lasts until it completes, and is the parent of what its source does', async () => {
  const { balances } = await inMemory();
  let duringIt = -1;
  await lastValueFrom(
    balances.watch('1', async () => {
      await sleep(1);
      duringIt = spans.named(HOLD).length;
      await spans.inside('query', async () => undefined);
    }),
  );
  await until('its end', () => spans.named(HOLD).length === 1);
  expect(duringIt).toBe(0);
  expect(parentOf(spans.one('query'))).toBe(idOf(spans.one(HOLD)));
});

test('the span of an async generator lasts until it returns, and is the parent of each of its steps', async () => {
  const { balances } = await inMemory();
  const open: unknown[] = [];
  await spans.inside('request', async () => {
    for await (const step of balances.list('1', async () => spans.inside('query', async () => 'a step'))) {
      await spans.inside('consumer', async () => open.push([step, spans.named(HOLD).length]));
    }
  });
  const hold = spans.one(HOLD);
  expect(open).toEqual([
    ['a step', 0],
    ['a step', 0],
  ]);
  expect(spans.named('query').map(parentOf)).toEqual([idOf(hold), idOf(hold)]);
  expect(spans.named('consumer').map(parentOf)).toEqual([hold, hold].map(parentOf));
  expect(parentOf(hold)).toBe(idOf(spans.one('request')));
});

test('lock.run keeps the span that it is called in, and has that of the lock where it is called from outside', async () => {
  const { locks } = await inMemory();
  const query = (): Promise<undefined> => spans.inside('query', async () => undefined);
  await locks.withLock('k', { name: 'held' }, async (lock) => {
    await spans.inside('step', () => lock.run(query));
    await context.with(ROOT_CONTEXT, () => spans.inside('outside', () => lock.run(query)));
  });
  expect(spans.named('query').map(parentOf)).toEqual([idOf(spans.one('step')), idOf(spans.one('lock held'))]);
});

test('commands that are sent in the background are under nobody, those of a call under its caller', async () => {
  const parents = new Map<string, Set<string | undefined>>();
  let phase = 'start';
  const onCommand = (message: unknown): void => {
    // All that is about a lock. Subscriptions and pings may come at any time.
    if (/^eval/.test((message as { readonly command: string }).command)) {
      parents.set(phase, (parents.get(phase) ?? new Set()).add(activeSpan()));
    }
  };
  const { locks } = await onRedis();
  subscribe('tracing:ioredis:command:start', onCommand);
  try {
    phase = 'acquire';
    await spans.inside('request', () =>
      locks.withLock('k', { ttl: '3s' }, async () => {
        phase = 'renewal';
        await until('a renewal', () => parents.has(phase));
        // The release may go together with what others send.
        phase = 'release';
      }),
    );
  } finally {
    unsubscribe('tracing:ioredis:command:start', onCommand);
  }
  expect([...parents.get('acquire')!]).toEqual([idOf(spans.one('request'))]);
  expect([...parents.get('renewal')!]).toEqual([undefined]);
});

test.each([
  ['wait', [WAIT]],
  ['hold', [HOLD, HOLD]],
  ['both', [HOLD, WAIT, HOLD]],
  [false, []],
] as const)('spans: %j makes those alone', async (choice, names) => {
  const { balances } = await inMemory({ spans: choice });
  await Promise.all([balances.credit('1', () => sleep(5)), balances.credit('1')]);
  expect(spans.ended.map(({ name }) => name)).toEqual(names);
});

test('without a provider, spans go to the one that the application registers, also later', async () => {
  const { balances } = await inMemory({ tracerProvider: undefined });
  await balances.credit('1');
  expect(spans.ended).toEqual([]);
  trace.setGlobalTracerProvider(spans.provider);
  try {
    await balances.credit('1');
    expect(spans.named(HOLD)).toHaveLength(1);
  } finally {
    trace.disable();
  }
});

const fail = (): never => {
  throw new Error('a broken provider');
};
const BROKEN: Readonly<Record<string, TracerProvider>> = {
  'has no tracer': { getTracer: fail },
  'makes no span': { getTracer: () => ({ startSpan: fail, startActiveSpan: fail }) },
  'makes spans that fail': {
    getTracer: () => ({
      startSpan: () => new Proxy({}, { get: () => fail }) as never,
      startActiveSpan: fail,
    }),
  },
};

test.each(Object.keys(BROKEN))('a provider that %s changes nothing for the locks', async (what) => {
  const { balances, locks } = await inMemory({ tracerProvider: BROKEN[what] });
  expect(await Promise.all([balances.credit('1', async () => 'mine'), balances.credit('1')])).toEqual([
    ['1', 'mine'],
    ['1', undefined],
  ]);
  await expect(balances.credit('1', () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
  expect(await locks.operations.inspect('balance:1')).toBeNull();
});

test.each([
  [{ spans: 'all' }, "otelTelemetry: spans is 'all'. Use 'both', 'wait', 'hold' or false."],
  [{ spans: true }, "otelTelemetry: spans is true. Use 'both', 'wait', 'hold' or false."],
  [{ keys: 'yes' }, "otelTelemetry: keys is 'yes'. Use true or false."],
  [
    { tracerProvider: {} },
    'otelTelemetry: tracerProvider is an object of class Object. Pass a TracerProvider of OpenTelemetry, or leave it out.',
  ],
  [{ tracerProvider: null }, 'otelTelemetry: tracerProvider is null. Pass a TracerProvider of OpenTelemetry, or leave it out.'],
  [{ metrics: 'yes' }, "otelTelemetry: metrics is 'yes'. Use true or false."],
  [{ meterProvider: 5 }, 'otelTelemetry: meterProvider is 5. Pass a MeterProvider of OpenTelemetry, or leave it out.'],
  [
    { span: 'both' },
    "otelTelemetry: there is no option 'span'. Did you mean 'spans'? The options are: spans, keys, metrics, tracerProvider, meterProvider.",
  ],
  ['yes', 'otelTelemetry: the options are a string. Pass an object with spans, keys, metrics, tracerProvider, meterProvider, or nothing.'],
  [null, 'otelTelemetry: the options are null. Pass an object with spans, keys, metrics, tracerProvider, meterProvider, or nothing.'],
])('the options %j are refused', (options, detail) => {
  expect(() => otelTelemetry(options as never)).toThrow(expect.objectContaining({ code: 'LOCK_CONFIGURATION', detail }) as Error);
});
