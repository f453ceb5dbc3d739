import { jest } from '@jest/globals';
import { probe, worstOf } from '../../lib/kit/probe';
import { ServerClock } from '../../lib/kit/server-clock';
import { playTime, sleep } from '../support/virtual-time';

playTime({ passes: false });

const SERVER_MS = 1_700_000_000_000;
/** How much later than its sender's time limit a command may still be carried out. */
const SLACK_MS = 1_000;

const passes = (ms: number): void => {
  jest.advanceTimersByTime(ms);
};

describe('the clock of a server', () => {
  let clock: ServerClock;
  /** When the command was sent whose reply named a time. */
  let sentAt: number;

  beforeEach(() => {
    clock = new ServerClock();
    passes(100);
    sentAt = performance.now();
  });

  test('is unknown before the first reply: a command then names no latest time, and any reply is too old', () => {
    expect(clock.now()).toBeUndefined();
    expect(clock.latest(sentAt, 500)).toBe(0);
    expect(clock.isOlderThan(1_000_000)).toBe(true);
  });

  test('runs on after a reply, from the sending of its command', () => {
    passes(40);
    clock.read(SERVER_MS, sentAt);
    expect(clock.now()).toBe(SERVER_MS + 40);
    passes(60);
    expect(clock.now()).toBe(SERVER_MS + 100);
  });

  test('is what the last reply says, also where it was set back', () => {
    clock.read(SERVER_MS, sentAt);
    passes(500);
    clock.read(SERVER_MS - 60_000, performance.now());
    expect(clock.now()).toBe(SERVER_MS - 60_000);
  });

  test('names the latest time for a command: its time limit after its sending, and the slack', () => {
    clock.read(SERVER_MS, sentAt);
    passes(300);
    expect(clock.latest(sentAt + 200, 500)).toBe(SERVER_MS + 200 + 500 + SLACK_MS);
  });

  test('names it in whole milliseconds, as a server reads it, and never too early', () => {
    clock.read(SERVER_MS, sentAt);
    expect(clock.latest(sentAt + 0.25, 500)).toBe(SERVER_MS + 501 + SLACK_MS);
  });

  test('is known for so long as a reply is not older than that, from the sending of its command', () => {
    passes(40);
    clock.read(SERVER_MS, sentAt);
    passes(960);
    expect(clock.isOlderThan(1_000)).toBe(false);
    passes(1);
    expect(clock.isOlderThan(1_000)).toBe(true);
    clock.read(SERVER_MS, performance.now());
    expect(clock.isOlderThan(1_000)).toBe(false);
  });
});

describe('a probe', () => {
  test.each([
    ['ahead', 30_000],
    ['behind', -30_000],
  ])('shows how long the answer takes, and how far the clock of the server is %s', async (_, skewMs) => {
    passes(100);
    const probed = probe(async () => {
      await sleep(20);
      const serverMs = Date.now() + skewMs;
      await sleep(20);
      return { serverMs };
    });
    await jest.advanceTimersByTimeAsync(40);
    expect(await probed).toEqual({ latencyMs: 40, clockSkewMs: skewMs });
  });

  test('of a server that does not answer rejects with its error', async () => {
    await expect(probe(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
  });

  test('of several servers shows the slowest answer, and the clock that is furthest off, in either direction', () => {
    const [slow, behind, good] = [
      { latencyMs: 30, clockSkewMs: 20 },
      { latencyMs: 10, clockSkewMs: -50 },
      { latencyMs: 5, clockSkewMs: 0 },
    ];
    expect(worstOf([slow, behind, good])).toEqual({ latencyMs: 30, clockSkewMs: -50 });
    expect(worstOf([behind, good, slow])).toEqual({ latencyMs: 30, clockSkewMs: -50 });
    expect(worstOf([good])).toEqual(good);
  });

  test('of several servers says why they take no locks only where none does', () => {
    const [full, readOnly] = [
      { latencyMs: 1, clockSkewMs: 0, refuses: 'full' },
      { latencyMs: 1, clockSkewMs: 0, refuses: 'readOnly' },
    ] as const;
    expect(worstOf([full, readOnly]).refuses).toBe('full');
    expect(worstOf([full, { latencyMs: 1, clockSkewMs: 0 }]).refuses).toBeUndefined();
  });

  test('that nobody answered shows nothing', () => {
    expect(worstOf([])).toEqual({});
  });
});
