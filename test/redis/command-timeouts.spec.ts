import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import type { LockStoreError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { freePort } from '../support/redis-server';
import { NoReply } from '../../lib/stores/kit/no-reply';
import { CommandTimeouts, OpenCommand } from '../../lib/stores/redis/connection/command-timeouts';

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
