import type { Redis } from 'ioredis';
import { once } from 'node:events';
import type { Candidate } from '../../lib/leader/candidate';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { opened } from '../support/opened';
import { SentinelGroup } from '../support/redis-sentinel';
import { until } from '../support/until';

const KEY = 'led';
const TTL = 4_000;

let group: SentinelGroup;
let clients: Redis[];
/** The changes of the candidates, by their names: `'first elected'`. */
let changes: string[];

beforeAll(async () => {
  group = await SentinelGroup.start();
});
afterAll(() => group.stop());

beforeEach(() => {
  clients = [];
  changes = [];
});
afterEach(async () => {
  await group.recover();
  clients.forEach((client) => client.disconnect());
});

/** A candidate of another process, as far as its locks know. */
async function stand(name: string, minReplicas: number): Promise<Candidate> {
  const client = group.connect();
  clients.push(client);
  const store = await opened(new RedisLockStore(client, { minReplicas }));
  const locks = makeLocks(store, {
    onTrouble: (trouble) => {
      if (trouble.type === 'leader' && trouble.change !== 'standby' && trouble.change !== 'failed') {
        changes.push(`${name} ${trouble.change}`);
      }
    },
  });
  const lead = async ({ signal }: { signal: AbortSignal }): Promise<void> => {
    if (!signal.aborted) {
      await once(signal, 'abort');
    }
  };
  return locks.lead(KEY, lead, { ttl: TTL, pause: 100 });
}

/**
 * Two candidates, the first of which leads; answers how many trusted their leases at once, at most, when it is asked
 * to.
 */
async function standBoth(minReplicas: number): Promise<{ first: Candidate; second: Candidate; most: () => number }> {
  const first = await stand('first', minReplicas);
  await until('that the first leads', () => first.isLeader());
  const second = await stand('second', minReplicas);
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, Number(first.isLeader()) + Number(second.isLeader()))), 2);
  return {
    first,
    second,
    most: () => {
      clearInterval(watch);
      return most;
    },
  };
}

test.each(['kill', 'demote'] as const)(
  'where replicas confirm grants, one leads after a failover (%s), and never two, and each change has its event',
  async (how) => {
    const { first, second, most } = await standBoth(1);
    await group.failover(how);
    await until('a leader on the new master', () => first.isLeader() !== second.isLeader());
    const leader = first.isLeader() ? first : second;
    await leader.stop();
    const other = leader === first ? second : first;
    await until('that the other one leads', () => other.isLeader(), 30_000);
    await other.stop();
    expect(most()).toBe(1);
    for (const name of ['first', 'second']) {
      const own = changes.filter((change) => change.startsWith(name));
      const times = own.filter((change) => change.endsWith('elected'));
      expect(times.length).toBeGreaterThanOrEqual(1);
      expect(own).toEqual(times.flatMap(() => [`${name} elected`, `${name} revoked`, `${name} ended`]));
    }
  },
  90_000,
);

test('a failover that loses the lock is told to the leader at its next renewal, and one leads again', async () => {
  const { first, second, most } = await standBoth(0);
  const master = await group.failover('demote');
  // As where the old master had not handed it on.
  await master.client.del(`lock:lock:{${KEY}}`);
  await until('that somebody is elected anew', () => changes.filter((change) => change.endsWith('elected')).length > 1, 30_000);
  await until('that the first one has ended', () => changes.includes('first ended'));
  expect(changes.indexOf('first revoked')).toBeLessThan(changes.indexOf('first ended'));
  await Promise.all([first.stop(), second.stop()]);
  most();
});
