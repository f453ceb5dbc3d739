import type { LockedSection, LockTelemetry } from '../../lib/core/words/lock-telemetry';
import { MemoryLockStore } from '../../lib/stores/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';

/** Keeps the sections that it follows, and what runs later inside them. */
class Follower implements LockTelemetry {
  readonly sections: LockedSection[] = [];
  readonly resumed: LockedSection[] = [];
  section(section: LockedSection, run: () => unknown): void {
    this.sections.push(section);
    run();
  }
  resume(section: LockedSection, run: () => unknown): void {
    this.resumed.push(section);
    run();
  }
}

test('telemetry follows what runs later inside the lock of a body, as the same section, and has its signal', async () => {
  const follower = new Follower();
  const locks = makeLocks(new MemoryLockStore(), { telemetry: [follower] });
  await locks.withLock('k', async (lock) => {
    expect(follower.resumed).toEqual([]);
    expect(lock.run(() => 'later')).toBe('later');
    expect(follower.sections[0]?.signal).toBe(lock.signal);
  });
  expect(follower.sections).toHaveLength(1);
  expect(follower.resumed).toEqual(follower.sections);
  await locks.shutdown();
});
