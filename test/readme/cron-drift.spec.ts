/** @jest-environment-options {"allowedStopMs": 600000} */
// Nothing here depends on the time that really passes.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { CronJob } from 'cron';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';

const PERIODS = 10;
const PERIOD_MS = 60_000;
/** Each minute, by a clock, and by one that is five seconds late. */
const REPLICAS = ['0 * * * * *', '5 * * * * *'];

beforeEach(() => void jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) - 1_000 }));
afterEach(() => void jest.useRealTimers());

/** How often two replicas run a job of each minute, in so many minutes. */
async function runsWith(minHold: string): Promise<number> {
  const locks = makeLocks(new MemoryLockStore());
  let runs = 0;
  const onTick = async (): Promise<void> => void (await locks.withLock('job:report', { onBusy: 'skip', minHold }, () => runs++));
  const jobs = REPLICAS.map((cronTime) => CronJob.from({ cronTime, onTick, start: true, timeZone: 'UTC' }));
  await jest.advanceTimersByTimeAsync(PERIODS * PERIOD_MS);
  await Promise.all(jobs.map((job) => job.stop()));
  await locks.shutdown();
  return runs;
}

test.each(['0s', '4s'])('a minHold of %s is shorter than the clocks differ: both replicas run the job', async (minHold) => {
  expect(await runsWith(minHold)).toBe(2 * PERIODS);
});

test.each(['6s', '30s', '55s'])('a minHold of %s is between that and the period: the job runs once in each', async (minHold) => {
  expect(await runsWith(minHold)).toBe(PERIODS);
});

test('a minHold that is longer than the period skips runs', async () => {
  expect(await runsWith('61s')).toBeLessThan(PERIODS);
});
