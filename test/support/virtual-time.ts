import { jest } from '@jest/globals';
import { AsyncResource } from 'node:async_hooks';

/**
 * Plays the time of each test of a file, or of the block in which it is called: all timers and clocks of the global
 * object, and `AbortSignal.timeout`. Time passes only while nobody has anything to do, and then goes straight to the
 * next timer. So a test waits for nothing, and a machine that stands still costs it no time: `await sleep(2_500)` takes
 * 2,500 ms of the test, and none of the machine. Things that take real time, such as a socket or a file, must not be
 * waited for: meanwhile time flies.
 *
 * `jest.advanceTimersByTimeAsync` goes on by an exact time. `{ passes: false }`: time passes by that alone.
 */
export function playTime({ passes = true }: { passes?: boolean } = {}): void {
  beforeEach(() => startTime({ passes }));
  // Not after each: what closes the things of a test waits in its time, too.
  afterAll(stopTime);
}

/** Starts the played time for a single test, as `playTime` does before each test; `stopTime()` ends it. */
export function startTime({ passes = true }: { passes?: boolean } = {}): void {
  stopTime();
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] });
  keepContexts();
  jest.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    const end = new AbortController();
    setTimeout(() => end.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms);
    return end.signal;
  });
  if (passes) {
    jest.setTimerTickMode({ mode: 'nextAsync' });
  }
}

/** Real time again. Timers that are still there never run. */
export function stopTime(): void {
  if (jest.isMockFunction(AbortSignal.timeout)) {
    jest.mocked(AbortSignal.timeout).mockRestore();
    jest.setTimerTickMode({ mode: 'manual' });
    jest.useRealTimers();
  }
}

/** A sleep in the time that is played. That of `node:timers/promises` takes real time. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * As with real timers, code that a timer calls runs in the context of the code that set it; else the context would be
 * that of whoever lets time pass.
 */
function keepContexts(): void {
  for (const name of ['setTimeout', 'setInterval'] as const) {
    const set = globalThis[name] as (run: () => void, ...rest: unknown[]) => unknown;
    globalThis[name] = Object.assign((run: () => void, ...rest: unknown[]) => set(AsyncResource.bind(run), ...rest), set) as never;
  }
}
