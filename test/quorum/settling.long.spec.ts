import 'reflect-metadata';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { makeLocks } from '../support/make-locks';
import { RedisQuorum } from '../support/redis-quorum';
import { TcpProxy } from '../support/tcp-proxy';

/** So far that the next rounds' proposals are not ahead of the servers' clocks by much, in microseconds. */
const AHEAD_US = 500_000;
const ROUNDS = 5;

test('a vote that comes while another fence is being stored does not decide for a fence that a majority is about to lose', async () => {
  const quorum = await RedisQuorum.start();
  const proxies = await Promise.all(quorum.servers.map(({ port }) => TcpProxy.start(port)));
  const [store, other] = await Promise.all(
    [proxies.map(({ url }) => url), quorum.urls].map(async (urls) => {
      const opened = new QuorumLockStore(urls);
      await opened.open({ prefix: 'lock', warn: () => undefined });
      return opened;
    }),
  );
  // The first server answers with a higher fence, which the next two are then given; meanwhile the fourth agrees with
  // the fence that these two had.
  [0, 40, 40, 60, 90].forEach((ms, at) => ((proxies[at] as TcpProxy).latencyMs = ms));
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const ahead = Date.now() * 1_000 + AHEAD_US;
      await Promise.all([0, 4].map((at) => quorum.at(at).client.set('lock:fence:{0}', ahead - at)));
      await Promise.all([1, 2, 3].map((at) => quorum.at(at).client.del('lock:fence:{0}')));
      const lock = await makeLocks(store as QuorumLockStore).acquire('k', { ttl: 10_000, wait: 5_000 });
      // The ticket has the fence of the lock, which a majority must have.
      await makeLocks(other as QuorumLockStore).withLock('k', { ticket: lock.makeTicket(), ttl: 10_000, wait: 5_000 }, ({ fence }) => {
        expect(fence).toBe(lock.fence);
      });
      await lock.release();
    }
  } finally {
    await Promise.all([store, other].map((each) => each?.close()));
    await Promise.all([...proxies, quorum].map((each) => each.stop()));
  }
});
