import 'reflect-metadata';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, LockService, LockStoreError, MemoryLockStore, RedisLockStore, type LockModuleOptions } from 'nestjs-distributed-lock';
import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
import { isDeepStrictEqual } from 'node:util';
import type { StoreHealth } from '../../../lib/core/words/lock-health';
import { COUNTERS, HISTOGRAMS, LEVELS, LIMITS, STATES } from '../../../lib/operate/telemetry/metrics';
import { RedisQuorum } from '../../support/redis-quorum';
import { RedisServer } from '../../support/redis-server';
import { TcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';
import type { Backend, Series } from './backend';

/** Why a lock may be lost. */
const REASONS = ['expired', 'forced', 'released', 'maxHold', 'shutdown'];
/** A key, which may name a person. */
const KEY = 'balance:ann@example.org';

/** The figures of real locks that every backend of metrics has to show. */
export function metricsSuite(what: string, makeBackend: () => Backend): void {
  describe(`metrics of ${what}`, () => {
    let server: RedisServer;
    let backend: Backend;
    let modules: TestingModule[];
    let closed: (() => Promise<unknown>)[];

    beforeAll(async () => {
      server = await RedisServer.start();
    });
    afterAll(() => server.stop());

    beforeEach(async () => {
      backend = makeBackend();
      [modules, closed] = [[], []];
      await server.client.flushall();
    });
    afterEach(async () => {
      await Promise.all(modules.map((module) => module.close()));
      await Promise.all(closed.map((close) => close()));
    });

    /** Another application of this process. */
    async function start(options: LockModuleOptions = { store: new RedisLockStore(server.url) }): Promise<LockService> {
      const module = await Test.createTestingModule({
        imports: [LockModule.forRoot({ ...options, telemetry: backend.telemetry() })],
      }).compile();
      module.useLogger(false);
      modules.push(module);
      const locks = module.get(LockService);
      // A store that opened without an answer has no connection yet: the first call would wait for it.
      await until('that the store answers', async () => (await locks.operations.health()).reachable);
      return locks;
    }

    /**
     * The series of a metric that have at least these labels, by the parts of their names after `distributed_lock.`.
     */
    async function series(metric: string, labels: Readonly<Record<string, string>> = {}): Promise<readonly Series[]> {
      const all = (await backend.read()).get(`distributed_lock.${metric}`) ?? [];
      return all.filter((one) =>
        Object.entries(labels).every(
          ([label, value]) => one.labels[label === 'error' ? 'error.type' : `distributed_lock.${label}`] === value,
        ),
      );
    }

    /** Those that have counted anything. */
    async function counted(metric: string): Promise<readonly Series[]> {
      return (await series(metric)).filter(({ value }) => value > 0);
    }

    async function total(metric: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
      return (await series(metric, labels)).reduce((sum, { value }) => sum + value, 0);
    }

    /** A metric that says whether something is so, by its server or store. */
    async function states(metric: string): Promise<Readonly<Record<string, number>>> {
      const id = (labels: Series['labels']): string => labels['distributed_lock.member'] ?? (labels['distributed_lock.store'] as string);
      return Object.fromEntries((await series(metric)).map(({ labels, value }) => [id(labels), value]));
    }

    test('two applications that contend have one sum of holds, waits and limits', async () => {
      const [one, two] = [await start(), await start()];
      const held = await one.acquire(KEY, { name: 'one' });
      const waiting = two.acquire(KEY, { name: 'two', wait: '1m' });
      await until('the other waits', async () => (await total('waiter.active', { name: 'two', store: 'default' })) === 1);
      expect(await series('hold.active')).toEqual([expect.objectContaining({ value: 1, labels: named('one') })]);
      expect(await series('waiter.limit')).toEqual([
        expect.objectContaining({ value: 100_000, labels: { 'distributed_lock.store': 'default' } }),
      ]);
      expect(await two.tryAcquire(KEY, { name: 'skips' })).toBeNull();
      await held.release();
      await (await waiting).release();
      expect(await series('acquire.duration')).toEqual([
        expect.objectContaining({ value: 1, labels: { ...named('one'), 'distributed_lock.contended': 'false' } }),
        expect.objectContaining({ value: 1, labels: { ...named('skips'), 'distributed_lock.outcome': 'skipped' } }),
        expect.objectContaining({ value: 1, labels: { ...named('two'), 'distributed_lock.contended': 'true' } }),
      ]);
      expect((await series('hold.duration')).map(({ labels, value }) => [labels, value])).toEqual([
        [named('one'), 1],
        [named('two'), 1],
      ]);
      expect(await total('store.operation.duration', { operation: 'acquire' })).toBeGreaterThanOrEqual(3);
      expect(await total('store.operation.duration', { operation: 'release' })).toBeGreaterThanOrEqual(2);
      // Backends keep the last value of what is not read.
      expect(await series('hold.active')).toEqual([expect.objectContaining({ value: 0, labels: named('one') })]);
      expect(await total('waiter.active')).toBe(0);
      await modules[1]?.close();
      expect(await total('waiter.limit')).toBe(50_000);
    });

    describe('of time', () => {
      playTime();

      test('times are seconds', async () => {
        const locks = await start({ store: new MemoryLockStore() });
        const held = await locks.acquire(KEY);
        const waiting = locks.withLock(KEY, { name: 'waits' }, () => undefined);
        await sleep(2_000);
        await held.release();
        await waiting;
        for (const [metric, name] of [
          ['acquire.duration', 'waits'],
          ['hold.duration', 'LockService.acquire'],
        ] as const) {
          expect(await series(metric, { name })).toEqual([expect.objectContaining({ sum: 2 })]);
        }
      });

      test('renewals have a margin, and histograms the buckets of the list', async () => {
        const locks = await start({ store: new MemoryLockStore() });
        await locks.withLock(KEY, { ttl: '3s' }, () => sleep(3_000));
        const [{ value, sum }] = (await series('lease.margin')) as readonly [Series];
        // They are sent after a third of the lease, or up to a tenth earlier.
        expect((sum as number) / value).toBeGreaterThan(0.64);
        expect((sum as number) / value).toBeLessThan(0.75);
        for (const { name, buckets } of Object.values(HISTOGRAMS)) {
          const [{ bounds }] = (await backend.read()).get(name) as readonly [Series];
          expect(bounds).toEqual(buckets);
        }
      });
    });

    test('the counters of a name begin at 0 with its first call, so that its first loss is an increase', async () => {
      const locks = await start({ store: new MemoryLockStore() });
      expect(await series('losses')).toEqual([]);
      await locks.withLock(KEY, { name: 'first' }, () => undefined);
      const zeros = async (metric: string): Promise<readonly [number, Series['labels']][]> =>
        (await series(metric)).map(({ value, labels }) => [value, labels]);
      expect(await zeros('losses')).toEqual(REASONS.map((reason) => [0, { ...named('first'), 'error.type': reason }]));
      expect(await zeros('deadlocks')).toEqual(
        ['process', 'fleet'].map((scope) => [0, { ...named('first'), 'distributed_lock.scope': scope }]),
      );
      expect(await zeros('release.failures')).toEqual([[0, named('first')]]);
      expect(await zeros('force_releases')).toEqual([[0, named('first')]]);
    });

    test('readers and permits are told from locks, and each semaphore has its count', async () => {
      const [one, two] = [await start(), await start()];
      await one.withLock('report', { mode: 'read', name: 'shop' }, async () => {
        const permits = await Promise.all([one.acquirePermit('erp', 3, { name: 'shop' }), two.acquirePermit('erp', 2, { name: 'shop' })]);
        const waiting = two.acquirePermit('erp', 2, { name: 'shop', wait: '1m' });
        await until('that one waits', async () => (await total('waiter.active', { mode: 'permit' })) === 1);
        const active = (await series('hold.active')).map(({ labels, value }) => [labels, value]);
        expect(active).toEqual([
          [named('shop', 'read'), 1],
          [named('shop', 'permit'), 2],
        ]);
        expect(await series('permit.limit')).toEqual([
          expect.objectContaining({ value: 2, labels: { 'distributed_lock.name': 'shop', 'distributed_lock.store': 'default' } }),
        ]);
        await Promise.all(permits.map((permit) => permit.release()));
        await (await waiting).release();
      });
      expect(await total('acquire.duration', { mode: 'permit', contended: 'true' })).toBe(1);
      expect(await total('hold.duration', { mode: 'permit' })).toBe(3);
      expect(await total('hold.duration', { mode: 'read' })).toBe(1);
    });

    test('a call that runs without a permit counts', async () => {
      const store = Object.assign(new MemoryLockStore(), {
        acquire: () => Promise.reject(new LockStoreError('no answer', KEY, { unknown: false })),
      });
      const locks = await start({ store });
      expect(await locks.withPermit(KEY, 2, { name: 'shaped', wait: 0, onUnavailable: 'run' }, () => 'ran')).toBe('ran');
      expect(await counted('runs_without_permit')).toEqual([expect.objectContaining({ value: 1, labels: named('shaped', 'permit') })]);
      await locks.withLock('held', { name: 'locks', wait: 0 }, () => undefined).catch(() => undefined);
      expect(await series('runs_without_permit', { name: 'locks' })).toEqual([]);
    });

    test('a lock that was deleted is a loss', async () => {
      const locks = await start();
      const held = await locks.acquire(KEY, { ttl: '3s', name: 'deleted' });
      await server.client.flushall();
      await until('the loss', () => held.signal.aborted);
      expect(await counted('losses')).toEqual([
        expect.objectContaining({ value: 1, labels: { ...named('deleted'), 'error.type': held.signal.reason.reason } }),
      ]);
      expect((await series('hold.duration')).map(({ labels, value: count }) => [labels, count])).toEqual([
        [{ ...named('deleted'), 'error.type': held.signal.reason.reason }, 1],
      ]);
    });

    test('a forced release counts for who forced it, and is a loss of the holder', async () => {
      const [holder, operator] = [await start(), await start()];
      // Without a subscription, it finds out by a renewal, and not why.
      await until('that both hear', async () => (await states('store.hearing'))['default'] === 1);
      const held = await holder.acquire(KEY, { name: 'holder' });
      expect(await operator.operations.forceRelease(KEY, { fence: held.fence })).toBe(true);
      await until('the loss', () => held.signal.aborted);
      expect(await counted('force_releases')).toEqual([
        expect.objectContaining({
          value: 1,
          labels: { 'distributed_lock.name': 'LockOperations.forceRelease', 'distributed_lock.store': 'default' },
        }),
      ]);
      expect(await total('losses', { name: 'holder', error: 'forced' })).toBe(1);
    });

    test('a store that is away fails calls, operations and releases', async () => {
      const proxy = await TcpProxy.start(server.port);
      closed.push(() => proxy.stop());
      const locks = await start({ store: new RedisLockStore(proxy.url) });
      const held = await locks.acquire(KEY, { name: 'holder', ttl: '20s' });
      proxy.mode = 'refuse';
      await expect(locks.acquire('other', { name: 'caller', wait: 100 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
      expect(await total('acquire.duration', { name: 'caller', error: 'store' })).toBe(1);
      expect(await total('store.operation.duration', { operation: 'acquire', error: 'store' })).toBeGreaterThan(0);
      await held.release();
      expect(await counted('release.failures')).toEqual([expect.objectContaining({ value: 1, labels: named('holder') })]);
      proxy.mode = 'pass';
    });

    test('a store that cannot be reached is not up, where one of its applications cannot reach it', async () => {
      const proxy = await TcpProxy.start(server.port);
      closed.push(() => proxy.stop());
      await start({ store: new RedisLockStore(proxy.url) });
      await start();
      await until('an answer', async () => (await states('store.up'))['default'] === 1);
      proxy.mode = 'refuse';
      await until('that it is away', async () => (await states('store.up'))['default'] === 0);
      proxy.mode = 'pass';
      await until('that it is there', async () => (await states('store.up'))['default'] === 1);
    });

    test('a store that answers and grants nothing is not up', async () => {
      let said: StoreHealth = {};
      await start({ store: Object.assign(new MemoryLockStore(), { health: async () => said }) });
      expect(await states('store.up')).toEqual({ default: 1 });
      said = { refuses: 'full' };
      expect(await states('store.up')).toEqual({ default: 0 });
      said = {};
      expect(await states('store.up')).toEqual({ default: 1 });
    });

    test('a process that gets no messages of turns does not hear the store', async () => {
      await server.client.acl('SETUSER', 'deaf', 'on', '>secret', '~*', '+@all', 'resetchannels');
      closed.push(() => server.client.acl('DELUSER', 'deaf'));
      const stores = { default: new RedisLockStore(server.url), deaf: new RedisLockStore(server.url.replace('://', '://deaf:secret@')) };
      await start({ stores: { ...stores, memory: new MemoryLockStore() } });
      await until('that one hears', async () => isDeepStrictEqual(await states('store.hearing'), { default: 1, deaf: 0 }));
      await until('that all are up', async () => isDeepStrictEqual(await states('store.up'), { default: 1, deaf: 1, memory: 1 }));
      expect(await states('store.member.voting')).toEqual({});
    });

    test('a server of a quorum that is away has no vote', async () => {
      const quorum = await RedisQuorum.start(3);
      closed.push(() => quorum.stop());
      await start({ store: new QuorumLockStore(quorum.proxied) });
      await until('all votes', async () => isDeepStrictEqual(await states('store.member.voting'), { 1: 1, 2: 1, 3: 1 }));
      await quorum.at(1).kill();
      await until('that one is away', async () => isDeepStrictEqual(await states('store.member.voting'), { 1: 1, 2: 0, 3: 1 }));
      await until('that the others do', async () => isDeepStrictEqual(await states('store.up'), { default: 1 }));
    });

    test('calls of a process that would wait for each other are a deadlock', async () => {
      const locks = await start();
      let entered = 0;
      const [bothInside, meet] = rendezvous();
      const nested = (outer: string, inner: string): Promise<unknown> =>
        locks.withLock(outer, { name: 'outer' }, async () => {
          entered++;
          if (entered === 2) {
            meet();
          }
          await bothInside;
          await locks.withLock(inner, { name: 'inner', wait: '1m' }, () => undefined);
        });
      const outcomes = await Promise.allSettled([nested('a', 'b'), nested('b', 'a')]);
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(await counted('deadlocks')).toEqual([
        expect.objectContaining({ value: 1, labels: { ...named('inner'), 'distributed_lock.scope': 'process' } }),
      ]);
      expect(await total('acquire.duration', { name: 'inner', error: 'cycle' })).toBe(1);
    });

    test('1,000 names make 200 and _other, also in gauges', async () => {
      const locks = await start({ store: new MemoryLockStore() });
      for (let n = 0; n < 1_000; n++) {
        await locks.withLock(`key:${n}`, { name: `name ${n}` }, () => undefined);
      }
      const held = await Promise.all([1, 900, 901].map((n) => locks.acquire(`key:${n}`, { name: `name ${n}` })));
      expect((await series('hold.active')).map(({ labels, value }) => [labels['distributed_lock.name'], value])).toEqual([
        ['name 1', 1],
        ['_other', 2],
      ]);
      await Promise.all(held.map((lock) => lock.release()));
      for (const metric of ['acquire.duration', 'hold.duration']) {
        const names = (await series(metric)).map(({ labels }) => labels['distributed_lock.name'] as string);
        expect(new Set(names)).toEqual(new Set([...Array.from({ length: 200 }, (_, n) => `name ${n}`), '_other']));
        expect(await total(metric)).toBe(1_003);
        expect(await total(metric, { name: '_other' })).toBe(802);
      }
    });

    test('keys, owners, tickets and processes are in no label, and 1,000 keys make one name', async () => {
      const locks = await start({ store: new MemoryLockStore() });
      for (let n = 0; n < 1_000; n++) {
        await locks.withLock(`${KEY}:${n}`, { name: 'balance', by: 'Somebody.else' }, () => undefined);
      }
      const held = await locks.acquire(KEY, { name: 'balance' });
      await locks.withLock(KEY, { name: 'joins', ticket: held.makeTicket() }, () => undefined);
      await locks.tryAcquire(KEY, { name: 'balance' });
      await held.release();
      const all = [...(await backend.read())].flatMap(([, found]) => found.map(({ labels }) => labels));
      const values = new Set(all.flatMap((labels) => Object.values(labels)));
      expect(values).toEqual(
        new Set(['balance', 'joins', 'default', 'write', 'false', 'skipped', 'acquire', 'join', 'release', ...REASONS, 'process', 'fleet']),
      );
    });

    test('there are no metrics but those of the list', async () => {
      const locks = await start({ store: new MemoryLockStore() });
      await locks.withLock(KEY, () => undefined);
      const listed = [HISTOGRAMS, COUNTERS, LEVELS, LIMITS, STATES].flatMap((metrics) => Object.values(metrics).map(({ name }) => name));
      expect(listed).toEqual(expect.arrayContaining([...(await backend.read()).keys()]));
    });
  });
}

function named(name: string, mode = 'write'): Readonly<Record<string, string>> {
  return { 'distributed_lock.name': name, 'distributed_lock.store': 'default', 'distributed_lock.mode': mode };
}

/** A promise, and what resolves it. */
function rendezvous(): readonly [Promise<void>, () => void] {
  let meet = (): void => undefined;
  return [new Promise<void>((resolve) => (meet = resolve)), () => meet()];
}
