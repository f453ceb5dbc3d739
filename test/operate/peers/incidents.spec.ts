import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { LockConfigurationError, LockLostError, LockStoreError, type LockHolder } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord } from '../../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { LOCK_CHANNEL, type EventOfLock, type LockEvent } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import type { ForceReleaseOptions, IncidentOptions } from '../../../lib/nest/lock-operations.options';
import { IncidentLog } from '../../../lib/operate/peers/incident-log';
import type { LockIncident } from '../../../lib/operate/peers/survey';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { ManualClock } from '../../support/manual-clock';
import { makeLocks } from '../../support/make-locks';
import { saying } from '../../support/saying';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Fails attempts to acquire, or releases, while it is away. */
class AwayStore extends MemoryLockStore {
  isAway = false;
  losesReleases = false;

  override async acquire(...call: Parameters<MemoryLockStore['acquire']>): Promise<AcquireReply> {
    this.#answer(this.isAway, call[0]);
    return super.acquire(...call);
  }

  override async release(hold: HoldRecord): Promise<boolean> {
    this.#answer(this.losesReleases, hold);
    return super.release(hold);
  }

  #answer(isAway: boolean, { key }: HoldRecord): void {
    if (isAway) {
      throw new LockStoreError(`Lock "${key}": no answer`, key, { unknown: true });
    }
  }
}

let store: AwayStore;
let locks: LockService;

beforeEach(() => {
  store = new AwayStore();
  locks = makeLocks(store, { deadlocksAfterMs: 1_000 });
});

const told = async (options?: IncidentOptions): Promise<[string, string, unknown][]> =>
  (await locks.operations.incidents(options)).map(({ type, key, reason }) => [type, key, reason]);

test('a loss and the release by force that caused it are told, the last one first, with who, when and for how long', async () => {
  const lock = await locks.acquire('balance:42', { by: 'TransferService.run', name: 'balance:<id>', ttl: '60s' });
  await sleep(3_000);
  const at = Date.now();
  await locks.operations.forceRelease('balance:42', { fence: lock.fence, by: 'ada', reason: 'It hangs.' });
  await sleep(2_000);
  const forcedBy = { by: 'ada', reason: 'It hangs.', process: expect.stringMatching(/ \(pid \d+\)$/) as string };
  const [forced, lost] = (await locks.operations.incidents()).toSorted((one, other) => one.type.localeCompare(other.type)) as [
    LockIncident,
    LockIncident,
  ];
  expect(lost).toMatchObject({
    type: 'lost',
    key: 'balance:42',
    name: 'balance:<id>',
    site: 'TransferService.run',
    reason: 'forced',
    count: 1,
  });
  expect(lost).toMatchObject({ fence: lock.fence, lastedMs: 3_000, process: (await locks.operations.processes())[0]?.id });
  expect(lost.at.getTime()).toBe(at);
  expect([forced.forcedBy, lost.forcedBy]).toEqual([forcedBy, forcedBy]);
  expect(forced).toMatchObject({ type: 'forced', key: 'balance:42', fence: lock.fence, site: 'LockOperations.forceRelease' });
  expect(await told({ since: 1_000 })).toEqual([]);
});

test('a release by force is an event and in the log, with who did it, from where and why', async () => {
  const events: LockEvent[] = [];
  const listen = (event: unknown): number => events.push(event as LockEvent);
  subscribe(LOCK_CHANNEL, listen);
  const troubles: LockTrouble[] = [];
  const operator = makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
  const { fence } = await locks.acquire('k', { by: 'Holder.run' });
  await operator.operations.forceRelease('k', { fence, by: 'ada', reason: 'It hangs.' });
  await sleep(1_000);
  unsubscribe(LOCK_CHANNEL, listen);
  const forcedBy = { by: 'ada', reason: 'It hangs.', process: expect.stringMatching(/ \(pid \d+\)$/) as string };
  const forced = expect.objectContaining({ type: 'forced', key: 'k', fence, site: 'LockOperations.forceRelease', forcedBy }) as LockEvent;
  expect(troubles).toEqual([forced]);
  expect(events.filter(({ type }) => type === 'forced')).toEqual([forced]);
});

test('the log of a holder says which other process released its lock by force, and why', async () => {
  const troubles: LockTrouble[] = [];
  const holder = makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
  const { fence } = await holder.acquire('k', { by: 'Holder.run' });
  await store.forceRelease('k', fence);
  const forcedBy = { by: 'ada', reason: 'It hangs.', process: 'worker (pid 9)' };
  const notice = { kind: 'forced', from: 'worker:9#1', key: 'k', fence, ...forcedBy };
  // Twice, of another fence, and in another shape.
  for (const message of [notice, notice, { ...notice, fence: fence + 16 }, { ...notice, by: 7 }]) {
    await store.send(JSON.stringify(message));
  }
  await sleep(1_000);
  expect(troubles).toEqual([
    expect.objectContaining({ type: 'lost', key: 'k', fence, site: 'Holder.run', reason: 'forced' }),
    expect.objectContaining({ type: 'forced', key: 'k', fence, site: 'Holder.run', forcedBy }),
  ]);
  expect(await holder.operations.incidents()).toMatchObject([{ type: 'lost', forcedBy }]);
});

test('a release by force whose reply is lost is explained where the lock was lost, and is no event', async () => {
  const forceRelease = store.forceRelease.bind(store);
  store.forceRelease = async (key, fence) => {
    await forceRelease(key, fence);
    throw new LockStoreError('no reply', key, { unknown: true });
  };
  const { fence } = await locks.acquire('k');
  await expect(locks.operations.forceRelease('k', { fence, by: 'ada' })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  await sleep(1_000);
  expect(await locks.operations.incidents()).toMatchObject([{ type: 'lost', reason: 'forced', forcedBy: { by: 'ada' } }]);
});

test('a skipped lock is told as skipped, and a refusal for another reason is not', async () => {
  const refusals: unknown[] = [];
  const listen = (event: unknown): void => {
    const { type, reason, skipped } = event as Partial<Record<'type' | 'reason' | 'skipped', unknown>>;
    if (type === 'refused') {
      refusals.push([reason, skipped]);
    }
  };
  subscribe(LOCK_CHANNEL, listen);
  const lock = await locks.acquire('k');
  expect(await locks.tryAcquire('k')).toBeNull();
  expect(await locks.withLock('k', { onBusy: 'skip' }, () => 'ran')).toBeUndefined();
  await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ reason: 'busy' });
  await lock.release();
  await locks.shutdown();
  await expect(locks.tryAcquire('k')).rejects.toMatchObject({ reason: 'shutdown' });
  unsubscribe(LOCK_CHANNEL, listen);
  expect(refusals).toEqual([
    ['busy', true],
    ['busy', true],
    ['busy', false],
    ['shutdown', false],
  ]);
});

test.each<[object, RegExp]>([
  [{ fence: 1, by: 5 }, /^LockOperations\.forceRelease: by is 5\. Pass a text of 200 characters at most\.$/],
  [{ fence: 1, reason: 'x'.repeat(201) }, /^LockOperations\.forceRelease: reason is a string of 201 characters\. Pass a text of 200/],
  [{ fence: 1, why: '' }, /^LockOperations\.forceRelease: there is no option 'why'\. The options are: fence, by, reason\.$/],
])('a forced release with %j is refused', async (options, message) => {
  await expect(locks.operations.forceRelease('k', options as ForceReleaseOptions)).rejects.toThrow(saying(message));
});

test('calls that gave up waiting, or were refused by the store, are told, and those that meant to be are not', async () => {
  const lock = await locks.acquire('k', { by: 'Holder.run' });
  await expect(locks.acquire('k', { wait: 2_000, name: 'n' })).rejects.toMatchObject({ reason: 'busy' });
  await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ reason: 'busy' });
  expect(await locks.withLock('k', { wait: 1_000, onBusy: 'skip' }, () => 'ran')).toBeUndefined();
  const aborted = new AbortController();
  void sleep(100).then(() => aborted.abort());
  await expect(locks.acquire('k', { signal: aborted.signal })).rejects.toMatchObject({ reason: 'aborted' });
  const [gaveUp] = await locks.operations.incidents();
  expect(await told()).toEqual([['refused', 'k', 'busy']]);
  expect(gaveUp).toMatchObject({ lastedMs: 2_000, count: 1, holder: expect.stringContaining('Holder.run') });
  await lock.release();
  store.isAway = true;
  await expect(locks.acquire('l', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  expect(await told()).toEqual(expect.arrayContaining([['refused', 'l', 'store']]));
});

test('an outage is told with its end', async () => {
  store.isAway = true;
  const call = locks.acquire('k', { wait: '1m' });
  await sleep(5_000);
  store.isAway = false;
  await call;
  const [answered, unavailable] = await locks.operations.incidents();
  expect(unavailable).toMatchObject({ type: 'storeUnavailable', reason: 'LOCK_STORE', error: expect.any(String) as string });
  // The key has a field of its own, which the page may hide.
  expect(unavailable?.error).not.toMatch(/^$|"k"/);
  expect(answered).toMatchObject({ type: 'storeAnswered' });
  expect(answered?.lastedMs).toBeGreaterThanOrEqual(4_000);
});

test('outages that follow each other within a minute are one incident, and their ends another', async () => {
  for (let outage = 0; outage < 5; outage++) {
    store.isAway = true;
    await locks.acquire('k', { wait: 0 }).catch(() => undefined);
    store.isAway = false;
    await (await locks.acquire('k')).release();
    await sleep(2_000);
  }
  const incidents = (await locks.operations.incidents()).filter(({ type }) => type.startsWith('store'));
  expect(incidents.map(({ type, count }) => [type, count]).toSorted()).toEqual([
    ['storeAnswered', 5],
    ['storeUnavailable', 5],
  ]);
});

test('a release that failed is told', async () => {
  const lock = await locks.acquire('k', { ttl: 2_000 });
  store.losesReleases = true;
  await lock.release();
  await sleep(5_000);
  expect(await told()).toEqual(expect.arrayContaining([['releaseFailed', 'k', 'LOCK_STORE']]));
});

test('deadlocks are told by the process that gave way: of one process, and of several', async () => {
  const other = makeLocks(store, { deadlocksAfterMs: 1_000 });
  const both = async (one: LockService, two: LockService, keys: readonly [string, string]): Promise<PromiseSettledResult<void>[]> =>
    Promise.allSettled([
      one.withLock(keys[0], { by: 'One.run', wait: '1m' }, async () => {
        await sleep(100);
        await one.withLock(keys[1], { by: 'One.inner', wait: '1m' }, () => undefined);
      }),
      two.withLock(keys[1], { by: 'Two.run', wait: '1m' }, async () => {
        await sleep(100);
        await two.withLock(keys[0], { by: 'Two.inner', wait: '1m' }, () => undefined);
      }),
    ]);
  const [near, far] = [await both(locks, locks, ['a', 'b']), await both(locks, other, ['c', 'd'])];
  // Whose call gives way may repeat it at once, wherever the others are.
  for (const outcomes of [near, far]) {
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { reason: 'cycle', retryAfterMs: 0 } });
  }
  const found = (await locks.operations.incidents()).filter(({ type }) => type === 'cycle');
  expect(found.map(({ scope }) => scope)).toEqual(['fleet', 'process']);
  for (const { calls = [], key, site } of found) {
    expect(calls).toHaveLength(2);
    expect(calls.filter((call) => call.waitsFor === key)).toHaveLength(1);
    expect(site).toMatch(/^(One|Two)\.inner$/);
  }
});

test.each<[unknown, RegExp]>([
  [
    { since: 'yesterday' },
    /^LockOperations\.incidents: since is 'yesterday', which is not a duration from 1 to \d+ ms\. Pass milliseconds/,
  ],
  [{ from: '1h' }, /^LockOperations\.incidents: there is no option 'from'\. The options are: since\.$/],
])('options %j are refused', async (options, message) => {
  const call = locks.operations.incidents(options as IncidentOptions);
  await expect(call).rejects.toBeInstanceOf(LockConfigurationError);
  await expect(call).rejects.toThrow(saying(message));
});

describe('the log of a process', () => {
  const about: EventOfLock = { store: 'default', key: 'k', name: 'n', by: 'b', process: 'p', site: 's' };
  const error = new LockLostError('gone', 'k', 'expired');
  const lost = (fence: number): LockEvent => ({ ...about, type: 'lost', fence, heldMs: 1, reason: 'expired', error, kept: false });
  const refused = (of: Partial<EventOfLock>, waitedMs = 0, holder?: LockHolder): LockEvent => ({
    ...about,
    ...of,
    type: 'refused',
    waitedMs,
    inside: false,
    reason: 'store',
    skipped: false,
    holder,
  });
  const DAY_MS = 24 * 3_600_000;
  let clock: ManualClock;
  let log: IncidentLog;
  let explained: string[];

  beforeEach(() => {
    clock = new ManualClock();
    explained = [];
    log = new IncidentLog(clock, (event, { by }) => explained.push(`${event.key} ${event.fence} by ${by}`));
  });

  test('counts refusals of one name for one reason within a minute as one, with the last key and the longest wait', () => {
    for (const [key, waitedMs] of [
      ['a', 5],
      ['b', 70],
      ['c', 30],
    ] as const) {
      log.record(refused({ key }, waitedMs));
      clock.now += 59_000;
    }
    log.record(refused({ name: 'other' }));
    clock.now += 2_000;
    log.record(refused({ key: 'd' }));
    expect(log.lately(DAY_MS)).toMatchObject([
      { key: 'c', count: 3, lastedMs: 70, agoMs: 61_000 },
      { name: 'other', count: 1 },
      { key: 'd', count: 1, agoMs: 0 },
    ]);
  });

  test('says of several refusals who held the last key, and which call was refused there', () => {
    log.record(refused({ key: 'k:1', site: 'One.run', description: 'request=1' }, 5, { by: 'AliceJob.run', heldMs: 9 }));
    log.record(refused({ key: 'k:2', site: 'Two.run', description: undefined }, 5, { by: 'BobJob.run', heldMs: 9 }));
    const last = { key: 'k:2', site: 'Two.run', description: undefined, holder: 'BobJob.run', count: 2 };
    expect(log.lately(DAY_MS)).toMatchObject([last]);
    log.record(refused({ key: 'k:3' }));
    expect(log.lately(DAY_MS)).toMatchObject([{ key: 'k:3', holder: undefined, count: 3 }]);
  });

  test.each(['before', 'after'])('knows who released a lock by force that was lost, %s the loss', (when) => {
    const notice = { key: 'k', fence: 7, by: 'ada', reason: 'It hangs.', process: 'api (pid 3)' };
    const loss = { ...lost(9), reason: 'forced' } as LockEvent;
    for (const step of when === 'before'
      ? [() => log.heard(notice), () => log.record(loss)]
      : [() => log.record(loss), () => log.heard(notice)]) {
      step();
      clock.now += 59_000;
    }
    const { by, reason, process } = notice;
    expect(log.lately(DAY_MS)).toMatchObject([{ type: 'lost', fence: 9, forcedBy: { by, reason, process } }]);
    expect(explained).toEqual(['k 9 by ada']);
    // Twice, of another grant, of another key, and of a loss of another kind.
    log.heard(notice);
    log.record({ ...lost(7 + 16), reason: 'forced' } as LockEvent);
    log.record({ ...lost(8), key: 'other', reason: 'forced' } as LockEvent);
    log.record(lost(8));
    expect(explained).toHaveLength(1);
  });

  test('has five hundred at most, and drops refusals before it drops a loss', () => {
    log.record(lost(1));
    for (let at = 0; at < 1_000; at++) {
      log.record(refused({ name: `n${at}` }));
    }
    const kept = log.lately(DAY_MS);
    expect(kept).toHaveLength(500);
    expect(kept[0]).toMatchObject({ type: 'lost', fence: 1 });
    expect(kept.at(-1)).toMatchObject({ name: 'n999' });
    // A refusal that was dropped begins anew.
    log.record(refused({ name: 'n0' }));
    expect(log.lately(DAY_MS).at(-1)).toMatchObject({ name: 'n0', count: 1 });
    for (let at = 2; at < 602; at++) {
      log.record(lost(at));
    }
    expect(log.lately(DAY_MS).map(({ fence }) => fence)).toEqual(Array.from({ length: 500 }, (_, at) => at + 102));
  });

  test('tells nothing that is older than a day, or than what is asked for', () => {
    log.record(lost(1));
    clock.now += DAY_MS - 1;
    log.record(lost(2));
    expect(log.lately(Infinity)).toHaveLength(2);
    expect(log.lately(1_000)).toMatchObject([{ fence: 2 }]);
    clock.now += 2;
    expect(log.lately(Infinity)).toMatchObject([{ fence: 2 }]);
  });
});
