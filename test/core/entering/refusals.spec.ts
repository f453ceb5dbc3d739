import { LockConfigurationError, type LockNotAcquiredError } from '../../../lib/core/words/errors';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { saying } from '../../support/saying';
import { playTime } from '../../support/virtual-time';

playTime();

const messageOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'acquired',
    (error: LockNotAcquiredError) => `${error.reason}: ${error.detail}`,
  );

describe('nested locks in opposite order in two processes', () => {
  const DEADLOCK = /busy: .*"(a|b)".* holds "(a|b)" while it waits: .*opposite order.*withLock\(\["a", "b"\], …\).*same order/;

  test('are told of the deadlock that they are, and not to raise wait', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [makeLocks(store), makeLocks(store)];
    let entered = 0;
    let bothAreIn!: () => void;
    const both = new Promise<void>((resolve) => (bothAreIn = resolve));
    const nest = (locks: typeof here, outer: string, inner: string, wait: number): Promise<unknown> =>
      locks.withLock(outer, { by: outer }, async () => {
        entered++;
        if (entered === 2) {
          bothAreIn();
        }
        await both;
        return locks.withLock(inner, { wait }, () => 'entered');
      });
    const patient = nest(there, 'b', 'a', 10_000);
    const message = await messageOf(nest(here, 'a', 'b', 50));
    expect(message).toMatch(DEADLOCK);
    expect(message).not.toContain('aise wait');
    expect(await patient).toBe('entered');
  });

  test('a call that holds nothing else, or does not wait, is told what it was', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [makeLocks(store), makeLocks(store)];
    const lock = await there.acquire('b');
    expect(await messageOf(here.withLock('b', { wait: 20 }, () => 1))).toContain('Raise wait');
    expect(await messageOf(here.withLock('a', () => here.withLock('b', { wait: 0 }, () => 1)))).toContain('Raise wait');
    await lock.release();
  });
});

test('a wait of a part of a millisecond more ends where time is played, whose timers count whole ones', async () => {
  const store = new MemoryLockStore();
  await makeLocks(store).acquire('k');
  expect(await messageOf(makeLocks(store).withLock('k', { wait: 20.5 }, () => 1))).toContain('busy');
});

test.each<[string, (locks: LockService) => Promise<unknown>]>([
  ['inspect', (locks) => locks.operations.inspect('k')],
  ['forceRelease', (locks) => locks.operations.forceRelease('k', { fence: 1 })],
])('%s is refused by its name where the store does not offer it', async (method, call) => {
  const store = Object.assign(new MemoryLockStore(), { operator: undefined });
  const refused = call(makeLocks(store as never));
  await expect(refused).rejects.toBeInstanceOf(LockConfigurationError);
  await expect(refused).rejects.toThrow(
    saying(new RegExp(`^LockService\\.${method}\\(\\) is not offered by the store 'default'\\. Use a store`)),
  );
});
