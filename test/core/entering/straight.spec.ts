import { AsyncLocalStorage } from 'node:async_hooks';
import { LockConfigurationError, LockLostError } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';

/** Carries an acquire out at once, and answers from when it is told to. */
class SlowStore extends MemoryLockStore {
  readonly asked: string[] = [];
  #answers!: () => void;
  readonly #isAnswering = new Promise<void>((resolve) => {
    this.#answers = resolve;
  });

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.asked.push(hold.key);
    const reply = await super.acquire(hold, place);
    await this.#isAnswering;
    return reply;
  }

  answer(): void {
    this.#answers();
  }
}

/** All that can go on without an answer of the store has gone on. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let store: SlowStore;
let locks: LockService;
let ran: string[];

beforeEach(() => {
  store = new SlowStore();
  locks = makeLocks(store);
  ran = [];
});
afterEach(() => store.close());

const run = (name: string, key = 'k'): Promise<unknown> => locks.withLock(key, () => ran.push(name)).catch((error: unknown) => error);

test('a call that meets nobody asks the store before it returns, and runs with the answer', async () => {
  const call = run('only');
  expect(store.asked).toEqual(['k']);
  await settled();
  expect(ran).toEqual([]);
  store.answer();
  await call;
  expect(ran).toEqual(['only']);
  expect(await store.inspect('k')).toBeNull();
});

test('a re-entry runs its body before it returns, and asks for nothing', async () => {
  const outer = locks.withLock('k', () => {
    const inner = run('inner');
    expect(ran).toEqual(['inner']);
    return inner;
  });
  store.answer();
  await outer;
  expect(store.asked).toEqual(['k']);
});

test('calls that come while the first one asks wait for their turn, in order, and one asks at a time', async () => {
  const calls = ['first', 'second', 'third'].map((name) => run(name));
  await settled();
  expect(store.asked).toEqual(['k']);
  store.answer();
  await Promise.all(calls);
  expect(ran).toEqual(['first', 'second', 'third']);
});

test('a call that is aborted while it asks rejects at once, never runs, and gives back what it is granted', async () => {
  const controller = new AbortController();
  const call = locks.withLock('k', { signal: controller.signal }, () => ran.push('aborted')).catch((error: unknown) => error);
  controller.abort(new Error('the client has gone'));
  expect(await call).toMatchObject({ reason: 'aborted', cause: controller.signal.reason as Error });
  store.answer();
  await settled();
  expect(ran).toEqual([]);
  expect(await store.inspect('k')).toBeNull();
});

test('a call that asks as the application closes is refused, and gives back what it is granted', async () => {
  const call = run('closing');
  const closing = locks.shutdown();
  const next = run('next', 'other');
  await settled();
  // Nothing new begins while the first call goes to its end.
  expect(store.asked).toEqual(['k']);
  expect(await next).toMatchObject({ reason: 'shutdown' });
  store.answer();
  expect(await call).toMatchObject({ reason: 'shutdown' });
  expect(ran).toEqual([]);
  await closing;
});

test('a store that throws at once leaves the key to the next call', async () => {
  const acquire = store.acquire.bind(store);
  store.acquire = () => {
    throw new TypeError('no store');
  };
  expect(await run('failed')).toMatchObject({ message: 'no store' });
  store.acquire = acquire;
  const call = run('next');
  store.answer();
  await call;
  expect(ran).toEqual(['next']);
});

test.each([
  ['no promise', () => undefined],
  ['nothing', async () => undefined],
  ['null', async () => null],
])('a store that answers an acquire with %s is named, and leaves the key to the next call', async (_, answer) => {
  const acquire = store.acquire.bind(store);
  store.acquire = answer as never;
  expect(await run('failed')).toMatchObject({
    code: 'LOCK_CONFIGURATION',
    detail: expect.stringMatching(/the store answered an acquire with /),
  });
  store.acquire = acquire;
  store.answer();
  await run('next');
  expect(ran).toEqual(['next']);
  await locks.shutdown();
});

test('so it is where core bounds the calls of the store', async () => {
  const bounded = makeLocks(Object.assign(new MemoryLockStore(), { keepsLimits: false, acquire: () => undefined }) as never);
  await expect(bounded.withLock('k', () => undefined)).rejects.toThrow(LockConfigurationError);
  await bounded.shutdown();
});

test('a store whose exchange throws at once fails the call that it was to serve, and leaves the key to the one after it', async () => {
  store.answer();
  // Leases that are not renewed do not serve each other: each is exchanged for the next.
  const take = (name: string): Promise<unknown> => locks.withLock('k', { renew: false, ttl: '1s' }, () => ran.push(name));
  const exchange = store.exchange.bind(store);
  store.exchange = () => {
    store.exchange = exchange;
    throw new TypeError('no exchange');
  };
  const calls = ['first', 'second', 'third'].map((name) => take(name));
  await calls[0];
  await expect(calls[1]).rejects.toThrow('no exchange');
  await calls[2];
  expect(ran).toEqual(['first', 'third']);
});

test('a store whose leave throws at once fails no call', async () => {
  const foreign = makeLocks(store);
  store.answer();
  const held = await foreign.acquire('k');
  store.leave = () => {
    throw new TypeError('no leave');
  };
  expect(await locks.withLock('k', { wait: '300ms' }, () => undefined).catch((error: unknown) => error)).toMatchObject({ reason: 'busy' });
  await held.release();
});

test('a re-entry on a lock that was lost does not run', async () => {
  const outer = locks.withLock('k', async () => {
    await store.forceRelease('k', (await store.inspect('k'))?.fence ?? 0);
    expect(await run('inner')).toBeInstanceOf(LockLostError);
  });
  store.answer();
  await expect(outer).rejects.toBeInstanceOf(LockLostError);
  expect(ran).toEqual([]);
});

test('each body runs in the context of its own caller', async () => {
  const request = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const call = (name: string, key: string): Promise<unknown> =>
    request.run(name, async () => {
      const inside = await locks.withLock(key, async () => {
        await Promise.resolve();
        return request.getStore();
      });
      seen.push([name, inside, request.getStore()]);
    });
  const calls = [call('one', 'a'), call('two', 'b'), call('three', 'b')];
  request.run('another', () => store.answer());
  await Promise.all(calls);
  expect(seen).toEqual(expect.arrayContaining(['one', 'two', 'three'].map((name) => [name, name, name])));
});

test('a shutdown within minHold frees the lock where no lease ends by time: nothing else would', async () => {
  const shared = Object.assign(new MemoryLockStore({ expires: false }), { close: async () => undefined });
  const first = makeLocks(shared);
  await first.withLock('k', { minHold: '30s' }, () => undefined);
  expect(await shared.inspect('k')).not.toBeNull();
  await first.shutdown();
  expect(await shared.inspect('k')).toBeNull();
});
