import { jest } from '@jest/globals';
import { LockConfigurationError, LockStoreError, type LockError } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import type { LockHealth, StoreHealth } from '../../../lib/core/words/lock-health';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { noting } from '../../support/noting';

/** Answers every check, and refuses attempts to acquire with what a test says. */
class RefusingStore extends MemoryLockStore {
  refuses: ((key: string) => Error | undefined) | undefined;
  /** The key whose grants are not answered, and how many were not. */
  loses: string | undefined;
  lost = 0;
  said: StoreHealth = {};
  /** Whether checks get no answer. */
  isSilent = false;
  readonly holds: HoldRecord[] = [];

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.holds.push(hold);
    const refusal = this.refuses?.(hold.key);
    if (refusal) {
      throw refusal;
    }
    const granted = await super.acquire(hold, place);
    if (hold.key === this.loses) {
      this.lost++;
      throw noAnswer(hold.key);
    }
    return granted;
  }

  override release(hold: HoldRecord): Promise<boolean> {
    this.holds.push(hold);
    return super.release(hold);
  }

  async health(): Promise<StoreHealth> {
    if (this.isSilent) {
      throw noAnswer('');
    }
    return this.said;
  }
}

const reply = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });
const noRights = (key: string): LockError =>
  new LockConfigurationError(`Lock "${key}": refused. Grant the rights.`, key, { cause: reply('NOPERM no rights'), ofStore: true });
const wrongType = (key: string): LockError => new LockConfigurationError(`Lock "${key}": refused`, key, { cause: reply('WRONGTYPE') });
const failing =
  (message: string) =>
  (key: string): LockError =>
    new LockStoreError(`Lock "${key}": ${message}`, key, { cause: reply(message), unknown: false });
const noAnswer = (key: string): LockError =>
  new LockStoreError(`Lock "${key}": no answer`, key, { cause: new Error('gone'), unknown: true });

let store: RefusingStore;
let locks: LockService;
let troubles: LockTrouble[];

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  store = new RefusingStore();
  troubles = [];
  locks = makeLocks(store, { onTrouble: noting(troubles) });
});
afterEach(async () => {
  store.refuses = undefined;
  await locks.shutdown();
  jest.useRealTimers();
});

const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const call = (key = 'k'): Promise<unknown> => locks.withLock(key, { wait: 0 }, () => 'in').catch((error: unknown) => error);
const typesOf = (): string[] => troubles.map(({ type }) => type);
const unavailable = (): string[] => troubles.flatMap((trouble) => (trouble.type === 'storeUnavailable' ? trouble.error.detail : []));

describe('a store that refuses every call with what no retry mends', () => {
  test('is down, with one line that says what is missing, also where only one call is made', async () => {
    store.refuses = noRights;
    expect(await call()).toBeInstanceOf(LockConfigurationError);
    await pass(2_500);
    expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reasons: ['failing'], reachable: true, failure: 'NOPERM' });
    await pass(5_000);
    expect(await locks.operations.health()).toMatchObject({ status: 'down', reasons: ['failing'] });
    expect(unavailable()).toEqual(['Lock "k": refused. Grant the rights.']);
  });

  test('is up within a second after the rights are given back, whoever calls', async () => {
    store.refuses = noRights;
    await call();
    await pass(10_000);
    store.refuses = undefined;
    await pass(1_000);
    const health: LockHealth = await locks.operations.health();
    expect(health).toMatchObject({ status: 'up', reasons: [] });
    expect(health).not.toHaveProperty('failure');
    expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered']);
    expect(troubles[1]).toMatchObject({ awayMs: 11_000 });
  });

  test('is tried with records that keep the promises of the contract', async () => {
    store.refuses = (key) => (key === 'k' ? noRights(key) : undefined);
    store.loses = 'nestjs-distributed-lock:health';
    await call();
    await pass(3_000);
    const tried = store.holds.filter(({ key }) => key === 'nestjs-distributed-lock:health');
    expect(tried.filter(({ unanswered }) => unanswered).length).toBeGreaterThan(0);
    for (const hold of tried) {
      expect(hold.owner).toMatch(/^[\w-]{22}$/);
      expect(Object.isFrozen(hold)).toBe(true);
    }
  });

  test('tells each call so at once that would wait, also where it has refused for long', async () => {
    store.refuses = noRights;
    await call();
    await pass(3_000);
    const calls = ['a', 'b', 'c'].map((key) => locks.withLock(key, { wait: 60_000 }, () => 1).catch((error: unknown) => error));
    const told = await Promise.race([Promise.all(calls), pass(100).then(() => 'waits')]);
    expect(told).toEqual(calls.map(() => expect.objectContaining({ code: 'LOCK_CONFIGURATION' }) as unknown));
  });

  test("fails calls with onUnavailable: 'throw' at once, which say so", async () => {
    store.refuses = noRights;
    await call();
    await pass(3_000);
    const eager = (): Promise<unknown> => locks.withLock('b', { onUnavailable: 'throw' }, () => 1).catch((error: unknown) => error);
    await eager();
    expect(await eager()).toMatchObject({
      code: 'LOCK_STORE',
      detail: expect.stringContaining('has granted nothing (NOPERM) for 3000 ms'),
    });
  });

  test('keeps no lock of an attempt that nobody called, granted without an answer', async () => {
    store.loses = 'nestjs-distributed-lock:health';
    store.refuses = (key) => (key === 'k' ? noRights(key) : undefined);
    await call();
    await pass(1_000);
    expect(store.lost).toBe(1);
    expect(await store.inspect('nestjs-distributed-lock:health')).toBeNull();
  });

  test('counts as well where it rejects with an error that is none of a lock', async () => {
    store.refuses = () => new TypeError('a defect');
    expect(await call()).toBeInstanceOf(TypeError);
    await pass(6_000);
    expect(await locks.operations.health()).toMatchObject({ status: 'down' });
    expect(typesOf()).toEqual(['storeUnavailable']);
  });
});

test.each([
  ['one key has a wrong type', async () => void (await call('bad'))],
  [
    'a call asks for what its store does not grant',
    async () => void (await locks.withLock('k', { ticket: 'none' as never }, () => 1).catch(() => 0)),
  ],
])('where %s, the store is up', async (_, refused) => {
  store.refuses = (key) => (key === 'bad' ? wrongType(key) : undefined);
  for (let times = 0; times < 10; times++) {
    await refused();
    await pass(1_000);
  }
  expect(await locks.operations.health()).toMatchObject({ status: 'up', reasons: [] });
  expect(troubles).toEqual([]);
});

test('a store that refuses is not unreachable while its client connects anew, and is after a second', async () => {
  store.said = { refuses: 'readOnly' };
  store.refuses = failing('READONLY');
  await call();
  await pass(1_000);
  expect(await locks.operations.health()).toMatchObject({ reasons: ['readOnly'], reachable: true });
  store.isSilent = true;
  expect(await locks.operations.health()).toMatchObject({ reasons: ['readOnly'], reachable: true });
  // An attempt is answered, with a refusal.
  await pass(900);
  await call();
  expect(await locks.operations.health()).toMatchObject({ reasons: ['readOnly'], reachable: true });
  store.refuses = noAnswer;
  await call();
  await pass(1_000);
  expect(await locks.operations.health()).toMatchObject({ reasons: ['unreachable'], reachable: false });
});

test('an outage lasts until the store grants again, and not until the next call', async () => {
  store.refuses = noAnswer;
  await call();
  await pass(4_000);
  store.refuses = undefined;
  await pass(60_000);
  expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered']);
  expect((troubles[1] as LockTrouble & { type: 'storeAnswered' }).awayMs).toBe(5_000);
});

test('what tries the store leaves nothing behind, and stops with the outage and with the application', async () => {
  store.refuses = noAnswer;
  await call();
  store.refuses = undefined;
  await pass(1_000);
  expect(await store.inspect('nestjs-distributed-lock:health')).toBeNull();
  expect(jest.getTimerCount()).toBe(0);
  store.refuses = noAnswer;
  await call();
  expect(jest.getTimerCount()).toBe(1);
  await locks.shutdown();
  expect(jest.getTimerCount()).toBe(0);
});

test('a line is written for each reason of an outage, once', async () => {
  const waiting = locks.withLock('k', { wait: 60_000 }, () => 'in');
  await waiting;
  store.refuses = noAnswer;
  const calls = locks.withLock('k', { wait: 20_000 }, () => 'in').catch(() => 'failed');
  await pass(3_000);
  store.refuses = failing('WRONGPASS invalid');
  await pass(3_000);
  store.refuses = noAnswer;
  await pass(3_000);
  store.refuses = failing('WRONGPASS invalid');
  await pass(20_000);
  await calls;
  expect(unavailable()).toEqual(['Lock "k": no answer', 'Lock "k": WRONGPASS invalid']);
  expect(typesOf()).toEqual(['storeUnavailable', 'storeUnavailable']);
});

test('a store that fails every few seconds has two lines a minute, the health is true all the time, and no outage is untold', async () => {
  const full = failing('OOM command not allowed');
  for (let at = 0; at < 36; at++) {
    store.refuses = full;
    await call();
    await pass(2_500);
    expect(await locks.operations.health({ downAfter: 0 })).toMatchObject({ status: 'down', failure: 'OOM' });
    store.refuses = undefined;
    await call();
    expect(await locks.operations.health({ downAfter: 0 })).toMatchObject({ status: 'up' });
    await pass(2_500);
  }
  // Three minutes.
  expect(typesOf()).toEqual([
    'storeUnavailable',
    'storeAnswered',
    'storeUnavailable',
    'storeAnswered',
    'storeUnavailable',
    'storeAnswered',
  ]);
  expect(troubles.filter(({ type }) => type === 'storeUnavailable').map((trouble) => trouble)).toEqual([
    expect.objectContaining({ untold: 0 }),
    expect.objectContaining({ untold: 11 }),
    expect.objectContaining({ untold: 11 }),
  ]);
});

test('an outage soon after another one has its line once a minute has passed', async () => {
  store.refuses = noAnswer;
  await call();
  store.refuses = undefined;
  await pass(1_000);
  store.refuses = noAnswer;
  await call();
  await pass(58_000);
  expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered']);
  await pass(2_000);
  expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered', 'storeUnavailable']);
});

test.each<[string, StoreHealth, string]>([
  ['its memory is full', { refuses: 'full' }, 'full'],
  ['it is read-only', { refuses: 'readOnly' }, 'readOnly'],
  ['too few replicas confirm', { replicasConfirm: false }, 'tooFewReplicas'],
  [
    'too few of its servers vote',
    {
      members: [
        { reachable: true, voting: true },
        { reachable: true, voting: false },
        { reachable: true, voting: false },
      ],
      majority: 2,
    },
    'noMajority',
  ],
])('where a store fails all calls since %s, that is the reason', async (_, said, reason) => {
  store.refuses = failing('ERR');
  store.said = said;
  await call();
  await pass(1_500);
  await call();
  const { reasons } = await locks.operations.health();
  expect(reasons[0]).toBe(reason);
  expect(reasons).not.toContain('failing');
});
