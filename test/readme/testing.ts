import { Inject, Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import assert from 'node:assert/strict';
import { currentLock, DistributedLock, LockModule } from 'nestjs-distributed-lock';
import { LockTesting } from 'nestjs-distributed-lock/testing';

@Injectable()
class Entries {
  @DistributedLock('entry:<customerId>')
  async write(customerId: string): Promise<string> {
    return customerId;
  }
}

@Injectable()
class BalanceService {
  constructor(@Inject(Entries) private readonly entries: Entries) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string): Promise<string> {
    return this.entries.write(customerId);
  }

  @DistributedLock('balance:<customerId>')
  async recount(customerId: string, begun: () => void): Promise<string> {
    const { signal } = currentLock() as { signal: AbortSignal };
    begun();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return customerId;
  }
}

/** The `jest` or `vi` of a test. */
interface FakeTimers {
  useFakeTimers(): unknown;
  advanceTimersByTimeAsync(ms: number): Promise<unknown>;
  useRealTimers(): unknown;
}

export async function prepare(): Promise<TestingModule> {
  const app = await Test.createTestingModule({
    imports: [LockModule.forTesting({ controller: new LockTesting() })],
    providers: [BalanceService, Entries],
  }).compile();
  return app;
}

export async function isRefused(app: TestingModule, jest: FakeTimers): Promise<void> {
  const control = app.get(LockTesting);
  jest.useFakeTimers();
  const elsewhere = await control.holdElsewhere('balance:42');
  const refused = assert.rejects(app.get(BalanceService).credit('42'), { code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
  await jest.advanceTimersByTimeAsync(5_100);
  await refused;
  await elsewhere.release();
}

export async function isLost(app: TestingModule): Promise<void> {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const lost = assert.rejects(
    app.get(BalanceService).recount('42', () => begin()),
    { code: 'LOCK_LOST', reason: 'expired' },
  );
  await begun;
  await app.get(LockTesting).lose('balance:42', 'expired');
  await lost;
}

export async function isAway(app: TestingModule, jest: FakeTimers): Promise<void> {
  const control = app.get(LockTesting);
  control.storeAway();
  const failed = assert.rejects(app.get(BalanceService).credit('42'), { code: 'LOCK_STORE' });
  await jest.advanceTimersByTimeAsync(6_000);
  await failed;
  control.storeBack();
}

export async function locksInOrder(app: TestingModule): Promise<void> {
  await app.get(BalanceService).credit('42');
  const taken = app.get(LockTesting).locksTaken();
  assert.deepEqual(
    taken.map(({ key, how, inside, endedAs }) => ({ key, how, inside, endedAs })),
    [
      { key: 'balance:42', how: 'acquired', inside: [], endedAs: 2 },
      { key: 'entry:42', how: 'acquired', inside: ['balance:42'], endedAs: 1 },
    ],
  );
}
