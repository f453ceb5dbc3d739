import { jest } from '@jest/globals';
import { throwIfAllFailed } from '../../lib/kit/all-failed';
import { NoReply, within } from '../../lib/kit/no-reply';
import { processName, shownProcess } from '../../lib/kit/process-name';
import { MOST_FENCE, MOST_HOLDS } from '../../lib/kit/protocol';
import { fenceTooHigh, tooManyHolds } from '../../lib/kit/refusals';
import { readAttempt, readBusy, readStored } from '../../lib/kit/replies';

describe('the reply to an attempt', () => {
  test.each([['1700000000000001'], [1_700_000_000_000_001]])('is the fence of the grant: %j', (reply) => {
    expect(readAttempt(reply)).toEqual({ fence: 1_700_000_000_000_001 });
  });

  test('says who holds the lock and for how long, and the rank of the place in the queue', () => {
    expect(readAttempt([4_000, 'Orders.pay', 1_000, 2, 1, ''])).toEqual({
      remainingMs: 4_000,
      holder: { by: 'Orders.pay', heldMs: 1_000 },
      rank: 2,
      joined: true,
    });
  });

  test('says the same where a server writes numbers as texts', () => {
    const [fresh, known] = ['1', '0'].map((joined) => readBusy(['4000', '', '1000', '-1', joined, '']));
    expect(fresh).toEqual({ remainingMs: 4_000, holder: { by: '', heldMs: 1_000 }, rank: -1, joined: true });
    expect(known).toMatchObject({ joined: false });
  });

  test('names the process that a free lock is reserved for', () => {
    expect(readBusy([800, '', 0, 0, 0, 'web-1:4711:0a1b2c3d:9'])).toEqual({
      remainingMs: 800,
      holder: { by: 'web-1 (pid 4711)', heldMs: 0 },
      rank: 0,
      joined: false,
    });
  });
});

describe('what a server has of a lock', () => {
  test('is shown with its waiters as users see them', () => {
    const waiters = ['web-1:4711:0a1b2c3d:9', 'web-2:12:4e5f6a7b:1'];
    const processes = ['web-3:5:8c9d0e1f'];
    expect(readStored(['1700000000000001', '2', '4000', '1700000000000', 'Orders.pay', waiters, processes])).toEqual({
      fence: 1_700_000_000_000_001,
      holds: 2,
      remainingMs: 4_000,
      since: new Date(1_700_000_000_000),
      by: 'Orders.pay',
      waiters: ['web-1 (pid 4711)', 'web-2 (pid 12)'],
      processes,
    });
  });

  test('is null where nobody holds it', () => {
    expect(readStored(null)).toBeNull();
  });
});

describe('the name of a store instance', () => {
  test('shows its process, and is another one each time', () => {
    const name = processName();
    // A message separates its parts by blanks.
    expect(name).toMatch(new RegExp(`^[\\w.-]+:${process.pid}:[0-9a-f]{8}$`));
    expect(processName()).not.toBe(name);
  });

  test('is shown to users as host and process id, and so is that of its places', () => {
    expect(shownProcess('web-1.local:4711:0a1b2c3d')).toBe('web-1.local (pid 4711)');
    expect(shownProcess('web-1.local:4711:0a1b2c3d:9')).toBe('web-1.local (pid 4711)');
  });
});

describe('of several servers', () => {
  const answered = { status: 'fulfilled', value: undefined } as const;
  const failed = (reason: unknown): PromiseRejectedResult => ({ status: 'rejected', reason });

  test('those that answered are enough, whatever became of the others', () => {
    expect(() => throwIfAllFailed([answered, answered])).not.toThrow();
    expect(() => throwIfAllFailed([failed(new Error('away')), answered])).not.toThrow();
    expect(() => throwIfAllFailed([answered, failed(new Error('away'))])).not.toThrow();
  });

  test('none that answered is an error, and the first says which', () => {
    expect(() => throwIfAllFailed([failed(new Error('first')), failed(new Error('second'))])).toThrow('first');
    expect(() => throwIfAllFailed([failed(new Error('only'))])).toThrow('only');
  });

  test('none that was asked is no error', () => {
    expect(() => throwIfAllFailed([])).not.toThrow();
  });
});

describe('a refusal', () => {
  test('of one hold too many names the lock, how many holds are in it, and what to do', () => {
    const refusal = tooManyHolds('balance:42');
    expect(refusal).toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'balance:42' });
    expect(refusal.detail).toMatch(new RegExp(`^Lock "balance:42": ${MOST_HOLDS} holds .*\\. Let fewer calls enter it `));
  });

  test('of a fence that is too high names the lock, the counter, and how it is put right', () => {
    const refusal = fenceTooHigh('balance:42', '9007199254740990', 'delete the counter');
    expect(refusal).toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'balance:42' });
    expect(refusal.detail).toContain(`Lock "balance:42": its fence would be above ${MOST_FENCE}`);
    expect(refusal.detail).toContain('its counter is 9007199254740990');
    expect(refusal.detail).toMatch(/Put the clock right, .*, and delete the counter\.$/);
  });
});

test.each([
  [250, 250],
  [249.6, 250],
  [-3, 0],
])('a command with %d ms left that got no reply says that it waited for %d ms', (limitMs, shownMs) => {
  expect(new NoReply(limitMs)).toMatchObject({ message: `no reply within ${shownMs} ms` });
  expect(new NoReply(limitMs)).toBeInstanceOf(Error);
});

describe('what has a time limit', () => {
  const never = new Promise<never>(() => undefined);

  test('ends as the work does, and leaves no timer', async () => {
    jest.useFakeTimers();
    expect(await within(60_000, Promise.resolve('done'))).toBe('done');
    await expect(within(60_000, Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  test('is given up after it, with the error that its caller makes', async () => {
    await expect(within(0, never)).rejects.toBeInstanceOf(NoReply);
    await expect(within(0, never, () => new Error('too late'))).rejects.toThrow('too late');
  });

  test('is given what came in while the event loop was blocked', async () => {
    const reply = new Promise((resolve) => setTimeout(() => setImmediate(resolve, 'read'), 0));
    const read = within(0, reply);
    const until = performance.now() + 20;
    while (performance.now() < until) {
      // Both timers are due when the loop runs again.
    }
    expect(await read).toBe('read');
  });
});
