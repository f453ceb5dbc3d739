import { jest } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import { storeContract, type StoreContractOptions, type StoreOffer } from '../../lib/contract/index';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { BUSY, mapGrants, mapHolds, mapOperator, mapOrder, mapShown, partsOf, type Parts } from './defects/defect';
import { DEFECTS } from './defects/defects';

const OFFERS: readonly StoreOffer[] = [
  'turns',
  'tickets',
  'operator',
  'messages',
  'search',
  'forced',
  'health',
  'reservesFences',
  'shared',
  'permits',
];

type Connect = () => Parts;

interface Run {
  readonly tested: string[];
  readonly skipped: string[];
  /** The failures, by the names of the tests. */
  readonly failures: ReadonlyMap<string, unknown>;
}

/** Runs the tests of the contract whose names contain `only`, all at the same time. `begin` is called for each. */
async function runContract(begin: () => Connect, only = '', options: Partial<StoreContractOptions> = {}): Promise<Run> {
  const connects = new AsyncLocalStorage<Connect>();
  const tests = new Map<string, () => Promise<void>>();
  const skipped: string[] = [];
  const test = Object.assign((name: string, body: () => Promise<void>) => tests.set(name, body), {
    skip: (name: string) => skipped.push(name),
  });
  const connect: Connect = () => (connects.getStore() as Connect)();
  storeContract({ describe: (_name, body) => body(), test }, { connect, offers: OFFERS, ...options });
  const failures = new Map<string, unknown>();
  const chosen = [...tests].filter(([name]) => name.includes(only));
  await Promise.all(chosen.map(([name, body]) => connects.run(begin(), () => body().catch((error: unknown) => failures.set(name, error)))));
  return { tested: chosen.map(([name]) => name), skipped, failures };
}

/** One and the same store for each test, changed once. */
function one(change: (store: Parts) => Partial<Parts> = () => ({})): () => Connect {
  return () => {
    const whole = partsOf(new MemoryLockStore());
    const store = { ...whole, ...change(whole) };
    return () => store;
  };
}

/** Stores on the same locks. */
function several(change: (store: Parts) => Partial<Parts> = () => ({})): () => Connect {
  return () => {
    const memory = new MemoryLockStore();
    return () => {
      const whole = partsOf(memory);
      return { ...whole, ...change(whole) };
    };
  };
}

/** How long one tick of `awake` takes at least, in milliseconds. */
const TICK_MS = 5;

/** Takes so many milliseconds in which this process was not stopped: the contract leaves out how long it was. */
async function awake(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += TICK_MS) {
    await sleep(TICK_MS);
  }
}

/** A store that takes its time, whatever limit it has. */
function slow(store: Parts): Partial<Parts> {
  const late = <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) => {
    return (...args: Args): Promise<Result> => awake(550).then(() => call(...args));
  };
  return {
    acquire: late(store.acquire),
    renew: late(store.renew),
    release: late(store.release),
    tickets: { join: late(store.tickets.join) },
  };
}

/** The defects that need more than one store, or means of the suite. */
const DEFECTS_OF_PLACES: Readonly<Record<string, { rule: string; begin: () => Connect; options?: Partial<StoreContractOptions> }>> = {
  'ends the locks of other processes with itself': { rule: 'the end of one store leaves', begin: several() },
  'has no use for its prefix': {
    rule: 'stores with different prefixes',
    begin: several(() => ({ open: async () => undefined, close: async () => undefined })),
    options: { offers: ['open', ...OFFERS] },
  },
  'acquires whatever its limit is': { rule: 'acquire, renew and release settle', begin: one(slow), options: { stall: sleep } },
  'joins whatever its limit is': { rule: 'join settles within its limit', begin: one(slow), options: { stall: sleep } },
  'exchanges whatever its limit is': {
    rule: 'leave and exchange settle',
    begin: one((store) => mapOrder(store, { exchange: (...args) => awake(550).then(() => store.turns.exchange(...args)) })),
    options: { stall: sleep },
  },
  'inspects for ever': {
    rule: 'inspect and forceRelease settle',
    begin: one((store) => mapOperator(store, { inspect: (key) => awake(1_350).then(() => store.operator.inspect(key)) })),
    options: { stall: sleep },
  },
  'is asked for its health in vain': {
    rule: 'health settles within a second',
    begin: one(() => ({ health: () => awake(1_350).then(() => ({})) })),
    options: { stall: sleep },
  },
  'grants to a repeated attempt only once': {
    rule: 'an acquire that was not answered is answered when it is repeated',
    begin: one((store) => {
      const seen = new Set<string>();
      return {
        acquire: async (hold, place) => {
          const isFirst = !seen.has(hold.id);
          seen.add(hold.id);
          return isFirst ? sleep(100).then(() => store.acquire(hold, place)) : BUSY;
        },
      };
    }),
    options: { stall: sleep },
  },
};

test('a store that keeps the contract passes it', async () => {
  const { tested, failures } = await runContract(one());
  expect([...failures]).toEqual([]);
  expect(tested.length).toBeGreaterThan(80);
});

test('a store whose leases do not end by time passes it with all that it offers', async () => {
  const { tested, failures } = await runContract(
    () => {
      const store = partsOf(new MemoryLockStore({ expires: false }));
      return () => store;
    },
    '',
    { expires: false },
  );
  expect([...failures]).toEqual([]);
  expect(tested).toContainEqual(expect.stringContaining('a reader that comes does not overtake'));
});

test('a store that grants no long lease is asked for none', async () => {
  const longestLeaseMs = 4_000;
  const { failures } = await runContract(
    one((store) => ({
      longestLeaseMs,
      ...mapHolds(store, (hold) => {
        expect(hold.ttlMs).toBeLessThanOrEqual(longestLeaseMs);
        return hold;
      }),
    })),
  );
  expect([...failures]).toEqual([]);
});

test('a store that is one and the same object is opened again only after it was closed', async () => {
  let isOpen = false;
  let opened = 0;
  const begin = one(() => ({
    open: async () => {
      expect(isOpen).toBe(false);
      isOpen = true;
      opened++;
    },
    close: async () => {
      isOpen = false;
    },
  }));
  const { failures } = await runContract(begin, 'a store that was closed can be opened again', { offers: ['open', ...OFFERS] });
  expect([...failures]).toEqual([]);
  expect(opened).toBe(3);
});

test('a store may show those who wait in a form of its own, with the process id', async () => {
  const begin = one((store) => mapShown(store, (lock) => ({ ...lock, waiters: lock.waiters.map(() => `${process.pid}@host`) })));
  const { failures } = await runContract(begin, 'inspect shows who waits');
  expect([...failures]).toEqual([]);
});

test('a store that loses a notice keeps the contract', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  // The first of each run, which all its listeners miss.
  const lossy = (): (<Args extends unknown[]>(notify: (...args: Args) => unknown) => (...args: Args) => void) => {
    let lost: string | undefined;
    return (notify) =>
      (...args) => {
        const message = JSON.stringify(args);
        lost ??= message;
        if (message !== lost) {
          notify(...args);
        }
      };
  };
  const { failures } = await runContract(
    one((store) => {
      const [turns, forced] = [lossy(), lossy()];
      return {
        turns: { ...store.turns, onTurn: ({ turn, recheck }, until) => store.turns.onTurn({ turn: turns(turn), recheck }, until) },
        operator: { ...store.operator, onForced: (listener, until) => store.operator.onForced(forced(listener), until) },
      };
    }),
  );
  expect([...failures]).toEqual([]);
  expect(warn).toHaveBeenCalledWith(expect.stringMatching(/ is repeated: a notice did not come, and a message may be lost\.$/));
  warn.mockRestore();
});

test('a store whose messages come twice, and once more much later, keeps the contract', async () => {
  const again = (notify: () => unknown): void => {
    notify();
    notify();
    setTimeout(notify, 60);
  };
  const { failures } = await runContract(
    one((store) => ({
      turns: {
        ...store.turns,
        onTurn: ({ turn, recheck }, until) => store.turns.onTurn({ turn: (...message) => again(() => turn(...message)), recheck }, until),
      },
      operator: {
        ...store.operator,
        onForced: (listener, until) => store.operator.onForced((...message) => again(() => listener(...message)), until),
      },
      messages: {
        ...store.messages,
        onMessage: (listener, until) => store.messages.onMessage((...message) => again(() => listener(...message)), until),
      },
    })),
  );
  expect([...failures]).toEqual([]);
});

test.each([
  'acquire, renew and release settle',
  'an acquire that was not answered',
  'join settles',
  'inspect and forceRelease settle',
  'leave and exchange settle',
])('a stall that does nothing fails the test that %s', async (rule) => {
  const { tested, failures } = await runContract(one(), rule, { stall: sleep });
  expect([...failures.keys()]).toEqual(tested);
  expect(String([...failures.values()][0])).toContain('`stall` stopped nothing');
});

test('a stall that fails at once fails its test, and nothing else', async () => {
  const stall = async (): Promise<void> => {
    throw new Error('no rights to stop it');
  };
  const { failures } = await runContract(one(), 'join settles', { stall });
  expect(String([...failures.values()])).toContain('no rights to stop it');
});

test.each(Object.entries(DEFECTS))('the contract notices a store that %s', async (_name, { rule, change }) => {
  const { tested, failures } = await runContract(one(change), rule);
  expect(tested).toHaveLength(1);
  expect([...failures.keys()]).toEqual(tested);
});

test.each(Object.entries(DEFECTS_OF_PLACES))('the contract notices a store that %s', async (_name, { rule, begin, options }) => {
  const { tested, failures } = await runContract(begin, rule, options);
  expect(tested).toHaveLength(1);
  expect([...failures.keys()]).toEqual(tested);
});

test('the contract notices a store whose fences start anew with a restart', async () => {
  let back = 0;
  const restart = async (): Promise<void> => {
    back = 1e9;
  };
  const begin = one((store) => mapGrants(store, (fence) => fence - back));
  const { tested, failures } = await runContract(begin, 'fences rise over a restart', { restart });
  expect([...failures.keys()]).toEqual(tested);
});

test('every rule has a defect that breaks it', async () => {
  const options = { stall: sleep, restart: async () => undefined, offers: ['open', ...OFFERS] as const };
  const { tested: none, skipped } = await runContract(one(), 'no name has this in it', options);
  expect([none, skipped]).toEqual([[], [expect.stringContaining('leases of the store end by time')]]);
  const rules = (
    await runContract(
      several(() => ({ open: async () => undefined })),
      '',
      options,
    )
  ).tested;
  const broken = [...Object.values(DEFECTS), ...Object.values(DEFECTS_OF_PLACES)].map(({ rule }) => rule);
  expect(rules.filter((name) => !broken.some((rule) => name.includes(rule)))).toEqual([expect.stringContaining('over a restart')]);
});

test('what a store does not offer is skipped, and the name of the test says why', async () => {
  const whole = await runContract(one());
  const { tested, skipped, failures } = await runContract(
    () => {
      const { expires, acquire, renew, release, close } = partsOf(new MemoryLockStore({ expires: false }));
      const least = { expires, acquire, renew, release, close } as Parts;
      return () => least;
    },
    '',
    { offers: [], expires: false },
  );
  expect([...failures]).toEqual([]);
  expect(tested.length + skipped.length).toBe(whole.tested.length + whole.skipped.length);
  // The rules of `forced` need an operator, too.
  for (const offer of ['turns', 'tickets', 'operator', 'messages', 'search', 'health', 'open', 'shared', 'permits']) {
    expect(skipped).toContainEqual(expect.stringContaining(`(skipped: the store does not offer ${offer})`));
  }
  expect(skipped).toContainEqual(expect.stringContaining('(skipped: leases of the store do not end by time)'));
  expect(skipped).toContainEqual(expect.stringContaining('(skipped: the suite was given no `stall`)'));
});

test('a check that fails because the machine was busy is repeated, with a warning', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
  let calls = 0;
  const begin = one((store) => ({
    renew: async (holds) => {
      await (++calls === 1 && sleep(2_100));
      return store.renew(holds);
    },
  }));
  const { tested, failures } = await runContract(begin, 'a renewal makes the lease longer');
  expect([tested.length, ...failures]).toEqual([1]);
  expect(warn).toHaveBeenCalledWith(expect.stringMatching(/^"a renewal makes the lease longer, .*" is repeated: it took \d+ ms/));
  warn.mockRestore();
});

test.each([
  ['whose calls came when its stall was over', (ms: number) => 0.7 * ms],
  ['whose stall was over too early', () => 0],
])('a check %s is repeated, with a warning', async (_what, firstMs) => {
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
  let stalls = 0;
  const stall = async (ms: number): Promise<void> => {
    if (++stalls > 1) {
      return sleep(ms);
    }
    const endsAt = performance.now() + firstMs(ms);
    while (performance.now() < endsAt);
  };
  const { failures } = await runContract(one(), 'join settles', { stall });
  // Where this process was stopped, the next one came too late as well.
  expect(stalls).toBeGreaterThanOrEqual(2);
  expect(warn).toHaveBeenCalledWith(
    expect.stringMatching(/is repeated: (when the calls came, the database stood still for \d+ ms more|it took)/),
  );
  expect(String([...failures.values()])).toContain('`stall` stopped nothing');
  warn.mockRestore();
});

test('a check to which the database did not answer is repeated, with a warning', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
  let calls = 0;
  const begin = one((store) => ({
    release: async (hold) => {
      if (++calls === 1) {
        throw new LockStoreError('no reply', hold.key, { unknown: true });
      }
      return store.release(hold);
    },
  }));
  const { tested, failures } = await runContract(begin, 'a release frees the lock for every process');
  expect([tested.length, ...failures]).toEqual([1]);
  expect(warn).toHaveBeenCalledWith(expect.stringMatching(/is repeated: the database did not answer: no reply\.$/));
  warn.mockRestore();
});
