import { jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import type { Candidate } from '../../lib/leader/candidate';
import { Candidates } from '../../lib/leader/candidates';
import { systemClock } from '../../lib/core/seam/time';
import type { LeaderChange } from '../../lib/core/words/lock-event';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { Lock } from '../../lib/core/words/lock';
import { currentLock } from '../../lib/nest/current-lock';
import type { LockService } from '../../lib/nest/lock.service';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { makeLocks, type TestSettings } from '../support/make-locks';
import { saying } from '../support/saying';

const TTL = 5_000;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
/** Suites share a process, so none may leave a leader behind that goes on to renew its lock. */
afterEach(async () => {
  [first, second].forEach(({ end }) => end());
  const shutdown = Promise.all([first, second].map(({ locks }) => locks.shutdown()));
  await jest.advanceTimersByTimeAsync(60_000);
  await shutdown;
  jest.useRealTimers();
});

/** A process of its own, as far as its locks know. */
class Process {
  readonly events: string[] = [];
  readonly troubles: LockTrouble[] = [];
  readonly locks: LockService;
  /** The locks with which its code was run, and what ends the last run. */
  readonly runs: Lock[] = [];
  end: (error?: Error) => void = () => undefined;

  constructor(store: MemoryLockStore, settings: TestSettings = {}) {
    this.locks = makeLocks(store, { ttl: TTL, ...settings, onTrouble: (trouble) => this.#hear(trouble) });
  }

  /** Its code goes on until the signal aborts, or until it is ended. */
  readonly obedient = (lock: Lock): Promise<void> => this.#run(lock, true);

  /** Its code goes on until it is ended. */
  readonly deaf = (lock: Lock): Promise<void> => this.#run(lock, false);

  changes(change: LeaderChange['change']): LeaderChange[] {
    return this.troubles.filter((trouble) => trouble.type === 'leader' && trouble.change === change) as unknown as LeaderChange[];
  }

  #run(lock: Lock, isObedient: boolean): Promise<void> {
    this.runs.push(lock);
    return new Promise((resolve, reject) => {
      this.end = (error) => (error ? reject(error) : resolve());
      if (isObedient) {
        lock.signal.addEventListener('abort', () => resolve());
      }
    });
  }

  #hear(trouble: LockTrouble): void {
    this.troubles.push(trouble);
    if (trouble.type === 'leader') {
      this.events.push('reason' in trouble ? `${trouble.change} ${trouble.reason}` : trouble.change);
    }
  }
}

async function pass(ms: number): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
  await turn();
}

let store: MemoryLockStore;
let first: Process;
let second: Process;

beforeEach(() => {
  store = new MemoryLockStore();
  [first, second] = [new Process(store), new Process(store)];
});

/** The first leads, and the second stands by. */
async function elect(code: 'obedient' | 'deaf' = 'obedient'): Promise<readonly [Candidate, Candidate]> {
  const one = first.locks.lead('role', first[code]);
  await pass(0);
  const two = second.locks.lead('role', second.obedient);
  await pass(0);
  expect([one.isLeader(), two.isLeader()]).toEqual([true, false]);
  return [one, two];
}

const force = async (): Promise<void> => {
  await second.locks.operations.forceRelease('role', { fence: (await second.locks.operations.inspect('role'))?.fence as number });
  await pass(0);
};

describe('one of all leads', () => {
  test('the first leads, with a lock that its code is inside of, and the others stand by for as long as it does', async () => {
    let inside: Lock | undefined;
    const one = first.locks.lead('role', (lock) => {
      inside = currentLock('role');
      return first.obedient(lock);
    });
    await pass(0);
    const two = second.locks.lead('role', second.obedient);
    await pass(3_600_000);
    expect(inside?.fence).toBe(first.runs[0]?.fence);
    expect([first.runs.length, second.runs.length]).toEqual([1, 0]);
    expect(await second.locks.operations.inspect('role')).toMatchObject({
      by: expect.stringMatching(/\(pid \d+\) LockService\.lead as leader$/) as unknown,
    });
    expect([first.events, second.events]).toEqual([['standby', 'elected'], ['standby']]);
    // Neither a long section nor a long wait is worth a warning.
    expect([...first.troubles, ...second.troubles].map(({ type }) => type)).toEqual(['leader', 'leader', 'leader']);
    await Promise.all([one.stop(), two.stop()]);
  });

  test("a maxHold of the module's calls is not one of leaders", async () => {
    const process = new Process(store, { maxHold: 1_000 });
    const candidate = process.locks.lead('role', process.obedient);
    await pass(60_000);
    expect([candidate.isLeader(), process.runs.length]).toEqual([true, 1]);
    await candidate.stop();
  });

  test('it is no call of whoever asked for it: what leads is not inside the locks of that one', async () => {
    const around: (Lock | undefined)[] = [];
    const candidate = await first.locks.withLock('outer', async () => {
      expect(currentLock('outer')).toBeDefined();
      const made = first.locks.lead('role', (lock) => {
        around.push(currentLock('outer'));
        return first.obedient(lock);
      });
      await pass(0);
      return made;
    });
    expect(around).toEqual([undefined]);
    await candidate.stop();
  });

  test('two candidates of one process lead one after the other', async () => {
    const one = first.locks.lead('role', first.obedient);
    const two = first.locks.lead('role', second.obedient);
    await pass(60_000);
    expect([one.isLeader(), two.isLeader()]).toEqual([true, false]);
    await one.stop();
    await pass(0);
    expect([one.isLeader(), two.isLeader()]).toEqual([false, true]);
    await two.stop();
  });

  test('two candidates of one process leave the terms of another to it: the store says who is next', async () => {
    const terms: string[] = [];
    const leadAs =
      (name: string) =>
      async (lock: Lock): Promise<void> => {
        terms.push(name);
        await (name === 'other' ? second : first).deaf(lock);
      };
    const candidates = ['one', 'two'].map((name) => first.locks.lead('role', leadAs(name)));
    await pass(0);
    candidates.push(second.locks.lead('role', leadAs('other')));
    while (terms.length < 24) {
      // Longer than a candidate pauses: all of the others stand by.
      await pass(3_000);
      (terms.at(-1) === 'other' ? second : first).end();
      await pass(10);
    }
    const of = (name: string): number => terms.filter((each) => each === name).length;
    expect([of('one'), of('two'), of('other')]).toEqual([6, 6, 12]);
    const stopped = Promise.all(candidates.map((candidate) => candidate.stop()));
    await pass(0);
    [first, second].forEach((process) => process.end());
    await pass(10);
    await stopped;
  });
});

describe('a lease that is lost', () => {
  test('notifies the code at once, and the next one leads; the old leader stands by again', async () => {
    await elect();
    await force();
    expect(first.runs[0]?.signal.aborted).toBe(true);
    expect(second.runs).toHaveLength(1);
    expect(second.runs[0]?.fence).toBeGreaterThan(first.runs[0]?.fence as number);
    expect(first.events).toEqual(['standby', 'elected', 'revoked forced', 'ended forced', 'standby']);
    await force();
    expect(first.events.at(-1)).toBe('elected');
  });

  test('with code that does not stop: it is told, and this process does not stand by before that has ended', async () => {
    const [one, two] = await elect('deaf');
    await force();
    expect(two.isLeader()).toBe(true);
    expect(first.events).toEqual(['standby', 'elected', 'revoked forced']);
    await pass(TTL);
    expect(first.events.at(-1)).toBe('stillRuns forced');
    await two.stop();
    await pass(60_000);
    expect([one.isLeader(), first.runs.length]).toEqual([false, 1]);
    expect(await second.locks.operations.inspect('role')).toBeNull();
    first.end();
    await pass(0);
    expect(first.events.slice(3)).toEqual(['stillRuns forced', 'ended forced', 'standby', 'elected']);
    first.end();
  });

  test('what the code throws because of it is no failure, and is in the event', async () => {
    await elect('deaf');
    await force();
    first.end(new Error('aborted'));
    await pass(0);
    expect(first.events.slice(3)).toEqual(['ended forced', 'standby']);
    expect(first.changes('ended')).toMatchObject([{ thrown: new Error('aborted') }]);
  });
});

describe('code that ends by itself', () => {
  test('has led: the next one leads at once, and this process stands by again after the pause', async () => {
    const [one, two] = await elect();
    first.end();
    await pass(0);
    expect([one.isLeader(), two.isLeader()]).toEqual([false, true]);
    expect(first.events.slice(2)).toEqual(['ended returned']);
    await pass(499);
    expect(first.events.at(-1)).toBe('ended returned');
    await pass(501);
    expect(first.events.at(-1)).toBe('standby');
  });

  test('alone, it leads again after the pause, which stays the same', async () => {
    first.locks.lead('role', async (lock) => void first.runs.push(lock), { pause: 1_000 });
    await pass(60_000);
    expect(first.runs.length).toBeGreaterThanOrEqual(59);
    expect(first.runs.length).toBeLessThanOrEqual(121);
  });

  test('by an error: others go first, and the pause doubles with each error in a row, up to half a minute', async () => {
    const at: number[] = [];
    first.locks.lead('role', async () => {
      at.push(performance.now());
      throw new Error('broken');
    });
    await pass(300_000);
    const pauses = at.slice(1).map((time, index) => time - (at[index] as number));
    for (const [index, longest] of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(longest / 2 - 1);
      expect(pauses[index]).toBeLessThanOrEqual(longest + 1);
    }
    expect(at.length).toBeLessThan(30);
    expect(first.events.slice(0, 4)).toEqual(['standby', 'elected', 'ended threw', 'standby']);
    expect(first.changes('ended')[0]).toMatchObject({ thrown: new Error('broken') });
  });

  test('by an error that is thrown at once, in no promise: the same', async () => {
    first.locks.lead('role', () => {
      throw new Error('broken');
    });
    await pass(10);
    expect(first.events).toEqual(['standby', 'elected', 'ended threw']);
  });

  test('by an error after it led for long: the pause begins anew', async () => {
    first.locks.lead('role', first.obedient);
    await pass(0);
    for (let error = 1; error < 5; error++) {
      await pass(31_000);
      first.end(new Error('broken'));
      await pass(1_001);
      expect(first.runs).toHaveLength(error + 1);
    }
  });
});

describe('a candidacy that ends', () => {
  test('notifies the code first: it has the lock until it has ended, and then the next one leads at once', async () => {
    const [one, two] = await elect('deaf');
    const stopping = one.stop();
    await pass(0);
    expect(first.runs[0]?.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'released' });
    expect([one.isLeader(), two.isLeader()]).toEqual([true, false]);
    await pass(TTL - 100);
    expect(two.isLeader()).toBe(false);
    first.end();
    await stopping;
    await pass(0);
    expect([one.isLeader(), two.isLeader()]).toEqual([false, true]);
    expect(first.events).toEqual(['standby', 'elected', 'revoked released', 'ended released']);
    expect(first.troubles.map(({ type }) => type)).not.toContain('lost');
    await pass(60_000);
    expect(first.events).toHaveLength(4);
  });

  test('with code that does not stop: after a ttl the lock is released all the same', async () => {
    const [one, two] = await elect('deaf');
    const stopping = one.stop();
    await pass(TTL);
    await stopping;
    await pass(0);
    expect([one.isLeader(), two.isLeader()]).toEqual([false, true]);
    expect(first.events.slice(2)).toEqual(['revoked released', 'stillRuns released']);
    first.end();
    await pass(60_000);
    expect(first.events.slice(4)).toEqual(['ended released']);
    expect(first.runs).toHaveLength(1);
  });

  test('while it stands by, or pauses: it never leads', async () => {
    const [one, two] = await elect();
    await two.stop();
    first.end();
    await pass(0);
    await one.stop();
    await pass(60_000);
    expect([first.runs.length, second.runs.length]).toEqual([1, 0]);
    // Code that has ended is not told to end.
    expect(first.events).toEqual(['standby', 'elected', 'ended returned']);
    expect(first.runs[0]?.signal.aborted).toBe(false);
    expect(await second.locks.operations.inspect('role')).toBeNull();
  });

  test('may be ended from inside, by a signal, by `await using`, and twice', async () => {
    const inside: Candidate = first.locks.lead('inside', async () => {
      await inside.stop();
    });
    await pass(0);
    expect(inside.isLeader()).toBe(false);
    const controller = new AbortController();
    const signalled = first.locks.lead('signal', first.obedient, { signal: controller.signal });
    await pass(0);
    controller.abort();
    await pass(0);
    expect(signalled.isLeader()).toBe(false);
    await signalled.stop();
    {
      await using used = first.locks.lead('using', first.obedient);
      await pass(0);
      expect(used.isLeader()).toBe(true);
    }
    expect(await first.locks.operations.inspect('using')).toBeNull();
    first.locks.lead('aborted', first.obedient, { signal: AbortSignal.abort() });
    await pass(60_000);
    expect(first.runs).toHaveLength(2);
  });

  test('at a shutdown the code is notified first, and may use locks until it has ended; then nobody stands by any more', async () => {
    const [, two] = await elect('deaf');
    const shutdown = first.locks.shutdown();
    await pass(0);
    expect(first.runs[0]?.signal.reason).toMatchObject({ reason: 'shutdown' });
    expect(await first.locks.withLock('at the end', () => 'done')).toBe('done');
    first.end();
    await shutdown;
    await pass(0);
    expect(two.isLeader()).toBe(true);
    expect(() => first.locks.lead('role', first.obedient)).toThrow(saying(/shutting down/));
    await expect(first.locks.withLock('after it', () => 'done')).rejects.toMatchObject({ reason: 'shutdown' });
  });

  test('before a shutdown leaders resign, and other locks still work when they have', async () => {
    const [, two] = await elect('deaf');
    let hasResigned = false;
    const resigned = first.locks.resign().then(() => (hasResigned = true));
    await pass(0);
    expect([first.runs[0]?.signal.reason, hasResigned]).toEqual([expect.objectContaining({ reason: 'shutdown' }), false]);
    first.end();
    await resigned;
    await pass(0);
    expect(two.isLeader()).toBe(true);
    expect(await first.locks.withLock('k', () => 'done')).toBe('done');
    expect(() => first.locks.lead('role', first.obedient)).toThrow(saying(/shutting down/));
    await two.stop();
  });
});

test('a candidate that is refused tries again after a pause, and says why', async () => {
  const full = new Process(store, { maxWaiters: 0 });
  const one = full.locks.lead('role', full.obedient);
  full.locks.lead('role', second.obedient);
  await pass(100_000);
  const failures = full.changes('failed');
  expect(failures[0]).toMatchObject({ error: { reason: 'tooManyWaiters' } });
  expect(failures.length).toBeGreaterThanOrEqual(5);
  expect(failures.length).toBeLessThan(15);
  await one.stop();
  await pass(31_000);
  expect(second.runs).toHaveLength(1);
});

test('what is asked for wrongly is refused at once', () => {
  const { locks } = first;
  expect(() => locks.lead('', first.obedient)).toThrow(saying(/key/));
  expect(() => locks.lead('role', undefined as never)).toThrow(
    saying(/is undefined, not a function\. Pass the function that the leader runs after the key/),
  );
  expect(() => locks.lead('role', first.obedient, { pause: 0 })).toThrow(saying(/pause is 0/));
  expect(() => locks.lead('role', first.obedient, { ttl: 5 })).toThrow(saying(/ttl is 5/));
  expect(() => locks.lead('role', first.obedient, { maxHold: 5 } as never)).toThrow(saying(/'maxHold' is no option here/));
  expect(() => locks.lead('role', first.obedient, { signal: 'now' as never })).toThrow(saying(/AbortSignal/));
});

test('a candidacy whose signal had aborted leaves nothing behind', async () => {
  const { locks } = new Process(new MemoryLockStore());
  const candidates = new Candidates({
    run: () => locks.withLock('k', () => undefined) as never,
    clock: systemClock,
    reporter: undefined as never,
  });
  const candidate = candidates.add('k', locks.parse({ signal: AbortSignal.abort() }, 'test'), 1_000, () => Promise.resolve());
  await candidate.stop();
  // Promised for no candidates only.
  expect(candidates.stop()).toBeUndefined();
});
