import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  LockModule,
  LockService,
  MemoryLockStore,
  RedisLockStore,
  type LockEvent,
  type LockModuleOptions,
} from 'nestjs-distributed-lock';
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { hostname } from 'node:os';
import { answered } from '../support/patient';
import { RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';
import { until } from '../support/until';

@Injectable()
class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, body: () => unknown = () => undefined): Promise<unknown> {
    return [customerId, await body()];
  }
}

const HERE = `${hostname()} (pid ${process.pid})`;
const requests = new AsyncLocalStorage<string>();
const describeRequest = (): { request: string | undefined } => ({ request: requests.getStore() });

let server: RedisServer;
let modules: TestingModule[];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
beforeEach(() => {
  modules = [];
});
afterEach(async () => {
  await Promise.all(modules.map((module) => module.close()));
});

async function start(options: Partial<LockModuleOptions> = { describe: describeRequest }) {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new RedisLockStore(server.url), ttl: '1m', wait: '1m', ...options })],
    providers: [Balances],
  }).compile();
  modules.push(module);
  await module.init();
  return { balances: module.get(Balances), locks: module.get(LockService) };
}

/** Holds a lock until it is released. */
function holding(balances: Balances, customerId: string, request: string): { entered: Promise<void>; leave: () => Promise<unknown> } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  let call: Promise<unknown> | undefined;
  const entered = new Promise<void>((hasEntered, reject) => {
    call = requests.run(request, () => balances.credit(customerId, () => (hasEntered(), promise)));
    call.catch(reject);
  });
  return {
    entered,
    leave: () => {
      resolve();
      return call as Promise<unknown>;
    },
  };
}

test('what a call is made for is shown with its holder, in another process too', async () => {
  const [here, other] = [await start(), await start({})];
  const held = holding(here.balances, '42', '8f3');
  await held.entered;
  const by = `${HERE} Balances.credit (request=8f3)`;
  expect(await answered(() => other.locks.operations.inspect('balance:42'))).toMatchObject({ by });
  const refused = await other.locks.acquire('balance:42', { wait: 0 }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ reason: 'busy', holder: { by } });
  const listed = async (): Promise<string> => {
    const all: string[] = [];
    for await (const lock of other.locks.operations.list({ scan: false })) {
      all.push(lock.by);
    }
    return all.join();
  };
  // A first survey waits 300 ms for the processes that it does not know yet.
  await until('the list', async () => (await listed()) === by);
  await held.leave();
});

test('processes tell each other what their calls hold and wait for, and what went wrong', async () => {
  const [here, other] = [await start(), await start()];
  const held = holding(here.balances, '7', 'first');
  await held.entered;
  const next = holding(other.balances, '7', 'second');
  // A survey waits a second for the others, which may stand still.
  const surveyed = async (): Promise<string[]> => {
    const { held: holds, waiting } = await here.locks.operations.survey({});
    return [...holds, ...waiting].map(({ site, description }) => `${site} ${description}`);
  };
  await until('both calls', async () => (await surveyed()).length === 2);
  const both = ['Balances.credit request=first', 'Balances.credit request=second'];
  await until('what they are made for', async () => (await surveyed()).join() === both.join());
  const incidents = async (): Promise<string[]> =>
    (await here.locks.operations.incidents()).map(({ type, description }) => `${type} ${description}`);
  await until('the incident', async () => {
    // One that was answered too late to wait is no incident.
    await requests.run('third', () => other.locks.withLock('balance:7', { wait: 50 }, () => undefined)).catch(() => undefined);
    return (await incidents()).includes('refused request=third');
  });
  await held.leave();
  await next.entered;
  await next.leave();
});

test('the next call of a process, which a lease serves, is told as itself', async () => {
  const { balances, locks } = await start();
  const first = holding(balances, '8', 'first');
  await first.entered;
  const second = holding(balances, '8', 'second');
  await first.leave();
  await second.entered;
  expect((await locks.operations.survey({})).held).toMatchObject([{ description: 'request=second' }]);
  await second.leave();
});

test('it is told of the calls that have ended, where they are recorded', async () => {
  const { balances, locks } = await start({ store: new MemoryLockStore(), describe: describeRequest });
  locks.operations.record();
  await requests.run('8f3', () => balances.credit('1'));
  expect((await locks.operations.survey({ recent: true })).ended).toMatchObject([{ outcome: 'released', description: 'request=8f3' }]);
});

test('telemetry describes a call first, so that a long text does not cut it off', async () => {
  const telemetry = { describe: () => ({ trace: 'abc' }) };
  const { balances, locks } = await start({ store: new MemoryLockStore(), telemetry, describe: () => ({ note: 'x'.repeat(300) }) });
  const held = holding(balances, '1', '');
  await held.entered;
  expect((await locks.operations.inspect('balance:1'))?.by).toMatch(/ \(trace=abc note=x+…\)$/);
  await held.leave();
});

test('it is asked once for each call, before that waits, and not for a candidate', async () => {
  let calls = 0;
  const { locks, balances } = await start({ store: new MemoryLockStore(), describe: () => ({ call: ++calls }) });
  const candidate = locks.lead('nightly', async ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)));
  await until('that it leads', async () => (await locks.operations.inspect('nightly')) !== null);
  expect((await locks.operations.inspect('nightly'))?.by).toBe(`${HERE} LockService.lead as leader`);
  await candidate.stop();
  expect(calls).toBe(0);
  const held = await locks.acquire('balance:1');
  const waits = balances.credit('1');
  expect(calls).toBe(2);
  await held.release();
  await waits;
  expect(calls).toBe(2);
});

test('it is in the events of the call, and without the option nothing is', async () => {
  const events: (string | undefined)[] = [];
  const listen = (event: unknown): void => void events.push((event as LockEvent).description);
  subscribe('nestjs-distributed-lock', listen);
  try {
    const described = await start({ store: new MemoryLockStore(), describe: describeRequest });
    await requests.run('8f3', () => described.balances.credit('1'));
    await described.balances.credit('2');
    const plain = await start({ store: new MemoryLockStore() });
    await plain.balances.credit('3');
  } finally {
    unsubscribe('nestjs-distributed-lock', listen);
  }
  expect(events).toEqual(['request=8f3', 'request=8f3', undefined, undefined, undefined, undefined]);
});

test('what it throws fails no call, and is told', async () => {
  const { balances, locks } = await start({
    store: new MemoryLockStore(),
    describe: () => {
      throw new TypeError('no context');
    },
  });
  const held = holding(balances, '1', '');
  await held.entered;
  expect((await locks.operations.inspect('balance:1'))?.by).toBe(`${HERE} Balances.credit (describe="threw TypeError")`);
  await held.leave();
});

test('what is no function is refused', async () => {
  await expect(start({ describe: { request: 1 } as never })).rejects.toThrow(
    saying(
      'LockModule: describe is an object of class Object. Pass a function that says what the running call is made for, such as () => ({ request: id }).',
    ),
  );
});
