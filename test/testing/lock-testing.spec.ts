import { describe, expect, test } from '@jest/globals';
import { Inject, Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { currentLock, DistributedLock, InjectLocks, LockModule, LockService } from 'nestjs-distributed-lock';
import { LockTesting, type LossToTest } from 'nestjs-distributed-lock/testing';
import { until } from '../support/until';

@Injectable()
class Ledger {
  @DistributedLock('entry:<entryId>')
  async write(entryId: string): Promise<string> {
    return entryId;
  }
}

@Injectable()
class Transfers {
  constructor(
    @Inject(Ledger) private readonly ledger: Ledger,
    @InjectLocks('reports') private readonly reports: LockService,
  ) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string): Promise<string> {
    return this.ledger.write(customerId);
  }

  @DistributedLock({ key: () => ['balance:b', 'balance:a'] })
  async transfer(): Promise<void> {
    await this.credit('a');
    await this.reports.withLock('report', { by: 'Transfers.report' }, () => 'written');
  }

  @DistributedLock('balance:<customerId>')
  async untilLost(customerId: string, entered: () => void): Promise<unknown> {
    const signal = currentLock()?.signal as AbortSignal;
    entered();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return signal.reason;
  }
}

async function boot(controller = new LockTesting()): Promise<TestingModule> {
  return Test.createTestingModule({
    imports: [LockModule.forTesting({ storeNames: ['reports'], controller })],
    providers: [Ledger, Transfers],
  })
    .setLogger({ log: () => undefined, warn: () => undefined, error: () => undefined })
    .compile();
}

test('the controller is found in the application, and one serves one application', async () => {
  const control = new LockTesting();
  const app = await boot(control);
  expect(app.get(LockTesting)).toBe(control);
  expect(() => LockModule.forTesting({ controller: control })).toThrow(/is in use by another LockModule\.forTesting\(\)/);
  await app.close();
});

describe('locksTaken()', () => {
  test('says what was locked in which order, inside what, by whom, and in which order it was released', async () => {
    const app = await boot();
    await app.get(Transfers).transfer();
    const taken = app.get(LockTesting).locksTaken();
    expect(taken.map(({ key, how, inside, site, store, endedAs }) => [key, how, inside, site, store, endedAs])).toEqual([
      ['balance:a', 'acquired', [], 'Transfers.transfer', 'default', expect.any(Number)],
      ['balance:b', 'acquired', [], 'Transfers.transfer', 'default', expect.any(Number)],
      ['balance:a', 'reentered', ['balance:a', 'balance:b'], 'Transfers.credit', 'default', undefined],
      ['entry:a', 'acquired', ['balance:a', 'balance:b'], 'Ledger.write', 'default', 1],
      ['report', 'acquired', ['balance:a', 'balance:b'], 'Transfers.report', 'reports', 2],
    ]);
    expect(taken.map(({ ended }) => ended)).toEqual(['released', 'released', undefined, 'released', 'released']);
    expect(taken.slice(0, 2).map(({ endedAs }) => endedAs)).toEqual(expect.arrayContaining([3, 4]));
    expect(taken[3]?.fence).toBeGreaterThan(0);
    app.get(LockTesting).forgetTaken();
    expect(app.get(LockTesting).locksTaken()).toEqual([]);
    await app.close();
  });

  test('tells a join by a ticket, and each call that one lease serves', async () => {
    const app = await boot();
    const locks = app.get(LockService);
    await locks.withLock('k', { by: 'holder' }, (lock) =>
      locks.withLock('k', { by: 'joiner', ticket: lock.makeTicket(), reentry: 'never' }, () => 'in'),
    );
    const taken = app.get(LockTesting).locksTaken();
    expect(taken.map(({ how, site, ended, endedAs }) => [how, site, ended, endedAs])).toEqual([
      ['acquired', 'holder', 'released', 2],
      ['joined', 'joiner', 'released', 1],
    ]);
    app.get(LockTesting).forgetTaken();
    await Promise.all(['1', '2', '3'].map((by) => locks.withLock('k', { by }, async () => undefined)));
    expect(app.get(LockTesting).locksTaken()).toMatchObject([
      { site: '1', endedAs: 1 },
      { site: '2', endedAs: 2 },
      { site: '3', endedAs: 3 },
    ]);
    await app.close();
  });

  test('tells a lock that was lost, and one whose release was not answered', async () => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    await expect(locks.withLock('lost', () => control.lose('lost'))).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await locks.withLock('unreleased', () => control.storeAway());
    control.storeBack();
    expect(control.locksTaken()).toMatchObject([
      { key: 'lost', ended: 'lost' },
      { key: 'unreleased', ended: 'unreleased' },
    ]);
    await app.close();
  });
});

describe('lose()', () => {
  test.each<LossToTest>(['expired', 'forced', 'maxHold', 'shutdown'])(
    'makes the code lose its lock as %s, and frees it',
    async (reason) => {
      const app = await boot();
      let call: Promise<unknown> | undefined;
      await new Promise<void>((entered) => {
        call = app.get(Transfers).untilLost('42', entered);
      });
      await app.get(LockTesting).lose('balance:42', reason);
      const elsewhere = await app.get(LockTesting).holdElsewhere('balance:42');
      await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason, key: 'balance:42' });
      await elsewhere.release();
      await app.close();
    },
  );

  test('leaves a later release by force what it is', async () => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    const loss = locks.withLock('k', () => control.lose('k', 'expired'));
    const detail = expect.stringContaining('its lease ended before the code did. Check lock.signal');
    await expect(loss).rejects.toMatchObject({ reason: 'expired', detail });
    await expect(locks.withLock('k', (lock) => locks.operations.forceRelease('k', { fence: lock.fence }))).rejects.toMatchObject({
      reason: 'forced',
    });
    await app.close();
  });
});

describe('holdElsewhere()', () => {
  test('keeps the code out until it is released, as another process would', async () => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    {
      await using elsewhere = await control.holdElsewhere('k');
      expect(elsewhere).toBeDefined();
      expect(await locks.tryAcquire('k')).toBeNull();
      expect(await locks.operations.inspect('k')).toMatchObject({ by: 'elsewhere (pid 1) LockTesting.holdElsewhere' });
      await expect(control.holdElsewhere('k')).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    }
    expect(await locks.withLock('k', { wait: 0 }, () => 'in')).toBe('in');
    expect(control.locksTaken()).toHaveLength(1);
    await app.close();
  });

  test('and lose() refuse a placeholder, which no key has', async () => {
    const app = await boot();
    const control = app.get(LockTesting);
    const refusal = { code: 'LOCK_KEY', detail: expect.stringContaining('has <id>, which is a placeholder') };
    await expect(control.holdElsewhere('balance:<id>')).rejects.toMatchObject(refusal);
    await expect(control.lose('balance:<id>')).rejects.toMatchObject(refusal);
    await app.close();
  });

  test('reads beside readers, and keeps writers out', async () => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    const elsewhere = await control.holdElsewhere('k', { mode: 'read' });
    expect(await locks.withLock('k', { mode: 'read', wait: 0 }, () => 'in')).toBe('in');
    expect(await locks.tryAcquire('k')).toBeNull();
    await elsewhere.release();
    expect(await locks.withLock('k', { wait: 0 }, () => 'in')).toBe('in');
    await app.close();
  });

  test('takes permits, of which the smallest count rules, until they are given back or their time is over', async () => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    const elsewhere = await control.holdElsewhere('k', { permits: 2 });
    await control.holdElsewhere('k', { permits: 2, ttl: '10m' });
    expect(await locks.tryAcquirePermit('k', 2)).toBeNull();
    await elsewhere.release();
    await locks.withPermit('k', 2, { wait: 0 }, () => undefined);
    await control.lose('k');
    await using full = await control.holdElsewhere('k', { permits: 1 });
    expect(full).toBeDefined();
    await expect(locks.withPermit('k', 50, { wait: 0 }, () => 'in')).rejects.toMatchObject({ status: 429, permits: 50 });
    await app.close();
  });

  test('holds in the store that it names alone', async () => {
    const app = await boot();
    const locks = app.get(LockService);
    await app.get(LockTesting).holdElsewhere('k', { store: 'reports' });
    expect(await locks.withLock('k', { wait: 0 }, () => 'in')).toBe('in');
    await app.close();
  });
});

test('a store that is away fails the calls of its locks alone, and health says that it is down', async () => {
  const app = await boot();
  const [control, locks] = [app.get(LockTesting), app.get(LockService)];
  control.storeAway({ store: 'reports' });
  expect(await locks.withLock('k', { wait: 0 }, () => 'in')).toBe('in');
  control.storeAway();
  await expect(locks.withLock('k', { wait: 0 }, () => 'in')).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  expect(await locks.operations.health({ downAfter: 0 })).toMatchObject({ status: 'down' });
  control.storeBack();
  expect(await locks.withLock('k', { wait: 0 }, () => 'in')).toBe('in');
  expect(await locks.operations.health({ downAfter: 0 })).toMatchObject({ status: 'up' });
  await app.close();
});

describe('a grant that comes later than a command may take', () => {
  const unanswered = {
    code: 'LOCK_STORE',
    unknown: true,
    detail: expect.stringContaining('since the test called delayGrants()') as unknown,
  };

  test.each([0, 300])('fails a call with the wait %d, and is released', async (wait) => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    control.delayGrants('1h');
    await expect(locks.withLock('k', { wait, ttl: 400 }, () => 'ran')).rejects.toMatchObject(unanswered);
    await until('the lock is free', async () => (await locks.operations.inspect('k')) === null);
    control.delayGrants(0);
    expect(await locks.withLock('k', { wait: 0 }, () => 'in')).toBe('in');
    await app.close();
  });

  test('fails a call that joins, and one that gets the lock of the call before', async () => {
    const app = await boot();
    const [control, locks] = [app.get(LockTesting), app.get(LockService)];
    let behind: Promise<unknown> | undefined;
    await locks.withLock('k', { ttl: 400 }, async (lock) => {
      control.delayGrants('1h');
      const joining = { ticket: lock.makeTicket(), reentry: 'never', wait: 0, ttl: 400 } as const;
      await expect(locks.withLock('k', joining, () => 'ran')).rejects.toMatchObject(unanswered);
      behind = locks.withLock('k', { reentry: 'never', wait: 3_000, ttl: 300 }, () => 'ran');
      behind.catch(() => undefined);
    });
    await expect(behind).rejects.toMatchObject(unanswered);
    await until('the lock is free', async () => (await locks.operations.inspect('k')) === null);
    await app.close();
  });
});

describe('what cannot be meant is refused with the next step', () => {
  test.each<[string, (control: LockTesting) => unknown, RegExp]>([
    [
      'a key that nobody holds',
      (control) => control.lose('k'),
      /lose\("k"\): nobody holds this lock\. Call it while the code under test is inside/,
    ],
    [
      'a loss that only the code makes',
      (control) => control.lose('k', 'released' as never),
      /reason is 'released'\. Use expired, forced, maxHold/,
    ],
    [
      'a store that is unknown',
      (control) => control.holdElsewhere('k', { store: 'others' }),
      /no store 'others'\. The stores are: default, reports/,
    ],
    ['an empty key', (control) => control.holdElsewhere(''), /empty/],
    ['a count that is none', (control) => control.holdElsewhere('k', { permits: 0 }), /permits is 0/],
    ['a mode that is none', (control) => control.holdElsewhere('k', { mode: 'reads' as never }), /mode is 'reads'/],
    ['a count and a mode', (control) => control.holdElsewhere('k', { permits: 2, mode: 'read' }), /mode/],
    [
      'an option that is unknown',
      async (control) => control.storeAway({ as: 'gone' as never }),
      /as is 'gone'\. Use 'failing' or 'silent'/,
    ],
    ['a time that is none', async (control) => control.delayGrants('soon'), /soon/],
  ])('%s', async (_what, call, message) => {
    const app = await boot();
    await expect(Promise.resolve().then(() => call(app.get(LockTesting)))).rejects.toMatchObject({
      detail: expect.stringMatching(message) as unknown,
    });
    await app.close();
  });

  test('a controller in no application, and what is no controller', async () => {
    expect(() => new LockTesting().storeAway()).toThrow(/is in no application\. Import LockModule\.forTesting\(\{ controller \}\)/);
    expect(() => LockModule.forTesting({ controller: {} as never })).toThrow(/Pass new LockTesting\(\)/);
  });
});

test('the store of a test has all capabilities of the memory store, readers and permits among them', () => {
  const { default: store } = new LockTesting().storesFor(['default']);
  const { reservesFences, keepsLimits, shared, permits } = store ?? {};
  expect({ reservesFences, keepsLimits, shared, permits }).toEqual({
    reservesFences: true,
    keepsLimits: true,
    shared: true,
    permits: true,
  });
});
