import { jest } from '@jest/globals';
import { LockConfigurationError, LockStoreError } from '../../../lib/core/words/errors';
import type { LockHealth } from '../../../lib/core/words/lock-health';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import type { StoreHealth } from '../../../lib/core/words/lock-health';
import type { LockService } from '../../../lib/nest/lock.service';
import type { HealthOptions } from '../../../lib/nest/lock-operations.options';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { noting } from '../../support/noting';
import { saying } from '../../support/saying';

/** Fails attempts to acquire while it is away. */
class AwayStore extends MemoryLockStore {
  isAway = false;

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    if (this.isAway) {
      throw new LockStoreError(`Lock "${hold.key}": no answer`, hold.key, { unknown: true });
    }
    return super.acquire(hold, place);
  }
}

/** Says of itself what a test wants; undefined for no answer. */
class AskedStore extends AwayStore {
  said: StoreHealth | undefined = {};
  asked = 0;

  async health(): Promise<StoreHealth> {
    this.asked++;
    if (!this.said) {
      throw new LockStoreError('no answer from 10.0.0.7', '', { unknown: true });
    }
    return this.said;
  }
}

let troubles: LockTrouble[];

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  troubles = [];
});
afterEach(() => {
  jest.useRealTimers();
});

const locksOn = (store: MemoryLockStore): LockService => makeLocks(store, { onTrouble: noting(troubles) });
const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const typesOf = (): string[] => troubles.map(({ type }) => type);

test('a store that cannot be asked is asked nothing, and the rest is what this process knows', async () => {
  const locks = locksOn(new MemoryLockStore());
  expect(await locks.operations.health()).toEqual({ status: 'up', reasons: [], reachable: true, heldHere: 0, waitingHere: 0 });
  const held = await locks.acquire('a', { ttl: 3_000 });
  await locks.acquire('b', { ttl: 60_000 });
  await locks.acquire('fixed', { ttl: 500, renew: false });
  const waiting = locks.withLock('a', () => undefined);
  await pass(100);
  expect(await locks.operations.health()).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    heldHere: 3,
    waitingHere: 1,
    leastMarginMs: 3_000 * 0.99 - 2 - 100,
  });
  await held.release();
  await waiting;
  expect(await locks.operations.health()).toMatchObject({ heldHere: 2, waitingHere: 0 });
});

test('only what is known of a health is shown, whatever a store says', async () => {
  const store = new AskedStore();
  const member = { reachable: true, host: '10.0.0.7' };
  const said = { server: 'Redis', latencyMs: 0.123_4, evicts: false, members: [member], password: 'secret' };
  store.said = said;
  expect(await locksOn(store).operations.health()).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    server: 'Redis',
    latencyMs: 0.1,
    evicts: false,
    members: [{ reachable: true }],
    heldHere: 0,
    waitingHere: 0,
  });
});

const vote = { reachable: true, voting: true };
const mute = { reachable: true, voting: false };
const gone = { reachable: false, voting: false };
const full = { reachable: true, voting: false, refuses: 'full' } as const;

test.each<[string, StoreHealth, Partial<LockHealth>]>([
  ['all of a quorum vote', { members: [vote, vote, vote], majority: 2 }, { status: 'up', reasons: [] }],
  ['a minority is away', { members: [vote, vote, gone], majority: 2 }, { status: 'degraded', reasons: ['membersAway'] }],
  ['a minority does not vote', { members: [vote, vote, mute], majority: 2 }, { status: 'degraded', reasons: ['membersAway'] }],
  [
    'fewer than a majority vote',
    { members: [vote, mute, mute], majority: 2 },
    { status: 'down', reasons: ['noMajority', 'membersAway'], reachable: true },
  ],
  [
    'a majority is away',
    { members: [vote, gone, gone], majority: 2 },
    { status: 'down', reasons: ['unreachable', 'noMajority', 'membersAway'], reachable: false },
  ],
  ['one of several databases is away', { members: [{ reachable: true }, { reachable: false }] }, { status: 'degraded', reachable: true }],
  [
    'one of several databases takes no writes',
    { members: [{ reachable: true }, { reachable: true, refuses: 'readOnly' }] },
    { status: 'degraded', reasons: ['membersAway'] },
  ],
  [
    'a majority of a quorum is full',
    { members: [vote, full, full], majority: 2 },
    { status: 'down', reasons: ['noMajority', 'membersAway'], members: [vote, full, full] },
  ],
  ['messages of turns do not arrive', { hearsTurns: false }, { status: 'degraded', reasons: ['polls'] }],
  ['messages of turns arrive', { hearsTurns: true }, { status: 'up', reasons: [] }],
  ['too few replicas confirm', { replicasConfirm: false }, { status: 'degraded', reasons: ['tooFewReplicas'] }],
  ['a clock is off', { clockSkewMs: -90_000 }, { status: 'up', reasons: [], clockSkewMs: -90_000 }],
  ['a clock is off, and replicas confirm', { clockSkewMs: -1_001, replicasConfirm: true }, { status: 'degraded', reasons: ['clockSkew'] }],
  ['a clock is a second off, and replicas confirm', { clockSkewMs: 1_000, replicasConfirm: true }, { status: 'up', reasons: [] }],
])('where %s, the status says so', async (_, said, health) => {
  const store = new AskedStore();
  store.said = said;
  expect(await locksOn(store).operations.health()).toMatchObject(health);
});

test('a store that does not answer is degraded at first, and down after five seconds', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.said = undefined;
  expect(await locks.operations.health()).toMatchObject({
    status: 'degraded',
    reasons: ['unreachable'],
    reachable: false,
    unreachableMs: 0,
  });
  await pass(4_999);
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', unreachableMs: 4_999 });
  await pass(1);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['unreachable'], unreachableMs: 5_000 });
  expect(await locks.operations.health({ downAfter: '6s' })).toMatchObject({ status: 'degraded' });
  expect(typesOf()).toEqual(['storeUnavailable']);
  store.said = {};
  expect(await locks.operations.health({ downAfter: 0 })).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    heldHere: 0,
    waitingHere: 0,
  });
  expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered']);
});

test('a store that grants nothing, and does not answer for a moment, stays down', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.said = { refuses: 'readOnly' };
  await locks.operations.health();
  await pass(5_000);
  store.said = undefined;
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['readOnly'], reachable: true });
  await pass(1_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['unreachable'], unreachableMs: 1_000 });
  await pass(60_000);
  store.said = {};
  expect(await locks.operations.health({ downAfter: 0 })).toMatchObject({ status: 'up' });
});

test('the answers of a minority of its servers are no answer of a store', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.said = undefined;
  await locks.operations.health();
  store.said = { members: [vote, gone, gone], majority: 2 };
  await pass(4_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reachable: false, unreachableMs: 4_000 });
  expect(typesOf()).toEqual(['storeUnavailable']);
  store.said = { members: [vote, vote, gone], majority: 2 };
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reachable: true });
  expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered']);
});

test('times are whole milliseconds, and tenths below ten of them', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.said = { latencyMs: 9.87, clockSkewMs: -12.34 };
  expect(await locks.operations.health()).toMatchObject({ latencyMs: 9.9, clockSkewMs: -12 });
  store.said = { latencyMs: 123.4, clockSkewMs: -0.06 };
  expect(await locks.operations.health()).toMatchObject({ latencyMs: 123, clockSkewMs: -0.1 });
});

test.each<[string, (locks: LockService, store: AskedStore) => Promise<unknown>]>([
  ['a call', (locks) => locks.withLock('k', () => undefined)],
  [
    'a check',
    (locks, store) => {
      store.said = {};
      return locks.operations.health();
    },
  ],
])('%s that was answered ends the time without an answer', async (_, answered) => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.said = undefined;
  await locks.operations.health();
  await pass(20_000);
  await answered(locks, store);
  store.said = undefined;
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: ['unreachable'], unreachableMs: 0 });
});

test('an old failure, after which nothing was asked, does not make a new one an outage', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.said = undefined;
  await locks.operations.health();
  await pass(59_999);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', unreachableMs: 59_999 });
  await pass(60_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: ['unreachable'], unreachableMs: 0 });
});

test('a store that answers and fails every attempt to acquire is degraded, and down after five seconds', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  store.isAway = true;
  const call = locks.acquire('k', { wait: 60_000 });
  await pass(2_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: ['failing'], reachable: true });
  await pass(5_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['failing'], reachable: true });
  expect(await locks.operations.health({ downAfter: '20s' })).toMatchObject({ status: 'degraded' });
  store.isAway = false;
  await pass(1_000);
  await call;
  expect(await locks.operations.health()).toMatchObject({ status: 'up', reasons: [] });
});

test.each<[string, StoreHealth]>([
  ['readOnly', { refuses: 'readOnly' }],
  ['full', { refuses: 'full' }],
  ['tooFewReplicas', { replicasConfirm: false }],
])(
  'a store that says that it grants nothing (%s) is down after five seconds without a call, and up at once after it',
  async (reason, said) => {
    const store = new AskedStore();
    const locks = locksOn(store);
    store.said = said;
    expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: [reason], reachable: true });
    await pass(4_999);
    expect(await locks.operations.health()).toMatchObject({ status: 'degraded' });
    await pass(1);
    expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: [reason], reachable: true, refusingMs: 5_000 });
    store.said = {};
    const after = await locks.operations.health();
    expect(after).toMatchObject({ status: 'up', reasons: [] });
    expect(after).not.toHaveProperty('refusingMs');
    // The time before does not count once more, and neither does that of a check long ago.
    store.said = said;
    expect(await locks.operations.health()).toMatchObject({ status: 'degraded' });
    await pass(60_000);
    expect(await locks.operations.health()).toMatchObject({ status: 'degraded' });
  },
);

test('a store that cannot be asked is down once calls have failed for as long, and up within a second of its return, also where nobody calls', async () => {
  const store = new AwayStore();
  const locks = locksOn(store);
  store.isAway = true;
  const call = locks.acquire('k', { wait: 8_000 }).catch((error: unknown) => error);
  await pass(2_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: ['unreachable'], reachable: false });
  await pass(5_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['unreachable'] });
  await pass(2_000);
  expect(await call).toBeInstanceOf(LockStoreError);
  await pass(10_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['unreachable'] });
  store.isAway = false;
  await pass(1_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'up', reasons: [] });
});

test('each reason says for how long it has been there, as far as checks know', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  expect(await locks.operations.health()).not.toHaveProperty('reasonMs');
  store.said = { hearsTurns: false };
  expect(await locks.operations.health()).toMatchObject({ reasonMs: { polls: 0 } });
  await pass(3_000);
  store.said = { hearsTurns: false, members: [vote, vote, gone], majority: 2 };
  expect((await locks.operations.health()).reasonMs).toEqual({ polls: 3_000, membersAway: 0 });
  store.said = {};
  expect(await locks.operations.health()).not.toHaveProperty('reasonMs');
});

test('a store that never answers a check takes it a little more than a second', async () => {
  const store = Object.assign(new AskedStore(), { keepsLimits: false });
  store.health = () => new Promise(() => undefined);
  let health: LockHealth | undefined;
  void locksOn(store)
    .operations.health()
    .then((found) => (health = found));
  await pass(1_200);
  expect(health).toMatchObject({ status: 'degraded', reasons: ['unreachable'] });
});

test('a store that throws, as none should, does not answer', async () => {
  const store = new AskedStore();
  store.health = () => {
    throw new TypeError('a defect');
  };
  expect(await locksOn(store).operations.health()).toMatchObject({ status: 'degraded', reachable: false });
  // It is about no key.
  expect(troubles).toEqual([expect.objectContaining({ key: '', error: expect.objectContaining({ key: '' }) as object })]);
});

test('an application that closes does not ask the store, and its closed store is no outage', async () => {
  const store = new AskedStore();
  store.said = undefined;
  const locks = locksOn(store);
  // The check is on its way as the application closes, and fails with the store.
  const begun = locks.operations.health();
  await locks.shutdown();
  expect(await begun).toMatchObject({ status: 'degraded', reasons: ['closing'], reachable: true });
  expect(store.asked).toBe(1);
  await pass(60_000);
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: ['closing'] });
  expect(store.asked).toBe(1);
  expect(troubles).toEqual([]);
});

test('checks that are made at the same time ask the store once, and calls never', async () => {
  const store = new AskedStore();
  const locks = locksOn(store);
  await Promise.all([locks.operations.health(), locks.operations.health(), locks.operations.health()]);
  expect(store.asked).toBe(1);
  await locks.withLock('k', () => pass(60_000));
  expect(store.asked).toBe(1);
  await locks.operations.health();
  expect(store.asked).toBe(2);
});

test.each<[unknown, RegExp]>([
  [{ downAfter: 'soon' }, /^LockOperations\.health: downAfter is 'soon', which is not a duration from 0 to \d+ ms\. Pass milliseconds/],
  [{ downAfter: -1 }, /^LockOperations\.health: downAfter is -1, /],
  [{ after: '5s' }, /^LockOperations\.health: there is no option 'after'\. The options are: downAfter\.$/],
  ['5s', /^LockOperations\.health: the options are a string\. Pass an object with downAfter, or nothing\.$/],
])('options %j are refused', async (options, message) => {
  const call = locksOn(new MemoryLockStore()).operations.health(options as HealthOptions);
  await expect(call).rejects.toBeInstanceOf(LockConfigurationError);
  await expect(call).rejects.toThrow(saying(message));
});
