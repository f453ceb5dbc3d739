import type { LockNotAcquiredError } from '../../../lib/core/words/errors';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import type { LockService } from '../../../lib/nest/lock.service';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

let processes: LockService[] = [];
const start = (count: number): LockService[] => {
  const store = new MemoryLockStore();
  processes = Array.from({ length: count }, () => makeLocks(store, { wait: 60_000, deadlocksAfterMs: 1_000 }));
  return processes;
};
afterEach(() => Promise.all(processes.map((locks) => locks.shutdown())));

/** Calls that are in their outer lock when the first of them asks for its inner one, and what they ended with. */
async function endsOf(...calls: readonly ((inside: () => Promise<void>) => Promise<unknown>)[]): Promise<unknown[]> {
  let left = calls.length;
  let open!: () => void;
  const all = new Promise<void>((resolve) => (open = resolve));
  const inside = (): Promise<void> => {
    if (--left === 0) {
      open();
    }
    return all;
  };
  return Promise.all(
    calls.map(async (call) => {
      try {
        return await call(inside);
      } catch (error) {
        return error;
      }
    }),
  );
}

const refused = (ends: readonly unknown[]): LockNotAcquiredError[] => ends.filter((end) => end instanceof Error) as LockNotAcquiredError[];

describe('calls that wait for each other over keys that are shared', () => {
  test.each([2, 1])('of a reader and a writer in %d processes, one gives way, and names both', async (count) => {
    const [one, other = one] = start(count) as [LockService, LockService?];
    const ends = await endsOf(
      (inside) =>
        one.withLock('a', { mode: 'read', by: 'Reader' }, async () => {
          await inside();
          return one.withLock('b', { by: 'Reader' }, () => 'ran');
        }),
      (inside) =>
        other.withLock('b', { by: 'Writer' }, async () => {
          await inside();
          return other.withLock('a', { by: 'Writer' }, () => 'ran');
        }),
    );
    expect(ends).toContain('ran');
    const [error] = refused(ends);
    expect(error).toMatchObject({ reason: 'cycle' });
    expect(error?.cycle?.map(({ site }) => site).toSorted()).toEqual(['Reader', 'Writer']);
    expect(error?.waitedMs).toBeLessThan(15_000);
  });

  test('of a writer that waits for three readers, one of which waits for it, one gives way', async () => {
    const [writer, ...readers] = start(4) as [LockService, ...LockService[]];
    const ends = await endsOf(
      (inside) =>
        writer.withLock('b', { by: 'Writer' }, async () => {
          await inside();
          return writer.withLock('a', { by: 'Writer' }, () => 'ran');
        }),
      ...readers.map(
        (locks, at) =>
          (inside: () => Promise<void>): Promise<unknown> =>
            locks.withLock('a', { mode: 'read', by: `Reader ${at}` }, async () => {
              await inside();
              return at === 2 ? locks.withLock('b', { by: 'Reader 2' }, () => 'ran') : sleep(5_000).then(() => 'ran');
            }),
      ),
    );
    expect(ends.filter((end) => end === 'ran')).toHaveLength(3);
    expect(refused(ends)).toMatchObject([{ reason: 'cycle' }]);
    expect(
      refused(ends)[0]
        ?.cycle?.map(({ site }) => site)
        .toSorted(),
    ).toEqual(['Reader 2', 'Writer']);
  });

  test('of one that waits for the only permit, whose holder waits for it, one gives way', async () => {
    const [one, other] = start(2) as [LockService, LockService];
    const ends = await endsOf(
      (inside) =>
        one.withPermit('a', 1, { by: 'Holder' }, async () => {
          await inside();
          return one.withLock('b', { by: 'Holder' }, () => 'ran');
        }),
      (inside) =>
        other.withLock('b', { by: 'Asker' }, async () => {
          await inside();
          return other.withPermit('a', 1, { by: 'Asker' }, () => 'ran');
        }),
    );
    expect(ends).toContain('ran');
    expect(refused(ends)).toMatchObject([{ reason: 'cycle' }]);
  });

  test('is no deadlock where another holder of a permit will leave', async () => {
    const [one, other, third] = start(3) as [LockService, LockService, LockService];
    const ends = await endsOf(
      (inside) =>
        one.withPermit('a', 2, { by: 'Holder' }, async () => {
          await inside();
          return one.withLock('b', { by: 'Holder' }, () => 'ran');
        }),
      (inside) =>
        third.withPermit('a', 2, async () => {
          await inside();
          await sleep(10_000);
          return 'ran';
        }),
      (inside) =>
        other.withLock('b', { by: 'Asker' }, async () => {
          await inside();
          return other.withPermit('a', 2, { by: 'Asker' }, () => 'ran');
        }),
    );
    expect(ends).toEqual(['ran', 'ran', 'ran']);
  });
});
