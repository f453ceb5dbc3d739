import { Test } from '@nestjs/testing';
import assert from 'node:assert/strict';
import { currentLock, DistributedLock, LockModule, LockService } from 'nestjs-distributed-lock';
import { LockTesting, type LockTestingOptions } from 'nestjs-distributed-lock/testing';

/** The ability of a library of fake timers: to let so many milliseconds pass. */
export type Advance = (ms: number) => Promise<unknown>;

class Balances {
  @DistributedLock({ key: 'balance:<0>', ttl: '10s', wait: '5s' })
  async credit(_customerId: string, body: () => unknown = () => 'credited'): Promise<unknown> {
    return body();
  }
}

interface Application {
  readonly control: LockTesting;
  readonly locks: LockService;
  readonly balances: Balances;
  close(): Promise<void>;
}

async function start(options?: LockTestingOptions): Promise<Application> {
  const control = new LockTesting(options);
  const module = await Test.createTestingModule({ imports: [LockModule.forTesting({ controller: control })], providers: [Balances] })
    .setLogger({ log: () => undefined, warn: () => undefined, error: () => undefined })
    .compile();
  await module.init();
  return { control, locks: module.get(LockService), balances: module.get(Balances), close: () => module.close() };
}

/** The state of a call so far: its result, the code of its error, or `'waits'`. */
function follow(call: Promise<unknown>): () => string {
  let state = 'waits';
  call.then(
    (result) => (state = String(result)),
    (error: { code: string; reason?: string }) => (state = [error.code, error.reason].filter(Boolean).join(' ')),
  );
  return () => state;
}

function promiseToKeep(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((keep) => {
    resolve = keep;
  });
  return { promise, resolve };
}

/** Each runs under fake timers, from the start of an application to its end, and hangs where a real timer is needed. */
export const SCENARIOS: Readonly<Record<string, (advance: Advance) => Promise<void>>> = {
  async 'a wait is over'(advance) {
    const { control, balances, close } = await start();
    await control.holdElsewhere('balance:42');
    const state = follow(balances.credit('42'));
    await advance(4_990);
    assert.equal(state(), 'waits');
    await advance(20);
    assert.equal(state(), 'LOCK_NOT_ACQUIRED busy');
    await close();
  },

  async 'a release elsewhere lets a call in that waits'(advance) {
    const { control, balances, close } = await start();
    const elsewhere = await control.holdElsewhere('balance:42');
    const call = balances.credit('42');
    await advance(1_000);
    await elsewhere.release();
    assert.equal(await call, 'credited');
    await close();
  },

  async 'a lock elsewhere ends with its ttl'(advance) {
    const { control, balances, close } = await start();
    await control.holdElsewhere('balance:42', { ttl: '3s' });
    const state = follow(balances.credit('42'));
    await advance(2_990);
    assert.equal(state(), 'waits');
    await advance(20);
    assert.equal(state(), 'credited');
    await close();
  },

  async 'a grant comes late'(advance) {
    const { control, balances, close } = await start();
    control.delayGrants(300);
    const state = follow(balances.credit('42'));
    await advance(290);
    assert.equal(state(), 'waits');
    await advance(20);
    assert.equal(state(), 'credited');
    await close();
  },

  async 'a store that is away fails a call when its wait is over'(advance) {
    const { control, balances, close } = await start();
    control.storeAway();
    const state = follow(balances.credit('42'));
    await advance(4_500);
    assert.equal(state(), 'waits');
    await advance(1_000);
    assert.equal(state(), 'LOCK_STORE');
    await close();
  },

  async 'a store that is silent takes the time that a command has'(advance) {
    const { control, locks, close } = await start();
    control.storeAway({ as: 'silent' });
    const state = follow(locks.withLock('k', { wait: 0 }, () => 'ran'));
    await advance(900);
    assert.equal(state(), 'waits');
    await advance(200);
    assert.equal(state(), 'LOCK_STORE');
    control.storeBack();
    await close();
  },

  async 'a store that is back serves a call that waits'(advance) {
    const { control, balances, close } = await start();
    control.storeAway({ as: 'silent' });
    const state = follow(balances.credit('42'));
    await advance(2_500);
    assert.equal(state(), 'waits');
    control.storeBack();
    await advance(1_500);
    assert.equal(state(), 'credited');
    await close();
  },

  async 'a release that failed is repeated when the store is back'(advance) {
    const { control, balances, locks, close } = await start();
    await balances.credit('42', () => control.storeAway());
    control.storeBack();
    assert.notEqual(await locks.operations.inspect('balance:42'), null);
    await advance(1_100);
    assert.equal(await locks.operations.inspect('balance:42'), null);
    await close();
  },

  async 'a lease is renewed, and lost a ttl after the store went away'(advance) {
    const { control, balances, close } = await start({ expires: true });
    const inside = promiseToKeep();
    let signal: AbortSignal | undefined;
    const state = follow(
      balances.credit('42', async () => {
        signal = currentLock()?.signal;
        inside.resolve();
        await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      }),
    );
    await inside.promise;
    await advance(60_000);
    assert.equal(signal?.aborted, false);
    control.storeAway();
    await advance(5_000);
    assert.equal(signal?.aborted, false);
    await advance(6_000);
    assert.equal(signal?.aborted, true);
    assert.equal(state(), 'LOCK_LOST expired');
    control.storeBack();
    await close();
  },

  async 'a loss is told at once, and no time passes'() {
    const { control, balances, close } = await start();
    const inside = promiseToKeep();
    const call = balances.credit('42', async () => {
      const signal = currentLock()?.signal;
      inside.resolve();
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
    });
    await inside.promise;
    await control.lose('balance:42', 'maxHold');
    await assert.rejects(call, { code: 'LOCK_LOST', reason: 'maxHold' });
    await close();
  },
};
