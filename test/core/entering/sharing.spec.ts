import { outsideLocks } from '../../../lib/core/calls/call-tree';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import type { LockOptions } from '../../../lib/core/words/call-options';
import type { LockService } from '../../../lib/nest/lock.service';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

let locks: LockService;
/** Another process. */
let others: LockService;
beforeEach(() => {
  const store = new MemoryLockStore({ expires: true });
  locks = makeLocks(store);
  others = makeLocks(store, { wait: 0 });
});
afterEach(() => Promise.all([locks.shutdown(), others.shutdown()]));

type Options = Omit<LockOptions, 'mode' | 'ticket'>;
interface Way {
  readonly name: string;
  run<T>(options: Options, body: () => Promise<T>): Promise<T>;
  /** Whether another process may have the key alone. */
  isFree(): Promise<boolean>;
  /** Another process has it alone. */
  block(): Promise<{ release(): Promise<void> }>;
}

const WAYS: readonly Way[] = [
  {
    name: 'a reader',
    run: (options, body) => locks.withLock('k', { ...options, mode: 'read' }, body),
    isFree: () => others.withLock('k', () => true).catch(() => false),
    block: () => others.acquire('k'),
  },
  {
    name: 'a permit',
    run: (options, body) => locks.withPermit('k', 1, options, body),
    isFree: () => others.withPermit('k', 1, () => true).catch(() => false),
    block: () => others.acquirePermit('k', 1),
  },
];

test('a reader that is inside a reader takes a hold of its own with reentry: never', async () => {
  const [read] = WAYS as [Way];
  await read.run({}, async () => {
    await sleep(100);
    await read.run({ reentry: 'never' }, async () => expect((await others.operations.inspect('k'))?.holds).toBe(2));
    expect((await others.operations.inspect('k'))?.holds).toBe(1);
  });
});

describe.each(WAYS)('$name', ({ run, isFree, block }) => {
  const nothing = async (): Promise<void> => undefined;

  test('is in for its minHold', async () => {
    await run({ minHold: 1_000 }, nothing);
    await sleep(500);
    expect(await isFree()).toBe(false);
    await sleep(600);
    expect(await isFree()).toBe(true);
  });

  test('is out after its maxHold, and is told', async () => {
    await expect(run({ maxHold: 1_000, ttl: 600 }, () => sleep(5_000))).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'maxHold' });
    expect(await isFree()).toBe(true);
  });

  test('ends its wait when its signal aborts, and leaves nothing behind', async () => {
    const blocker = await block();
    const aborter = new AbortController();
    setTimeout(() => aborter.abort(), 100);
    await expect(run({ signal: aborter.signal }, nothing)).rejects.toMatchObject({ reason: 'aborted' });
    await blocker.release();
    expect(await isFree()).toBe(true);
  });

  test('is entered by calls inside it, and by none outside of locks', async () => {
    const inside = await run({}, async () => {
      await run({ wait: 0 }, nothing);
      return outsideLocks(async () => (await others.operations.inspect('k'))?.holds);
    });
    expect(inside).toBe(1);
    expect(await isFree()).toBe(true);
  });

  test('is notified of a shutdown, and out with it', async () => {
    const running = run({}, () => sleep(10_000));
    running.catch(() => undefined);
    await sleep(10);
    await locks.shutdown();
    await expect(running).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    expect(await isFree()).toBe(true);
  });
});
