import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisQuorum } from '../support/redis-quorum';
import { TcpProxy } from '../support/tcp-proxy';
import { newHold } from '../support/new-hold';

const HOUR_MS = 3_600_000;
const LONGEST_MS = 1_000;

async function obtain(store: QuorumLockStore): Promise<HoldRecord> {
  const hold = newHold('k', { ttlMs: LONGEST_MS, limitMs: Math.min(LONGEST_MS / 4, 1_000) });
  for (;;) {
    const reply = await store.acquire(hold).catch(() => undefined);
    if (reply?.fence !== undefined) {
      return { ...hold, fence: reply.fence };
    }
    await sleep(50);
  }
}

test('fences rise though a process whose clock was ahead had one that only a server which is away remembers', async () => {
  const quorum = await RedisQuorum.start();
  const [links, others] = await Promise.all([1, 2].map(() => Promise.all(quorum.servers.map(({ port }) => TcpProxy.start(port)))));
  const [ahead, right] = await Promise.all(
    [links, others].map(async (proxies) => {
      const store = new QuorumLockStore(
        (proxies as TcpProxy[]).map(({ url }) => url),
        { longestLease: LONGEST_MS },
      );
      await store.open({ prefix: 'lock', warn: () => undefined });
      return store;
    }),
  );
  const now = jest.spyOn(Date, 'now');
  try {
    [3, 4].forEach((at) => (((links as TcpProxy[])[at] as TcpProxy).mode = 'blackhole'));
    const real = Date.now();
    now.mockReturnValue(real + HOUR_MS);
    const first = await obtain(ahead as QuorumLockStore);
    now.mockRestore();
    await (ahead as QuorumLockStore).release(first);
    await Promise.all([0, 1].map((at) => quorum.at(at).kill()));
    await Promise.all([0, 1].map((at) => quorum.at(at).start()));
    ((others as TcpProxy[])[2] as TcpProxy).mode = 'blackhole';
    const second = await obtain(right as QuorumLockStore);
    expect(second.fence).toBeGreaterThan(first.fence);
  } finally {
    now.mockRestore();
    await Promise.all([ahead, right].map((store) => store?.close()));
    await Promise.all([...(links ?? []), ...(others ?? []), quorum].map((each) => each.stop()));
  }
});
