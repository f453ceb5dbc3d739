import { setImmediate as turn } from 'node:timers/promises';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { LockStore, Operator, Tickets, Turns } from '../../../lib/core/seam/lock-store';
import { type AroundCall, WrappedStore } from '../../../lib/core/seam/wrapped-store';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { newHold } from '../../support/new-hold';
import { watchRejections } from '../../support/watch-rejections';

/** A store behind one that notes what goes through it: the operation, the key and the limit. */
function wrap(store: LockStore): { wrapped: WrappedStore; seen: unknown[][] } {
  const seen: unknown[][] = [];
  const around: AroundCall = (answer, ...about) => {
    seen.push(about);
    return answer;
  };
  return { wrapped: new WrappedStore(store, around), seen };
}

/** A store that can do no more than it has to. */
function plain(more: Partial<LockStore> = {}): LockStore {
  const store = new MemoryLockStore();
  return {
    expires: true,
    acquire: (...asked) => store.acquire(...asked),
    renew: (holds) => store.renew(holds),
    release: (hold) => store.release(hold),
    close: () => store.close(),
    ...more,
  };
}

test('each command on a lock goes through with its name, its key and its own limit', async () => {
  const { wrapped, seen } = wrap(new MemoryLockStore());
  const hold = newHold('k', { limitMs: 700 });
  const { fence = 0 } = await wrapped.acquire(hold);
  const held = { ...hold, fence };
  const guest = { ...held, id: 'guest', limitMs: 600 };
  expect(await (wrapped.tickets as Tickets).join(guest)).toBe(true);
  expect(await wrapped.renew([held, guest])).toEqual([true, true]);
  expect(await wrapped.release(guest)).toBe(true);
  const next = newHold('k', { limitMs: 500 });
  const { released } = await (wrapped.turns as Turns).exchange(held, next, { name: 'place' }, true);
  await (wrapped.turns as Turns).leave('k', 'place');
  expect(released).toBe(true);
  expect(seen).toEqual([
    ['acquire', 'k', 700],
    ['join', 'k', 600],
    ['renew', 'k', 600],
    ['release', 'k', 600],
    ['exchange', 'k', 700],
    ['leave', 'k'],
  ]);
});

test('what operators and health checks ask goes through without a name, and a search not at all', async () => {
  const store = Object.assign(new MemoryLockStore(), { health: async () => ({ latencyMs: 3 }) });
  const { wrapped, seen } = wrap(store);
  const operator = wrapped.operator as Required<Operator>;
  const { fence = 0 } = await store.acquire(newHold('k'));
  const forced: unknown[] = [];
  operator.onForced((...told) => forced.push(told.slice(0, 2)));
  const found: string[] = [];
  for await (const part of operator.search('k')) {
    found.push(...part.map(({ key }) => key));
  }
  expect(found).toEqual(['k']);
  expect(await operator.inspect('k')).toMatchObject({ fence });
  expect(await operator.forceRelease('k', fence)).toBe(true);
  expect(await wrapped.health?.()).toEqual({ latencyMs: 3 });
  await turn();
  expect(forced).toEqual([['k', fence]]);
  expect(seen).toEqual([
    [undefined, 'k'],
    [undefined, 'k'],
    [undefined, ''],
  ]);
});

test('messages arrive, and belong to no lock', async () => {
  const store = new MemoryLockStore();
  const { wrapped, seen } = wrap(store);
  const texts: string[] = [];
  wrapped.messages?.onMessage((text) => texts.push(text));
  expect(wrapped.messages?.process).toBe(store.messages.process);
  await wrapped.messages?.send('hello', store.messages.process);
  await turn();
  expect(texts).toEqual(['hello']);
  expect(seen).toEqual([[undefined, '']]);
});

test('what a store does not offer is not offered for it', () => {
  const { wrapped } = wrap(plain());
  const { turns, tickets, operator, messages, health, longestLeaseMs } = wrapped;
  expect([turns, tickets, operator, messages, health, longestLeaseMs]).toEqual(Array.from({ length: 6 }, () => undefined));
});

test('an operator who can neither search nor notify is left so, and may be asked for notices', () => {
  const { wrapped } = wrap(plain({ operator: { inspect: async () => null, forceRelease: async () => false } }));
  expect(wrapped.operator?.search).toBeUndefined();
  expect(() => wrapped.operator?.onForced?.(() => undefined)).not.toThrow();
});

test.each(['reservesFences', 'keepsLimits', 'shared', 'permits'] as const)('%s is promised as the store does', (name) => {
  for (const promise of [true, false, undefined]) {
    const { wrapped } = wrap(plain({ ...(promise !== undefined && { [name]: promise }), longestLeaseMs: 4_000 }));
    const { reservesFences, keepsLimits, shared, permits, longestLeaseMs } = wrapped;
    const none = { reservesFences: false, keepsLimits: false, shared: false, permits: false };
    expect({ reservesFences, keepsLimits, shared, permits }).toEqual({ ...none, [name]: promise === true });
    expect(longestLeaseMs).toBe(4_000);
  }
});

test('to close it closes the store', async () => {
  let closed = 0;
  await wrap(plain({ close: async () => void closed++ })).wrapped.close();
  expect(closed).toBe(1);
});

test('a reply that fails after its exchange was given up ends no process', async () => {
  const reasons: unknown[] = [];
  const unwatch = watchRejections((reason) => reasons.push(reason));
  const failure = new LockStoreError('too few replicas confirmed the grant', 'k', { unknown: false });
  let answer!: (exchanged: Awaited<ReturnType<Turns['exchange']>>) => void;
  const store = Object.assign(new MemoryLockStore(), {
    exchange: () => new Promise<Awaited<ReturnType<Turns['exchange']>>>((resolve) => (answer = resolve)),
  });
  const givesUp: AroundCall = () => Promise.reject(new LockStoreError('given up', 'k', { unknown: true }));
  const { turns } = new WrappedStore(store as unknown as LockStore, givesUp);
  await expect(turns?.exchange(newHold('k'), newHold('k'), { name: 'place' }, true)).rejects.toMatchObject({ detail: 'given up' });
  answer({ released: true, reply: Promise.reject(failure) });
  await turn();
  await turn();
  unwatch();
  expect(reasons).toEqual([]);
});
