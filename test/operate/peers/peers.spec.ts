import { LockStoreError, type LockNotAcquiredError } from '../../../lib/core/words/errors';
import type { LockEvent } from '../../../lib/core/words/lock-event';
import type { FoundLock, HoldRecord, LockStore, Messages } from '../../../lib/core/seam/lock-store';
import { FlightRecorder } from '../../../lib/operate/peers/flight-recorder';
import type { EndedCall } from '../../../lib/operate/peers/survey';
import { outsideLocks } from '../../../lib/core/calls/call-tree';
import { enterTickets, makeTickets } from '../../../lib/nest/current-tickets';
import type { LockService } from '../../../lib/nest/lock.service';
import { systemClock } from '../../../lib/core/seam/time';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { ManualClock } from '../../support/manual-clock';
import { makeLocks } from '../../support/make-locks';
import { newHold } from '../../support/new-hold';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

let store: MemoryLockStore;

const methodsOf = ({ process, send }: MemoryLockStore): Pick<Messages, 'process' | 'send'> => ({ process, send: send.bind(store) });

beforeEach(() => {
  store = new MemoryLockStore();
});

const process = { id: 'other:2:00000000#1', host: 'other', pid: 2, version: '0', upMs: 1, held: 1, waiting: 0 };
const held = { key: 'k', name: 'n', site: 'p', fence: 7, callFence: 7, heldMs: 1, remainingMs: 5 };
const answer = { kind: 'answer', process, part: 0, parts: 1, leftOut: 0, held: [held], waiting: [], ended: [] };

/** Another process, which answers rolls with these. */
function peer(answers: () => readonly object[]): void {
  store.onMessage((text) => {
    const { kind, id, to } = JSON.parse(text) as { kind: string; id: string; to: string };
    for (const each of kind === 'roll' ? answers() : []) {
      void store.send(JSON.stringify({ ...each, id }), to);
    }
  });
}

describe('a survey', () => {
  test('counts an answer that comes twice once', async () => {
    peer(() => [
      { ...answer, parts: 2 },
      { ...answer, parts: 2 },
      { ...answer, part: 1, parts: 2, held: [{ ...held, key: 'l' }] },
      { ...answer, parts: 2 },
    ]);
    const { held: locks, processes } = await makeLocks(store).operations.survey({});
    expect(locks.map(({ key }) => key)).toEqual(['k', 'l']);
    expect(processes).toHaveLength(2);
  });

  test('has for how long each reason has been there, as the process says that has it', async () => {
    const health = { status: 'degraded', reasons: ['polls', 'thawing'], reachable: true, reasonMs: { polls: 63_000, thawing: 7 } };
    peer(() => [{ ...answer, process: { ...process, health } }]);
    const { processes } = await makeLocks(store).operations.survey({ health: true });
    expect(processes[1]?.health?.reasonMs).toEqual({ polls: 63_000 });
  });

  test('names a process that has answered before and does not now', async () => {
    let isThere = true;
    peer(() => (isThere ? [answer] : []));
    const locks = makeLocks(store);
    expect(await locks.operations.survey({})).toMatchObject({ processes: [{}, { id: process.id }], silent: [] });
    isThere = false;
    expect(await locks.operations.survey({})).toMatchObject({ processes: [{}], silent: [process.id] });
  });

  test.each([null, 'up', { status: 7 }, { status: 'up', reasons: 'x' }, { status: 'up', reasons: [], reachable: true, latencyMs: 'x' }])(
    'takes no answer whose health is %j',
    async (health) => {
      peer(() => [{ ...answer, process: { ...process, health } }]);
      expect((await makeLocks(store).operations.survey({})).processes).toHaveLength(1);
    },
  );

  test('takes an answer of a later version: its words as they are, and what it does not say as not said', async () => {
    const words = { outcome: 'recycled', reason: 'sunspots' };
    const later = { id: 'i', type: 'evaporated', scope: 'galaxy', orbit: {} };
    const health = { status: 'frostbitten', reasons: ['thawing'], members: [{ refuses: 'moody' }] };
    const ended = { key: 'k', id: 'e', ...words };
    const bare = { kind: 'answer', process: { id: process.id, health }, held: [{ key: 'k', fence: 7, callFence: 7 }], ended: [ended] };
    peer(() => [{ ...bare, incidents: [later], songs: [] }]);
    const { processes, held: locks, ended: calls, incidents } = await makeLocks(store).operations.survey({});
    expect(processes[1]).toMatchObject({
      host: 'not said',
      upMs: 0,
      health: { status: 'frostbitten', reasons: ['thawing'], reachable: true },
    });
    expect(processes[1]?.health?.members).toEqual([{ reachable: true, refuses: 'moody' }]);
    expect(locks).toMatchObject([{ key: 'k', site: '', heldMs: 0 }]);
    expect(calls).toMatchObject([{ ...words, waitedMs: 0 }]);
    expect(incidents).toMatchObject([{ type: 'evaporated', scope: 'galaxy', key: '', count: 1, agoMs: 0 }]);
  });

  test('takes no answer whose ended calls have another reason than a text', async () => {
    const ended = { key: 'k', name: 'n', site: 'p', id: 'e', waitedMs: 1, heldMs: 1, agoMs: 1, outcome: 'lost', reason: { toString: 1 } };
    peer(() => [{ ...answer, ended: [ended] }]);
    expect((await makeLocks(store).operations.survey({})).processes).toHaveLength(1);
  });

  const call = { key: 'k', name: 'n', site: 'p', id: 'e' };
  const incident = { ...call, type: 'lost', agoMs: 1, count: 1 };
  const ended = { ...call, waitedMs: 1, heldMs: 1, agoMs: 1, outcome: 'released' };
  const wellness = { status: 'up', reasons: [], reachable: true };

  test.each<[object]>(
    [
      ...[-1e300, 1e300, -9e15, 9e15, -1].map((agoMs) => ({ incidents: [{ ...incident, agoMs }] })),
      ...[-1e300, 0.5, -1].map((count) => ({ incidents: [{ ...incident, count }] })),
      ...[-1e300, -1].map((heldMs) => ({ ended: [{ ...ended, heldMs }] })),
      ...[1e300, 1.5, -7].map((fence) => ({ held: [{ ...held, fence }] })),
      ...[-1, 1e300].map((remainingMs) => ({ held: [{ ...held, remainingMs }] })),
      ...[-1e300, -1].map((upMs) => ({ process: { ...process, upMs } })),
      ...[-1e300, 1e300].map((clockSkewMs) => ({ process: { ...process, health: { ...wellness, clockSkewMs } } })),
    ].map((fields) => [fields]),
  )('takes no answer with a number that cannot be true: %j', async (fields) => {
    peer(() => [{ ...answer, ...fields }]);
    const locks = makeLocks(store);
    expect(await locks.operations.incidents()).toEqual([]);
    expect((await locks.operations.survey({})).processes).toHaveLength(1);
  });

  test('takes an answer with numbers that are as far off as they can be', async () => {
    const years = 90 * 365 * 86_400_000;
    const far = { incidents: [{ ...incident, agoMs: years }], held: [{ ...held, fence: Number.MAX_SAFE_INTEGER, remainingMs: 0 }] };
    peer(() => [{ ...answer, ...far, process: { ...process, upMs: 0, health: { ...wellness, clockSkewMs: -years, leastMarginMs: -1 } } }]);
    const [found] = await makeLocks(store).operations.incidents();
    expect(found?.at.toISOString()).toMatch(/^19/);
  });

  test('does not wait for a health that takes its time: the process answers without it', async () => {
    const slow = Object.assign(store, { health: () => sleep(700).then(() => ({})) }) as LockStore;
    const [mine, theirs] = [makeLocks(slow), makeLocks(slow)];
    expect((await mine.operations.processes()).map(({ health }) => health?.status)).toEqual(['up', undefined]);
    expect(await theirs.operations.health()).toMatchObject({ status: 'up' });
  });

  test('has a lease that is over, and whose process has not noticed yet', async () => {
    const clock = new ManualClock();
    const [mine, theirs] = [makeLocks(store), makeLocks(store, { clock })];
    await theirs.acquire('k', { ttl: 5_000 });
    clock.now += 5_000;
    expect(await mine.operations.survey({})).toMatchObject({
      processes: [{}, { held: 1 }],
      held: [{ key: 'k', heldMs: 5_000, remainingMs: 0 }],
    });
  });

  test('has calls whose names are long', async () => {
    const long = 'x'.repeat(5_000);
    const [mine, theirs] = [makeLocks(store), makeLocks(store)];
    theirs.operations.record();
    await theirs.withLock('ended', { by: long, name: long }, () => undefined);
    const lock = await theirs.acquire('held', { by: long, name: long });
    const survey = await mine.operations.survey({ recent: true });
    expect(survey.held.map(({ key }) => key)).toEqual(['held']);
    expect(survey.ended.map(({ key }) => key)).toEqual(['ended']);
    await lock.release();
  });
});

/** A store that another application still uses: no one closes it. */
const stayOpen = (): Promise<void> => Promise.resolve();

test.each([
  ['forgets its listeners', () => store],
  [
    'knows no end of a listener',
    () => ({ ...methodsOf(store), onMessage: (listener: (text: string) => void) => store.onMessage(listener) }),
  ],
])('an application that has shut down answers no survey, while another uses the same store, which %s', async (_, messages) => {
  const shared = Object.assign(store, { close: stayOpen, messages: messages() });
  const [mine, theirs] = [makeLocks(shared), makeLocks(shared)];
  expect(await mine.operations.processes()).toHaveLength(2);
  await theirs.shutdown();
  expect(await mine.operations.processes()).toHaveLength(1);
});

describe('an application that shuts down', () => {
  const text = JSON.stringify;
  let sent: string[];

  beforeEach(() => {
    sent = [];
    const send = store.send.bind(store);
    Object.assign(store, {
      close: stayOpen,
      send: (message: string, to?: string) => {
        sent.push((JSON.parse(message) as { kind: string }).kind);
        return send(message, to);
      },
    });
  });

  test('is not expected to answer any more: a survey does not wait for it, and does not name it as silent', async () => {
    const [mine, theirs] = [makeLocks(store), makeLocks(store)];
    await theirs.acquire('k');
    expect(await mine.operations.survey({})).toMatchObject({ held: [{ key: 'k' }], processes: [{}, {}] });
    await theirs.shutdown();
    const startedAt = performance.now();
    expect(await mine.operations.survey({})).toMatchObject({ held: [], processes: [{}], silent: [] });
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(sent.filter((kind) => kind === 'bye')).toHaveLength(1);
  });

  test('answers nobody after it has said so, also where the health of its store comes only then', async () => {
    const slow = Object.assign(store, { health: () => sleep(100).then(() => ({})) }) as LockStore;
    const theirs = makeLocks(slow);
    await store.send(text({ kind: 'roll', id: 'i', from: 'other', to: store.process, recent: false, health: true }));
    await sleep(50);
    await theirs.shutdown();
    await sleep(1_000);
    expect(sent).toEqual(['roll', 'bye']);
  });

  test.each([
    ['ever', undefined],
    ['within a minute', 61_000],
  ])('says nothing where nobody has asked %s', async (_, agoMs) => {
    const [mine, theirs] = [makeLocks(store), makeLocks(store)];
    if (agoMs !== undefined) {
      await mine.operations.survey({});
      await sleep(agoMs);
    }
    await theirs.shutdown();
    await sleep(1_000);
    expect(sent).not.toContain('bye');
  });

  test.each<[string, () => Promise<void>]>([
    ['never answers', () => new Promise<void>(() => undefined)],
    ['fails', () => Promise.reject(new Error('no connection'))],
    [
      'throws',
      () => {
        throw new Error('no connection');
      },
    ],
  ])('is not held up by a store that %s', async (_, send) => {
    const [mine, theirs] = [makeLocks(store), makeLocks(store)];
    await mine.operations.survey({});
    Object.assign(store, { send });
    const startedAt = performance.now();
    await theirs.shutdown();
    expect(performance.now() - startedAt).toBeLessThan(250);
  });

  test.each<[string, object]>([
    ['has no name', {}],
    ['has a number as its name', { process: 7 }],
    ['has too long a name', { process: 'x'.repeat(3_000) }],
    ['is of another process', { process: 'nobody' }],
  ])('is expected on where the message of its end %s', async (_, message) => {
    let isThere = true;
    peer(() => (isThere ? [answer] : []));
    const locks = makeLocks(store);
    expect((await locks.operations.survey({})).processes).toHaveLength(2);
    isThere = false;
    await store.send(text({ kind: 'bye', ...message }));
    expect((await locks.operations.survey({})).silent).toEqual([process.id]);
  });

  test('is expected again where somebody else said that it had left', async () => {
    let isThere = true;
    peer(() => (isThere ? [answer] : []));
    const locks = makeLocks(store);
    await locks.operations.survey({});
    await store.send(text({ kind: 'bye', process: process.id }));
    expect((await locks.operations.survey({})).processes).toHaveLength(2);
    isThere = false;
    expect((await locks.operations.survey({})).silent).toEqual([process.id]);
  });
});

test('an application that has shut down leaves no listener in a store that another uses', async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const listens = (_: unknown, end?: AbortSignal): number => signals.push(end);
  const shared = Object.assign(store, { close: stayOpen, onTurn: listens, onForced: listens, onMessage: listens });
  await makeLocks(shared, { telemetry: [{ operation: () => undefined }] }).shutdown();
  expect(signals.map((signal) => signal?.aborted)).toEqual([true, true, true]);
});

test('a store whose send throws at once fails no survey', async () => {
  const broken = Object.assign(store, {
    send: () => {
      throw new Error('no connection');
    },
  });
  expect((await makeLocks(broken).operations.survey({})).processes).toHaveLength(1);
});

test('a list has a lock that changes hands meanwhile once more at its later fence, and never at an earlier one', async () => {
  const later = { ...held, key: 'l', fence: Number.MAX_SAFE_INTEGER };
  peer(() => [
    { ...answer, held: [{ ...held, fence: 6 }, later] },
    { ...answer, process: { ...process, id: 'third:3:00000000#1' }, held: [held] },
  ]);
  const { fence } = await store.acquire(newHold('k'));
  await store.acquire(newHold('l'));
  const list = makeLocks(store).operations.list({ limit: 2 });
  const found: unknown[] = [];
  for await (const lock of list) {
    found.push([lock.key, lock.fence]);
  }
  expect(found).toEqual([
    ['k', held.fence],
    ['l', later.fence],
    ['k', fence],
  ]);
  expect(list.leftOut).toEqual({ rows: 0, limited: false, unsearched: false });
});

test('a list says how many share a key, with those whose processes do not answer', async () => {
  const { fence } = await store.acquire(newHold('erp', { shares: 5 }));
  await store.acquire(newHold('erp', { shares: 5 }));
  await store.acquire(newHold('erp', { shares: 4 }));
  const permit = { ...held, key: 'erp', fence };
  const reader = { ...held, shares: 'read' };
  peer(() => [{ ...answer, held: [{ ...permit, shares: 5 }, { ...permit, shares: 4 }, reader, reader] }]);
  const found: unknown[] = [];
  for await (const { key, shares, holds } of makeLocks(store).operations.list()) {
    found.push([key, shares, holds]);
  }
  expect(found).toEqual([
    ['erp', 4, 2],
    ['k', 'read', 2],
    ['erp', 4, 3],
  ]);
});

test('a list ends at its timeout where a step of the search does not end', async () => {
  let hasEnded = false;
  const never: AsyncIterableIterator<readonly FoundLock[]> = {
    [Symbol.asyncIterator]: () => never,
    next: () => new Promise(() => undefined),
    return: async () => {
      hasEnded = true;
      throw new Error('it hangs');
    },
  };
  const locks = makeLocks(Object.assign(store, { search: () => never }));
  await locks.acquire('k');
  const list = locks.operations.list({ timeout: '2s' });
  const keys: string[] = [];
  for await (const { key } of list) {
    keys.push(key);
  }
  expect(keys).toEqual(['k']);
  expect(list.leftOut.unsearched).toBe(true);
  expect(hasEnded).toBe(true);
});

test('a list that is left in the middle of a step of the search asks for no further one', async () => {
  let steps = 0;
  const endless: AsyncIterableIterator<readonly FoundLock[]> = {
    [Symbol.asyncIterator]: () => endless,
    next: async () => {
      steps++;
      await sleep(100);
      return { value: [], done: false };
    },
  };
  const service = makeLocks(Object.assign(store, { search: () => endless }));
  const unread = service.operations.list({ timeout: '60s' })[Symbol.asyncIterator]();
  const first = unread.next();
  await unread.return?.();
  expect(await first).toEqual({ value: undefined, done: true });
  expect(steps).toBe(0);
  const locks = service.operations.list({ timeout: '60s' })[Symbol.asyncIterator]();
  const next = locks.next();
  await until('that it searches', () => steps === 3);
  await locks.return?.();
  expect(await next).toEqual({ value: undefined, done: true });
  await sleep(1_000);
  expect(steps).toBe(3);
});

test('calls whose names are long are found in a deadlock, too', async () => {
  const by = 'x'.repeat(5_000);
  const services = [0, 1].map(() => makeLocks(store, { deadlocksAfterMs: 100, wait: 15_000 }));
  let inside = 0;
  const calls = services.map((locks, at) =>
    locks.withLock(`${at}`, { by }, async () => {
      inside++;
      await until('both are inside', () => inside === 2);
      return locks.withLock(`${1 - at}`, { by }, () => 'done');
    }),
  );
  const ends = await Promise.allSettled(calls);
  const reasons = ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as LockNotAcquiredError).reason] : []));
  expect(reasons).toEqual(['cycle']);
});

describe.each(['guest', 'waiter'] as const)('a guest is part of a deadlock, in which the %s gives way,', (giving) => {
  test.each([
    ['the process that gave the ticket', [0, 1, 0]],
    ['a third process', [0, 1, 2]],
    ['one process, where all calls are', [0, 0, 0]],
  ])('with a call that waits for its lock in %s', async (_where, [giver = 0, guest = 0, waiter = 0]) => {
    const fleet = [0, 1, 2].map(() => makeLocks(store, { deadlocksAfterMs: 200, wait: 60_000 }));
    const startedAt = performance.now();
    const calls = {
      guest: (): Promise<unknown> | undefined =>
        fleet[giver]?.withLock('ticket', async () => {
          const tickets = makeTickets();
          await sleep(100);
          await outsideLocks(() =>
            enterTickets(tickets, () =>
              fleet[guest]?.withLock('ticket', async () => {
                await sleep(200);
                return fleet[guest]?.withLock('other', () => 'guest');
              }),
            ),
          );
        }),
      waiter: (): Promise<unknown> | undefined =>
        fleet[waiter]?.withLock('other', async () => {
          await sleep(150);
          return fleet[waiter]?.withLock('ticket', () => 'waiter');
        }),
    };
    // The call whose lock was granted last gives way.
    const other = giving === 'guest' ? 'waiter' : 'guest';
    const [stays, gaveWay] = await Promise.allSettled([calls[other](), calls[giving]()]);
    expect(stays).toMatchObject({ status: 'fulfilled' });
    expect(gaveWay).toMatchObject({ status: 'rejected', reason: { reason: 'cycle' } });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await Promise.all(fleet.map((each) => each.shutdown()));
  });
});

describe('a call that waits inside a lock for longer than a search for deadlocks takes is part of none', () => {
  const scope = new TransactionScope();
  const long = (): Promise<void> => sleep(3_000);
  let locks: LockService;

  beforeEach(() => {
    locks = makeLocks(store, { deadlocksAfterMs: 100, wait: 15_000, transaction: scope.current });
  });

  test('where a transaction inside the same call keeps the lock until its commit', async () => {
    const order: string[] = [];
    const credit = (name: string): Promise<void> =>
      scope.run(async () => {
        await locks.withLock('k', () => order.push(name));
        await long();
        order.push(`${name} commits`);
      });
    await locks.withLock('k', () => Promise.all(['one', 'two'].map(credit)));
    expect(order).toEqual(['one', 'one commits', 'two', 'two commits']);
  });

  test('where another call of its own transaction is inside', async () => {
    const order: number[] = [];
    await scope.run(async () => {
      await locks.withLock('k', () => undefined);
      await Promise.all([1, 2].map((each) => locks.withLock('k', () => long().then(() => order.push(each)))));
    });
    expect(order).toEqual([1, 2]);
  });

  describe('where it came by tickets from another application of this process', () => {
    let joinsFrom = 0;
    class Store extends MemoryLockStore {
      override join(hold: HoldRecord): Promise<boolean> {
        return performance.now() < joinsFrom
          ? Promise.reject(new LockStoreError('the store is away', hold.key, { unknown: false }))
          : super.join(hold);
      }
    }
    /** The work of the other application in a call that has the lock. */
    const inTheOther = (work: (other: LockService) => Promise<unknown>): Promise<unknown> => {
      const shared = new Store();
      const [mine, other] = [1, 2].map(() => makeLocks(shared, { deadlocksAfterMs: 100, wait: 15_000, ttl: 20_000 })) as [
        LockService,
        LockService,
      ];
      return mine.withLock('k', () => enterTickets(makeTickets(), () => work(other)));
    };

    test('and the store does not let it join for long', async () => {
      joinsFrom = performance.now() + 3_000;
      expect(await inTheOther((other) => other.withLock('k', () => 'in'))).toBe('in');
      joinsFrom = performance.now() + 3_000;
      expect(await inTheOther((other) => other.withLock(['a', 'k'], () => 'in'))).toBe('in');
    });

    test('and waits there for another call of the same ticket', async () => {
      const order: number[] = [];
      await inTheOther((other) => Promise.all([1, 2].map((each) => other.withLock('k', () => long().then(() => order.push(each))))));
      expect(order).toEqual([1, 2]);
    });
  });

  test('where it came in by a ticket, and waits neither for the holder nor for its transaction', async () => {
    let ticket!: string;
    let transaction!: Promise<unknown>;
    await new Promise<void>((isKept) => {
      transaction = scope.run(async () => {
        await locks.withLock('k', (lock) => (ticket = lock.makeTicket()));
        isKept();
        await sleep(100);
        return locks.withLock('x', () => 'after the guest');
      });
    });
    const guest = locks.withLock('k', { ticket }, () =>
      Promise.all([locks.withLock('k', long), locks.withLock('x', () => locks.withLock('k', () => 'guest'))]),
    );
    expect(await Promise.all([guest, transaction])).toEqual([[undefined, 'guest'], 'after the guest']);
  });
});

describe('the flight recorder', () => {
  const event = (changes: object): LockEvent =>
    ({ store: 'default', key: 'k', name: 'n', by: 'b', process: 'p', site: 'x', fence: 1, ...changes }) as unknown as LockEvent;

  test('tells calls apart: keys of different servers may have the same fence', () => {
    const recorder = new FlightRecorder(systemClock);
    const [one, other] = [{}, {}];
    recorder.record(event({ type: 'acquired', waitedMs: 10 }), one);
    recorder.record(event({ type: 'acquired', key: 'l', waitedMs: 20 }), other);
    recorder.record(event({ type: 'released' }), one);
    recorder.record(event({ type: 'released', key: 'l' }), other);
    expect(recorder.calls.map(({ key, waitedMs }) => [key, waitedMs])).toEqual([
      ['k', 10],
      ['l', 20],
    ]);
  });

  test('keeps a call once, also where its release fails after its loss', () => {
    const recorder = new FlightRecorder(systemClock);
    const call = {};
    recorder.record(event({ type: 'acquired', waitedMs: 0 }), call);
    recorder.record(event({ type: 'lost', reason: 'shutdown' }), call);
    recorder.record(event({ type: 'releaseFailed' }), call);
    expect(recorder.calls.map(({ outcome }) => outcome)).toEqual(['lost']);
  });

  test('keeps the calls that entered by a ticket in the process of the lock', async () => {
    const locks = makeLocks(store);
    locks.operations.record();
    await locks.withLock('k', { name: 'host' }, (lock) =>
      locks.withLock('k', { name: 'guest', ticket: lock.makeTicket(), reentry: 'never' }, () => undefined),
    );
    const { ended } = await locks.operations.survey({ recent: true });
    expect(ended.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual(['guest released', 'host released']);
  });

  test('keeps no call that skipped a busy lock, and one that was refused', async () => {
    const locks = makeLocks(store);
    locks.operations.record();
    const lock = await locks.acquire('k', { name: 'holder' });
    expect(await locks.tryAcquire('k', { name: 'try' })).toBeNull();
    expect(await locks.withLock('k', { name: 'skip', onBusy: 'skip', wait: 100 }, () => 'ran')).toBeUndefined();
    expect(await locks.withLock('k', { name: 'answer', onBusy: () => 'busy', wait: 0 }, () => 'ran')).toBe('busy');
    await expect(locks.acquire('k', { name: 'once', wait: 0 })).rejects.toMatchObject({ reason: 'busy' });
    await expect(locks.tryAcquire('k', { name: 'late', signal: AbortSignal.abort() })).rejects.toBeDefined();
    await lock.release();
    const { ended } = await locks.operations.survey({ recent: true });
    expect(ended.map(({ name, reason }) => `${name} ${reason}`)).toEqual(['answer busy', 'once busy', 'late aborted', 'holder undefined']);
  });

  test('says for how long the code of a lost call ran on, once it has ended', async () => {
    const locks = makeLocks(store);
    locks.operations.record();
    const endedNow = async (): Promise<readonly EndedCall[]> => (await locks.operations.survey({ recent: true })).ended;
    const call = locks.withLock('k', { name: 'lost', ttl: '60s' }, async ({ fence }) => {
      await sleep(2_000);
      await locks.operations.forceRelease('k', { fence });
      const [known, ...others] = await endedNow();
      expect([known, others]).toMatchObject([{ name: 'lost', heldMs: 2_000 }, []]);
      expect([known?.ranOnMs, known?.instead]).toEqual([undefined, undefined]);
      await locks.withLock('k', { name: 'next', reentry: 'never' }, () => sleep(1_000));
      await sleep(1_000);
      return known?.id;
    });
    await expect(call).rejects.toMatchObject({ reason: 'forced' });
    const [lost, next, ...others] = await endedNow();
    expect(lost).toMatchObject({ name: 'lost', outcome: 'lost', reason: 'forced', heldMs: 2_000 });
    expect(lost?.ranOnMs).toBeGreaterThanOrEqual(2_000);
    // A survey takes 300 ms.
    expect(lost?.ranOnMs).toBeLessThan(2_500);
    expect(lost?.instead).toMatch(/^.{9}$/);
    expect(lost?.instead).not.toBe(lost?.id);
    expect([next, others]).toMatchObject([{ name: 'next', outcome: 'released' }, []]);
    expect(next?.ranOnMs).toBeUndefined();
  });

  test('says for how long other calls of the process had had the grant', async () => {
    const locks = makeLocks(store);
    locks.operations.record();
    await sleep(5);
    await Promise.all(['one', 'two', 'three'].map((name) => locks.withLock('k', { name }, () => sleep(40))));
    const { ended } = await locks.operations.survey({ recent: true });
    const [one, two, three] = ended as [EndedCall, EndedCall, EndedCall];
    // Nobody waited yet when the first grant was asked for: the second one is for two calls.
    expect(ended.map(({ name, servedMs }) => [name, servedMs])).toEqual([
      ['one', undefined],
      ['two', undefined],
      ['three', 40],
    ]);
    expect([two.fence, three.fence]).not.toContain(one.fence);
    expect(three.fence).toBe((two.fence as number) + 1);
  });

  test('keeps the last thousand', () => {
    const recorder = new FlightRecorder(systemClock);
    for (let at = 0; at < 1_500; at++) {
      recorder.record(event({ type: 'refused', key: `${at}`, waitedMs: 0, reason: 'busy' }));
    }
    expect(recorder.calls).toHaveLength(1_000);
    expect(recorder.calls.at(-1)?.key).toBe('1499');
  });
});
