import { jest } from '@jest/globals';
import 'reflect-metadata';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, LockService, MemoryLockStore } from 'nestjs-distributed-lock';
import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/until';

const PHASES = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

/** What is told on one tracing channel, each time as it was then. */
function listen(kind: 'wait' | 'hold'): { told: (readonly [string, Record<string, unknown>])[]; stop: () => void } {
  const channel = tracingChannel<unknown, object>(`nestjs-distributed-lock:${kind}`);
  const told: (readonly [string, Record<string, unknown>])[] = [];
  const on = (phase: string) => (message: unknown) => void told.push([phase, { ...(message as object) }]);
  const subscribers = Object.fromEntries(PHASES.map((phase) => [phase, on(phase)])) as Record<(typeof PHASES)[number], () => void>;
  channel.subscribe(subscribers);
  return { told, stop: () => channel.unsubscribe(subscribers) };
}

let module: TestingModule;
let locks: LockService;
let waits: ReturnType<typeof listen>;
let holds: ReturnType<typeof listen>;

beforeEach(async () => {
  module = await Test.createTestingModule({ imports: [LockModule.forRoot({ store: new MemoryLockStore() })] }).compile();
  locks = module.get(LockService);
  waits = listen('wait');
  holds = listen('hold');
});
afterEach(async () => {
  waits.stop();
  holds.stop();
  await module.close();
});

/** Two calls, of which the second waits for the first. */
async function contend(): Promise<void> {
  await Promise.all([locks.withLock('k', () => sleep(5)), locks.withLock('k', () => undefined)]);
}

const phases = ({ told }: ReturnType<typeof listen>): string[] => told.map(([phase]) => phase);

test('a call that has its locks is told, with what it is about, but not what its code returns', async () => {
  const returned = await locks.withLock(['b', 'a'], { name: 'both' }, async (lock) => [lock.makeTicket(), lock.fenceOf('a')] as const);
  const about = { name: 'both', store: 'default', site: 'LockService.withLock', key: 'a', fence: returned[1] };
  expect(holds.told).toEqual([
    ['start', about],
    ['end', about],
    ['asyncStart', { ...about, result: undefined }],
    ['asyncEnd', { ...about, result: undefined }],
  ]);
  expect(waits.told).toEqual([]);
});

test('the error of the code is told, and passes unchanged', async () => {
  const error = new Error('its own');
  await expect(locks.withLock('k', () => Promise.reject(error))).rejects.toBe(error);
  const thrown = locks.withLock('k', () => {
    throw error;
  });
  await expect(thrown).rejects.toBe(error);
  expect(phases(holds).filter((phase) => phase === 'error')).toHaveLength(2);
  expect(holds.told.find(([phase]) => phase === 'error')?.[1]['error']).toBe(error);
});

test('re-entries are not told', async () => {
  await locks.withLock('k', () => locks.withLock('k', () => undefined));
  expect(phases(holds)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
});

test('a query that is sent by its then is sent once', async () => {
  let sent = 0;
  // oxlint-disable-next-line unicorn/no-thenable
  const query = { then: (resolve: (rows: number) => void) => resolve(++sent) } as PromiseLike<number>;
  expect(await locks.withLock('k', () => query)).toBe(1);
  expect(sent).toBe(1);
});

test('a wait is told from its start until the call has the lock', async () => {
  const fence = locks.withLock('k', async () => sleep(20)).then(() => undefined);
  const [next] = await Promise.all([locks.withLock('k', ({ fence: own }) => own), fence]);
  const about = { name: 'LockService.withLock', store: 'default', site: 'LockService.withLock', key: 'k' };
  expect(waits.told).toEqual([
    ['start', { ...about, fence: undefined }],
    ['end', { ...about, fence: undefined }],
    ['asyncStart', { ...about, fence: next, result: undefined }],
    ['asyncEnd', { ...about, fence: next, result: undefined }],
  ]);
});

test('a wait that ends without the lock is told with its error', async () => {
  await using held = await locks.acquire('k');
  const giveUp = new AbortController();
  const refused = expect(locks.withLock('k', { wait: '1m', signal: giveUp.signal }, () => held.keys)).rejects.toMatchObject({
    code: 'LOCK_NOT_ACQUIRED',
  });
  await until('the wait', () => phases(waits).includes('start'));
  giveUp.abort();
  await refused;
  await until('its end', () => phases(waits).includes('error'));
  expect(waits.told.find(([phase]) => phase === 'error')?.[1]['error']).toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
});

test('the code runs inside what a subscriber bound to the channel', async () => {
  const current = new AsyncLocalStorage<string>();
  const { start } = tracingChannel<unknown, object>('nestjs-distributed-lock:hold');
  start.bindStore(current as AsyncLocalStorage<unknown>, () => 'bound');
  try {
    expect(await locks.withLock('k', async () => current.getStore())).toBe('bound');
  } finally {
    start.unbindStore(current);
  }
  expect(await locks.withLock('k', async () => current.getStore())).toBeUndefined();
});

test('where nobody subscribes, nothing is traced', async () => {
  const trace = jest.spyOn(Object.getPrototypeOf(tracingChannel('any')) as TracingChannel, 'tracePromise');
  try {
    await contend();
    expect(trace).toHaveBeenCalledTimes(3);
    waits.stop();
    holds.stop();
    await contend();
    expect(trace).toHaveBeenCalledTimes(3);
  } finally {
    trace.mockRestore();
  }
});
