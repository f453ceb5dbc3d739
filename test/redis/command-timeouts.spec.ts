import { jest } from '@jest/globals';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import type { LockStoreError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { freePort } from '../support/redis-server';
import { NoReply } from '../../lib/kit/no-reply';
import { CommandTimeouts, OpenCommand } from '../../lib/redis/connection/command-timeouts';
import { startTime, stopTime } from '../support/virtual-time';

test('the silence of a connection ends with it, and does not cost the one after it', async () => {
  let silences = 0;
  const timeouts = new CommandTimeouts(() => silences++);
  let breakConnection!: (error: Error) => void;
  const unanswered = new Promise((_, reject) => {
    breakConnection = reject;
  });
  await expect(timeouts.bound(unanswered, 100)).rejects.toThrow(NoReply);
  breakConnection(new Error('Connection is closed.'));
  await sleep(1_500);
  await timeouts.bound(sleep(300), 5_000);
  expect(silences).toBe(0);
});

test('a connection that is closed while the process stands still is not taken for one that is silent', async () => {
  let silences = 0;
  const timeouts = new CommandTimeouts(() => silences++);
  const never = new Promise<never>(() => undefined);
  await expect(timeouts.bound(never, 100)).rejects.toThrow(NoReply);
  const open = timeouts.bound(never, 60_000).catch((error: Error) => error.message);
  await sleep(50);
  setTimeout(() => timeouts.stop(), 50);
  // Both timers are due when it goes on: the one that looks for silence, and the end of the store.
  const over = performance.now() + 1_500;
  while (performance.now() < over);
  expect(await open).toBe('the store was closed');
  await turn();
  await turn();
  expect(silences).toBe(0);
});

describe('a connection on which nothing is answered', () => {
  let timeouts: CommandTimeouts;
  let startedAt: number;
  let silentAt: number[];

  beforeEach(() => {
    startTime({ passes: false });
    // A process does not begin with its first command.
    jest.advanceTimersByTime(100);
    startedAt = performance.now();
    silentAt = [];
    timeouts = new CommandTimeouts(() => silentAt.push(performance.now() - startedAt));
  });
  afterEach(() => {
    timeouts.stop();
    stopTime();
  });

  /** Sends a command that is answered after so many milliseconds. */
  function send(limitMs: number, answeredAfterMs = Infinity): void {
    const reply = new Promise<void>((resolve) => answeredAfterMs < Infinity && setTimeout(resolve, answeredAfterMs));
    timeouts.bound(reply, limitMs).catch(() => undefined);
  }

  const passes = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

  test('is silent since the first of its commands that timed out, however many come after that', async () => {
    for (let at = 0; at < 1_500; at += 100) {
      send(100);
      await passes(100);
    }
    expect(silentAt).toHaveLength(1);
    expect(silentAt[0]).toBeGreaterThanOrEqual(1_000);
    expect(silentAt[0]).toBeLessThan(1_100);
  });

  test('is not silent where another command was answered after the one that timed out had been sent', async () => {
    send(300);
    await passes(10);
    send(5_000, 100);
    await passes(200);
    send(10_000);
    await passes(5_000);
    expect(silentAt).toEqual([]);
  });

  test('is waited for longer where one of its last replies was slow', async () => {
    send(5_000, 400);
    await passes(500);
    send(5_000, 10);
    await passes(20);
    send(100);
    send(10_000);
    const sentMs = performance.now() - startedAt;
    await passes(5_000);
    // Four times the 400 ms, a tenth of which is forgotten with each reply that is faster.
    expect(silentAt).toHaveLength(1);
    expect((silentAt[0] as number) - sentMs).toBeGreaterThanOrEqual(1_440);
    expect((silentAt[0] as number) - sentMs).toBeLessThan(1_500);
  });
});

test('a reply that comes after the limit is not read', async () => {
  const timeouts = new CommandTimeouts(() => undefined);
  const read: unknown[] = [];
  let command!: OpenCommand;
  const failed = new Promise((_, reject) => {
    command = new OpenCommand(timeouts, 100, (reply) => read.push(reply), reject);
  });
  await expect(failed).rejects.toThrow(NoReply);
  command.answered('late');
  expect(read).toEqual([]);
  expect(timeouts.busy).toBe(false);
});

test.each([
  ['a cluster', (port: number) => new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true, enableAutoPipelining: true })],
  ['a master behind sentinels', (port: number) => new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: 'm', lazyConnect: true })],
])('commands for %s that was never reached are not kept for when it is', async (_, connect) => {
  const client = connect(await freePort());
  client.on('error', () => undefined);
  const made: { options: { enableAutoPipelining?: boolean }; offlineQueue?: { length: number } }[] = [];
  const duplicate = client.duplicate.bind(client) as (...args: never[]) => never;
  client.duplicate = (...args: never[]) => {
    const one = duplicate(...args);
    made.push(one);
    return one;
  };
  const store = new RedisLockStore(client);
  const locks = makeLocks(store, { onTrouble: () => undefined });
  const refused = await Promise.allSettled(
    Array.from({ length: 20 }, (__, at) => locks.withLock(`k${at}`, { wait: 0, ttl: 400 }, () => at)),
  );
  expect(refused.map((end) => end.status === 'rejected' && (end.reason as LockStoreError).unknown)).toEqual(Array(20).fill(false));
  // The subscriber's own SUBSCRIBE may wait.
  expect(made.map(({ offlineQueue }) => offlineQueue?.length ?? 0).filter((length) => length > 1)).toEqual([]);
  expect(made.map(({ options }) => options.enableAutoPipelining ?? false)).toEqual(made.map(() => false));
  await store.close();
  client.disconnect();
});
