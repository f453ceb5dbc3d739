import 'reflect-metadata';
import { Injectable, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockModule, LockService, LockStoreError, MemoryLockStore, type LockModuleOptions } from 'nestjs-distributed-lock';
import { once } from 'node:events';
import { saying } from '../support/saying';
import { playTime } from '../support/virtual-time';

/** Fails every acquire while it is away. */
class UnsteadyStore extends MemoryLockStore {
  isAway = false;

  override acquire(...args: Parameters<MemoryLockStore['acquire']>): ReturnType<MemoryLockStore['acquire']> {
    const [{ key }] = args;
    return this.isAway ? Promise.reject(new LockStoreError(`Lock "${key}": no answer`, key, { unknown: false })) : super.acquire(...args);
  }
}

@Injectable()
class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string): Promise<string> {
    return customerId;
  }

  @DistributedLock({ key: 'report', wait: '10m', onUnavailable: 'throw' })
  async report(): Promise<void> {}
}

let lines: [level: string, text: string][];
const writer =
  (level: string) =>
  (message: unknown, ...rest: unknown[]) =>
    rest.at(-1) === 'LockModule' && lines.push([level, String(message)]);

const LOGGER = { log: writer('log'), error: writer('error'), warn: writer('warn'), debug: writer('debug'), verbose: writer('verbose') };

playTime();
beforeEach(() => {
  lines = [];
});
afterEach(() => {
  Logger.overrideLogger(true);
});

async function start(options: LockModuleOptions) {
  const module = await Test.createTestingModule({ imports: [LockModule.forRoot(options)], providers: [Balances] })
    .setLogger(LOGGER)
    .compile();
  return { balances: module.get(Balances), locks: module.get(LockService), close: () => module.close() };
}

const debugged = (): string[] => lines.filter(([level]) => level === 'debug').map(([, text]) => text);

test('with debug: true, what happens to locks is a debug line of the Logger; without, there is none', async () => {
  const quiet = await start({ store: new MemoryLockStore() });
  await quiet.balances.credit('1');
  await quiet.close();
  expect(debugged()).toEqual([]);

  const loud = await start({ store: new MemoryLockStore(), debug: true });
  await loud.balances.credit('42');
  await loud.close();
  expect(debugged()).toEqual([
    expect.stringMatching(/^acquired "balance:42" fence=\d+ waitedMs=\d+ by=".*Balances\.credit" store=default$/) as string,
    expect.stringMatching(/^released "balance:42" fence=\d+ heldMs=\d+ by=".*Balances\.credit" store=default$/) as string,
  ]);
});

test.each([
  [{ debug: 'yes' }, /LockModule: debug is 'yes'. Use true or false/],
  [{ onUnavailable: 'fail' }, /LockModule: onUnavailable is 'fail'. Use 'wait' or 'throw'/],
])('%j is refused at start', async (wrong, message) => {
  await expect(start({ store: new MemoryLockStore(), ...wrong } as never)).rejects.toThrow(message);
});

test("a method with onUnavailable: 'throw' does not wait, and the log says when the store is away and answers again", async () => {
  const store = new UnsteadyStore();
  const { balances, close } = await start({ store });
  store.isAway = true;
  const startedAt = performance.now();
  // The first call asks until the store is known to be away. It would wait for ten minutes.
  await expect(balances.report()).rejects.toThrow(saying(/no answer/));
  const knownAfterMs = performance.now() - startedAt;
  expect(knownAfterMs).toBeGreaterThanOrEqual(1_000);
  expect(knownAfterMs).toBeLessThan(2_000);
  await Promise.allSettled([balances.report(), balances.report()]);
  store.isAway = false;
  expect(await balances.credit('1')).toBe('1');
  await balances.report();
  await close();
  expect(lines.map(([level, text]) => `${level} ${text}`)).toEqual([
    expect.stringMatching(/^error The lock store 'default' is unavailable\. Lock "report": no answer$/) as string,
    expect.stringMatching(/^log The lock store 'default' answers again, after \d+ ms\.$/) as string,
  ]);
});

test('a body that throws after its call was rejected has its error in the log', async () => {
  const { locks, close } = await start({ store: new MemoryLockStore(), ttl: 1_000 });
  const call = locks.withLock('k', { by: 'Jobs.hangs' }, async (lock) => {
    const told = once(lock.signal, 'abort');
    await locks.operations.forceRelease('k', { fence: lock.fence });
    await told;
    await call.catch(() => undefined);
    throw new Error('nobody waits for this');
  });
  await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', bodyRuns: true });
  await close();
  expect(lines.at(-1)).toEqual([
    'error',
    expect.stringMatching(/Lock "k" of .*Jobs\.hangs was lost, and its code ended only now.*no caller waits/),
  ]);
});
