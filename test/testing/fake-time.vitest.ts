import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { SCENARIOS } from './fake-time.js';

const ALL = ['nextTick', 'queueMicrotask', 'setTimeout', 'setInterval', 'setImmediate', 'performance', 'Date', 'hrtime'] as const;

describe.each<[string, Parameters<typeof vi.useFakeTimers>[0]]>([
  ['by default', undefined],
  ['all', { toFake: [...ALL] }],
])('with the timers of vitest, %s', (_which, options) => {
  beforeEach(() => void vi.useFakeTimers(options));
  afterEach(() => void vi.useRealTimers());

  test.each(Object.entries(SCENARIOS))('%s', (_name, scenario) => scenario((ms) => vi.advanceTimersByTimeAsync(ms)));
});
