import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { outsideLocks } from '../../../lib/core/calls/call-tree';
import { LockLostError, LockNotAcquiredError } from '../../../lib/core/words/errors';
import type { Frame } from '../../../lib/core/entering/frame';
import type { Lock } from '../../../lib/core/words/lock';
import { Locks } from '../../../lib/locks';
import type { WaitingCall } from '../../../lib/operate/peers/survey';
import { currentLock } from '../../../lib/nest/current-lock';
import { makeTickets, enterTickets } from '../../../lib/nest/current-tickets';
import type { LockService } from '../../../lib/nest/lock.service';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { parseCall, type LockOptions } from '../../../lib/core/words/call-options';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';

/** Counts its commands, and shows what it was asked to renew. */
class CountingStore extends MemoryLockStore {
  readonly commands: string[] = [];
  readonly renewed: HoldRecord[] = [];
  override async acquire(...parameters: Parameters<MemoryLockStore['acquire']>): ReturnType<MemoryLockStore['acquire']> {
    this.commands.push(`acquire ${parameters[0].fences}`);
    return super.acquire(...parameters);
  }
  override async exchange(...parameters: Parameters<MemoryLockStore['exchange']>): ReturnType<MemoryLockStore['exchange']> {
    this.commands.push(`exchange ${parameters[1].fences}${parameters[3] ? '' : ' behind the queue'}`);
    return super.exchange(...parameters);
  }
  override async release(hold: HoldRecord): Promise<boolean> {
    this.commands.push('release');
    return super.release(hold);
  }
  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    this.renewed.push(...holds);
    return super.renew(holds);
  }
}

playTime();

let store: CountingStore;

beforeEach(() => {
  store = new CountingStore();
});
afterEach(() => store.close());

/**
 * Calls one after the other that want `k`, all at once; resolves to their results. The first has the lock when the
 * others come.
 */
async function crowd<T>(bodies: readonly (() => T | Promise<T>)[], options: LockOptions = {}, locks = makeLocks(store)): Promise<T[]> {
  return Promise.all(bodies.map((body) => locks.withLock('k', options, body)));
}

const failureOf = (call: Promise<unknown>): Promise<unknown> => call.then(() => 'entered', (error: unknown) => error); // prettier-ignore
const none = (count: number): (() => void)[] => Array.from({ length: count }, () => () => undefined);

describe('a lease', () => {
  test('serves the calls that wait here without a command, with fences that rise', async () => {
    const locks = makeLocks(store);
    const fences = await Promise.all(
      Array.from({ length: 18 }, (_, at) =>
        locks.withLock('k', async (lock) => {
          await sleep(at === 0 ? 20 : 1);
          return lock.fence;
        }),
      ),
    );
    // The first call and the 15 after it are the burst of 16.
    expect(store.commands).toEqual(['acquire 1', 'exchange 16', 'exchange 2 behind the queue', 'release']);
    expect(fences).toEqual(fences.toSorted((first, second) => first - second));
    expect(new Set(fences).size).toBe(18);
    const [, first = 0] = fences;
    expect(fences.slice(1, 16)).toEqual(Array.from({ length: 15 }, (_, at) => first + at));
  });

  test('is given back to the store after 16 calls, behind the processes that queue', async () => {
    const mine = makeLocks(store);
    const others = makeLocks(store);
    const order: string[] = [];
    const held = await mine.acquire('k');
    const all = Array.from({ length: 40 }, () => mine.withLock('k', () => void order.push('mine')));
    const other = others.withLock('k', () => void order.push('other'));
    await sleep(20);
    await held.release();
    await Promise.all([...all, other]);
    expect(order.indexOf('other')).toBeGreaterThan(0);
    expect(order.indexOf('other')).toBeLessThanOrEqual(16);
  });

  test.each<[string, LockOptions, LockOptions, number]>([
    ['asks for another ttl', {}, { ttl: 6_000 }, 2],
    ['is not renewed', {}, { renew: false }, 3],
    ['follows one that is not renewed', { renew: false }, {}, 2],
  ])('does not serve a call that %s', async (_, before, options, exchanges) => {
    const locks = makeLocks(store);
    await Promise.all([
      locks.withLock('k', () => sleep(5)),
      locks.withLock('k', before, () => undefined),
      locks.withLock('k', options, () => undefined),
      locks.withLock('k', options, () => undefined),
    ]);
    expect(store.commands.filter((command) => command.startsWith('exchange'))).toHaveLength(exchanges);
  });

  test('serves nobody while the store has granted less than a nested call asked for', async () => {
    const locks = makeLocks(store);
    await Promise.all([
      locks.withLock('k', { ttl: 3_000 }, () => sleep(5)),
      locks.withLock('k', { ttl: 3_000 }, () => locks.withLock('k', { ttl: 5_000 }, () => undefined)),
      locks.withLock('k', { ttl: 5_000 }, () => undefined),
    ]);
    expect(store.commands).toEqual(['acquire 1', 'exchange 2', 'exchange 1', 'release']);
  });

  test('does not serve the next call where a ticket was made, so that the ticket ends with its call', async () => {
    const locks = makeLocks(store);
    let ticket = '';
    const [, , , late] = await Promise.all([
      locks.withLock('k', () => sleep(5)),
      locks.withLock('k', () => undefined),
      locks.withLock('k', (lock) => void (ticket = lock.makeTicket())),
      locks.withLock('k', () => failureOf(locks.withLock('k', { ticket, reentry: 'never' }, () => undefined))),
    ]);
    expect(ticket).not.toBe('');
    expect(late).toMatchObject({ code: 'LOCK_LOST' });
    expect(store.commands.slice(0, 3)).toEqual(['acquire 1', 'exchange 3', 'exchange 1']);
  });

  test('lets guests enter at the fence of the call that made the ticket', async () => {
    const locks = makeLocks(store);
    const guests = makeLocks(store);
    const [, , fences] = await Promise.all([
      locks.withLock('k', () => sleep(5)),
      locks.withLock('k', () => undefined),
      locks.withLock('k', async (lock) => [lock.fence, await guests.withLock('k', { ticket: lock.makeTicket() }, (guest) => guest.fence)]),
    ]);
    expect(fences?.[0]).toBe(fences?.[1]);
    expect(store.commands).toEqual(['acquire 1', 'exchange 2', 'release', 'release']);
  });

  test('serves the next call only once its minHold is over', async () => {
    const locks = makeLocks(store);
    const starts: number[] = [];
    const begun = performance.now();
    const call = (): Promise<void> => locks.withLock('k', { minHold: 80 }, () => void starts.push(performance.now() - begun));
    await Promise.all([call(), call(), call()]);
    // Counted from the grant, before which the first code cannot have begun.
    expect(starts[1]).toBeGreaterThan(75);
    expect(starts[2]).toBeGreaterThan(150);
  });

  test('serves nobody when less than half of it is left', async () => {
    let ahead = 0;
    const clock = { monotonic: () => performance.now() + ahead, wall: () => Date.now() + ahead };
    const locks = makeLocks(store, { clock });
    await crowd([() => sleep(5), () => void (ahead += 80), () => undefined, () => undefined], { ttl: 150 }, locks);
    // The second call uses up more than half of its lease, as on a machine that stood still.
    expect(store.commands).toEqual(['acquire 1', 'exchange 3', 'exchange 2', 'release']);
  });

  test('serves nobody once its maxHold is over', async () => {
    await crowd([() => sleep(5), () => sleep(60), () => undefined], { maxHold: 30 });
    expect(store.commands).toEqual(['acquire 1', 'exchange 2', 'exchange 1', 'release']);
  });

  test('serves nobody while the process shuts down', async () => {
    const locks = makeLocks(store);
    let ran = 0;
    const calls = Promise.allSettled([
      locks.withLock('k', () => sleep(50)),
      locks.withLock('k', () => void ran++),
      locks.withLock('k', () => void ran++),
    ]);
    await sleep(10);
    await locks.shutdown();
    await calls;
    expect(ran).toBe(0);
    expect(store.commands).toEqual(['acquire 1', 'release']);
  });

  test('that is lost ends the running call only; those behind it contend anew', async () => {
    const locks = makeLocks(store);
    const outcomes = await Promise.allSettled([
      locks.withLock('k', () => sleep(5)),
      locks.withLock('k', () => undefined),
      locks.withLock('k', async (lock) => {
        const stored = await locks.operations.inspect('k');
        await locks.operations.forceRelease('k', { fence: stored?.fence ?? 0 });
        await until('it knows', () => lock.signal.aborted);
      }),
      locks.withLock('k', () => 4),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'LOCK_LOST', reason: 'forced' } });
  });

  test.each([
    ['is trusted from the sending on', 3_000, 6_000],
    ['counts as late, and is released, where it came after its own end', 7_000, 0],
  ])('that came by an exchange %s, as one that was asked for alone', async (_, replyMs, mostMs) => {
    const exchange = store.exchange.bind(store);
    store.exchange = async (...parameters) => {
      const answer = await exchange(...parameters);
      await sleep(replyMs);
      return answer;
    };
    const locks = makeLocks(Object.assign(store, { keepsLimits: true }));
    const [, left] = await Promise.all([
      locks.withLock('k', { ttl: 6_000 }, () => sleep(5)),
      locks.withLock('k', { ttl: 6_000, wait: 60_000 }, (lock) => lock.remainingMs()),
    ]);
    expect(store.commands.slice(0, 2)).toEqual(['acquire 1', 'exchange 1']);
    // A late one is asked for again, and that has all its time.
    expect(store.commands.filter((command) => command.startsWith('acquire'))).toHaveLength(mostMs ? 1 : 2);
    expect(left).toBeLessThanOrEqual((mostMs || 6_000 + replyMs) - replyMs);
  });

  test('is renewed in the name of the call that it serves, which inspect then shows', async () => {
    const locks = makeLocks(store);
    let shown: string | undefined;
    await Promise.all([
      locks.withLock('k', { ttl: 300 }, () => sleep(5)),
      locks.withLock('k', { ttl: 300, by: 'the first' }, () => undefined),
      locks.withLock('k', { ttl: 300, by: 'the second' }, async () => {
        expect((await locks.operations.inspect('k'))?.by).toMatch(/the first$/);
        await until('a renewal', async () => /the second$/.test((shown = (await locks.operations.inspect('k'))?.by) ?? ''));
      }),
    ]);
    expect(shown).toMatch(/the second$/);
    expect(store.renewed.every(({ fence }) => fence === store.renewed[0]?.fence)).toBe(true);
  });

  test('is renewed in time, also where it began to serve while a renewal was on its way', async () => {
    const sentAt: number[] = [];
    const answer = store.renew.bind(store);
    store.renew = async (holds) => {
      sentAt.push(performance.now());
      await sleep(40);
      return answer(holds);
    };
    const locks = makeLocks(store);
    // The renewal of the second call is sent after 80 ms, and answered after 120.
    const calls = [5, 90, 2_000].map((ms) => locks.withLock('k', { ttl: 240 }, () => sleep(ms)));
    await Promise.all(calls);
    expect(store.commands).toEqual(['acquire 1', 'exchange 2', 'release']);
    const gaps = sentAt.slice(1).map((at, index) => at - (sentAt[index] as number));
    // A third of the ttl, of which the answer took half.
    expect(Math.max(...gaps)).toBeLessThan(90);
  });

  test('that does not end by time serves too', async () => {
    store = new CountingStore({ expires: false });
    await crowd([() => sleep(5), ...none(4)]);
    expect(store.commands).toEqual(['acquire 1', 'exchange 4', 'release']);
  });

  test('is free again where a call was aborted in any moment between its release and the next body', async () => {
    const locks = makeLocks(store);
    const outcomes = new Set<unknown>();
    for (let hops = 0; hops < 30; hops++) {
      const aborter = new AbortController();
      const abortLater = async (): Promise<void> => {
        for (let hop = 0; hop < hops; hop++) {
          await undefined;
        }
        aborter.abort(new Error('aborted'));
      };
      const bodies = [locks.withLock('k', () => sleep(2)), locks.withLock('k', () => void abortLater())];
      const aborted = failureOf(locks.withLock('k', { signal: aborter.signal }, () => 'entered'));
      await Promise.all([...bodies, locks.withLock('k', () => undefined)]);
      outcomes.add((await aborted) instanceof LockNotAcquiredError ? 'aborted' : await aborted);
      await until('nobody has it', async () => (await locks.operations.inspect('k')) === null);
    }
    expect([...outcomes].toSorted()).toEqual(['aborted', 'entered']);
  });

  test('publishes acquired and released for each call that it serves, each with its own fence', async () => {
    const events: LockEvent[] = [];
    const listener = (event: unknown): void => void events.push(event as LockEvent);
    subscribe(LOCK_CHANNEL, listener);
    await crowd([() => sleep(5), ...none(3)]).finally(() => unsubscribe(LOCK_CHANNEL, listener));
    const of = (type: string): unknown[] => events.filter((event) => event.type === type).map((event) => 'fence' in event && event.fence);
    expect(of('acquired')).toHaveLength(4);
    expect(of('released')).toEqual(of('acquired'));
  });
});

describe('a call that has ended, whose lease serves the next one,', () => {
  let locks: LockService;
  /** The calls of another process. */
  let elsewhere: LockService;

  beforeEach(() => {
    locks = makeLocks(store);
    elsewhere = makeLocks(store);
  });

  /** Ends one call and runs `check` inside the next, which its lease serves. */
  async function served<T>(
    call: () => Promise<readonly [Lock, T]>,
    check: (ended: Lock, left: T, lock: Lock) => Promise<void>,
  ): Promise<void> {
    const first = locks.withLock('k', () => sleep(5));
    const second = call();
    const third = locks.withLock('k', async (lock) => {
      const [ended, left] = await second;
      expect(lock.fence).toBe(ended.fenceOf('k') + 1);
      await check(ended, left, lock);
    });
    await Promise.all([first, second, third]);
  }
  const byBody = async (): Promise<[Lock, undefined]> => [await locks.withLock('k', (lock) => lock), undefined];
  const byHandle = async (): Promise<[Lock, undefined]> => {
    const handle = await locks.acquire('k');
    await handle.release();
    return [handle, undefined];
  };
  const ofSeveral = async (): Promise<[Lock, undefined]> => [await locks.withLock(['k', 'l'], (lock) => lock), undefined];

  test.each([
    ['of a body', byBody],
    ['of acquire()', byHandle],
    ['of several keys', ofSeveral],
  ])('gives no ticket by a handle %s, which answers for its own call alone', async (_, call) => {
    await served(call, async (ended, _left, lock) => {
      expect([ended.isHeld(), ended.remainingMs(), ended.signal.aborted]).toEqual([false, 0, false]);
      for (const use of [() => ended.makeTicket(), () => ended.assertHeld(), () => ended.run(() => 1)]) {
        expect(use).toThrow(expect.objectContaining({ code: 'LOCK_LOST', reason: 'released' }) as Error);
      }
      await ended[Symbol.asyncDispose]();
      expect(lock.isHeld()).toBe(true);
      expect(await elsewhere.operations.inspect('k')).toMatchObject({ holds: 1 });
    });
    expect(await elsewhere.operations.inspect('k')).toBeNull();
  });

  test.each([
    ['of a body', byBody],
    ['of acquire()', byHandle],
  ])('is not told by the signal of a handle %s that the next one lost it', async (_, call) => {
    const lost = served(call, async (ended, _left, lock) => {
      const { signal } = ended;
      await elsewhere.operations.forceRelease('k', { fence: (await elsewhere.operations.inspect('k'))?.fence ?? 0 });
      await until('the loss', () => lock.signal.aborted);
      expect([signal.aborted, ended.signal.aborted]).toEqual([false, false]);
    });
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
  });

  /** A call by a handle, of which code goes on after the release. */
  function leaving<T>(code: (handle: Lock) => Promise<T>): { readonly call: () => Promise<[Lock, Promise<T>]>; readonly goOn: () => void } {
    let goOn!: () => void;
    const next = new Promise<void>((resolve) => (goOn = resolve));
    const call = async (): Promise<[Lock, Promise<T>]> => {
      const handle = await locks.acquire('k');
      const left = handle.run(() => next.then(() => code(handle)));
      await handle.release();
      return [handle, left];
    };
    return { call, goOn };
  }

  test('and whose code goes on: its tickets enter that key nowhere, and calls on other keys as always', async () => {
    const { call, goOn } = leaving(async (handle) => {
      expect(currentLock('k')).toBe(handle);
      const text = makeTickets();
      const enter = (key: string): Promise<unknown> =>
        outsideLocks(() => enterTickets(text, () => failureOf(elsewhere.withLock(key, { wait: 0 }, () => 1))));
      return [await enter('k'), await enter('j'), await failureOf(locks.withLock('k', () => 1)), await locks.withLock('j', () => 'j')];
    });
    await served(call, async (_ended, left) => {
      goOn();
      expect(await left).toEqual([expect.any(LockLostError), 'entered', expect.any(LockLostError), 'j']);
    });
  });

  test('takes nothing from that one where it is ended once more', async () => {
    const core = new Locks({ name: 'default', store, maxWaiters: { perKey: 9, perProcess: 9 }, onTrouble: () => undefined });
    const call = parseCall({}, { ttlMs: 5_000, waitMs: 5_000, maxHoldMs: Infinity }, 'test');
    let frame: Frame | undefined;
    await Promise.all([
      core.run(['k'], call, () => sleep(5)),
      core.run(['k'], call, () => undefined, (own) => void (frame = own)), // prettier-ignore
      core.run(['k'], call, async (lock) => {
        expect(lock.fence).toBe((frame?.lock?.fence ?? 0) + 1);
        frame?.lose('released');
        await sleep(5);
        expect(lock.isHeld()).toBe(true);
        expect(await elsewhere.operations.inspect('k')).toMatchObject({ holds: 1 });
      }),
    ]);
  });

  test('and whose code goes on and waits: it is not shown as the holder', async () => {
    const holder = await elsewhere.acquire('j');
    const { call, goOn } = leaving(() => locks.withLock('j', () => 'j'));
    await served(call, async (_ended, left) => {
      goOn();
      let waiting: readonly WaitingCall[] = [];
      await until('it waits', async () => ({ waiting } = await elsewhere.operations.survey({})).waiting.length > 0);
      expect(waiting).toMatchObject([{ key: 'j', holds: [] }]);
      await holder.release();
      await left;
    });
  });
});

describe('with turns', () => {
  test('a process goes on for 100 ms only, and then lets others in', async () => {
    await crowd([() => sleep(5), ...Array.from({ length: 8 }, () => () => sleep(40))]);
    // Each turn is 100 ms, and the section that runs then.
    expect(store.commands).toEqual(['acquire 1', 'exchange 8', 'exchange 5 behind the queue', 'exchange 2 behind the queue', 'release']);
  });

  test('a process in which each call asks anew goes on for 100 ms only, over all of them', async () => {
    const locks = makeLocks(store);
    const run = (): Promise<void> => locks.withLock('k', { minHold: 40 }, () => undefined);
    await Promise.all(Array.from({ length: 8 }, run));
    expect(store.commands.filter((command) => command.endsWith('behind the queue'))).toHaveLength(2);
  });
});

test('a permit serves the calls of its process for 100 ms only, and is then given back', async () => {
  const locks = makeLocks(store);
  await Promise.all(Array.from({ length: 6 }, () => locks.withPermit('k', 1, () => sleep(40))));
  expect(store.commands.filter((command) => command === 'release')).toHaveLength(2);
});

describe('without turns', () => {
  test('a process goes on for 50 ms only, and then asks the store', async () => {
    Object.defineProperty(store, 'turns', { value: undefined });
    await crowd([() => sleep(5), ...Array.from({ length: 12 }, () => () => sleep(20))]);
    const acquires = store.commands.filter((command) => command.startsWith('acquire'));
    expect(acquires.length).toBeGreaterThanOrEqual(4);
    expect(acquires.length).toBeLessThan(13);
  });
});

test('a call that has left cannot lose the lock that serves the next', async () => {
  const core = new Locks({ name: 'default', store, maxWaiters: { perKey: 10, perProcess: 10 }, onTrouble: () => undefined });
  const call = makeLocks(store).parse({}, 'test');
  const frames: Frame[] = [];
  const run = <T>(body: (lock: Lock) => T | Promise<T>): Promise<T> => core.run(['k'], call, body, (frame) => void frames.push(frame));
  const first = run(() => sleep(20));
  const second = run(() => first);
  const third = run(async (lock) => {
    await second;
    frames[1]?.lose('forced');
    return [lock.isHeld(), frames[1]?.loss];
  });
  expect(await third).toEqual([true, undefined]);
  await core.shutdown();
  // The lease of the second served the third.
  expect(store.commands).toEqual(['acquire 1', 'exchange 2', 'release']);
});
