import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { DistributedLock, type LockService } from 'nestjs-distributed-lock';
import { LockNotAcquiredError, LockStoreError } from '../../../lib/core/words/errors';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';

@Injectable()
class Wallet {
  @DistributedLock({ key: 'balance:<customerId>', wait: 0 })
  async credit(customerId: string): Promise<string> {
    return customerId;
  }
}

let store: MemoryLockStore;
let locks: LockService;
let wallet: Wallet;

beforeEach(() => {
  store = new MemoryLockStore();
  locks = makeLocks(store);
  wallet = locks.attach(new Wallet());
});

/** The application's own functions: who calls whom shows in their names. */
async function creditOf(): Promise<unknown> {
  return await wallet.credit('42');
}
async function withLockOf(): Promise<unknown> {
  return await locks.withLock('balance:42', { wait: 5 }, () => 1);
}
async function acquireOf(): Promise<unknown> {
  return await locks.acquire('balance:42', { wait: 0 });
}
async function severalOf(): Promise<unknown> {
  return await locks.withLock(['balance:41', 'balance:42'], { wait: 0 }, () => 1);
}
async function handlerOf(call: () => Promise<unknown>): Promise<unknown> {
  return await call();
}
const refusalOf = async (call: () => Promise<unknown>): Promise<Error> => {
  try {
    throw await handlerOf(call);
  } catch (error) {
    return error as Error;
  }
};

const CALLS = [creditOf, withLockOf, acquireOf, severalOf].map((call) => [call.name, call] as const);

describe('the stack of a refused call names those who await it', () => {
  test.each(CALLS)('where another call has the lock: %s', async (name, call) => {
    await locks.acquire('balance:42', { wait: 0 });
    const error = await refusalOf(call);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error.stack).toMatch(new RegExp(`at (async )?${name} \\(.*caller-stack\\.spec\\.ts.*\\n\\s+at (async )?handlerOf `));
    expect(error.stack?.match(/at (async )?handlerOf /g)).toHaveLength(1);
  });

  test.each(CALLS)('where the store fails: %s', async (name, call) => {
    store.acquire = () => Promise.reject(new LockStoreError('away', '', { unknown: false }));
    const error = await refusalOf(call);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error.stack).toMatch(new RegExp(`at (async )?${name} \\(.*caller-stack\\.spec\\.ts`));
  });

  test('and one error that refuses many calls has the callers of the first', async () => {
    const shared = new LockStoreError('away', '', { unknown: false });
    store.acquire = () => Promise.reject(shared);
    const first = await refusalOf(withLockOf);
    const { stack } = first;
    expect(await refusalOf(severalOf)).toBe(shared);
    expect(shared.stack).toBe(stack);
  });

  test('and an error of the body stays as it was thrown', async () => {
    const thrown = new Error('no money');
    const { stack } = thrown;
    const error = await refusalOf(() => locks.withLock('k', () => Promise.reject(thrown)));
    expect(error).toBe(thrown);
    expect(thrown.stack).toBe(stack);
  });
});
