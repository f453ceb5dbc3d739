import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, type LockError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { isOfSlowness } from '../support/no-warning';
import { opened } from '../support/opened';
import { RedisCluster } from '../support/redis-cluster';
import { clusterClient, type ClusterClient } from '../support/redis-source';
import { refusalOf } from '../support/refusal-of';
import { until } from '../support/until';
import { saying } from '../support/saying';

const KEYS = Array.from({ length: 12 }, (_, at) => `key ${at}`);
const PLACES = ['~lock:*', '&lock:wake:*'];
/** The rights that one server needs, and the further rights for a cluster. */
const RIGHTS = [
  '+evalsha', '+eval', '+get', '+getset', '+set', '+del', '+exists', '+hget', '+hset', '+hdel', '+hlen', '+hmget', '+hgetall',
  '+zadd', '+zrange', '+zrank', '+zrem', '+zscore', '+pexpire', '+pttl', '+time', '+publish', '+subscribe', '+ping', '+info',
]; // prettier-ignore
const CLUSTER_RIGHTS = ['+cluster|slots', '+asking'];
const ALL = [...RIGHTS, ...CLUSTER_RIGHTS];

let cluster: RedisCluster;
let clients: ClusterClient[];
let warnings: string[];

beforeAll(async () => {
  cluster = await RedisCluster.start('--repl-diskless-load', 'swapdb');
});
afterAll(() => cluster.stop());
beforeEach(() => {
  clients = [];
  warnings = [];
});
afterEach(async () => {
  for (const client of clients) {
    client.close();
  }
});

/** A user with these rights on every node, replicas included: they are not replicated. */
async function grant(rights: readonly string[]): Promise<void> {
  for (const { client } of cluster.nodes) {
    await client.acl('SETUSER', 'locker', 'reset', 'on', '>secret', ...PLACES, ...rights);
    await client.script('FLUSH');
  }
}

async function connectAs(rights: readonly string[], options?: ConstructorParameters<typeof RedisLockStore>[1]): Promise<RedisLockStore> {
  await grant(rights);
  const client = clusterClient(cluster.nodes, { redisOptions: { username: 'locker', password: 'secret' }, lazyConnect: true });
  clients.push(client);
  return opened(new RedisLockStore(client.source, options), (message) => isOfSlowness(message) || warnings.push(message));
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;
const without = (right: string): string[] => ALL.filter((other) => other !== right);

test('the rights of a single server, CLUSTER SLOTS and ASKING are enough on every shard, also while a slot moves', async () => {
  const locks = makeLocks(await connectAs(ALL));
  await Promise.all(
    KEYS.map((key) =>
      locks.withLock(key, { ttl: 1_500 }, async (lock) => {
        await locks.withLock(key, { ticket: lock.makeTicket() }, () => sleep(2_000));
        expect(lock.isHeld()).toBe(true);
      }),
    ),
  );
  const from = await cluster.masterOf(lockOf('moved'));
  const to = (await cluster.masters()).find((master) => master !== from) as typeof from;
  await from.client.acl('LOG', 'RESET');
  await to.client.acl('LOG', 'RESET');
  const waited: Promise<number>[] = [];
  await cluster.reshard(lockOf('moved'), to, async () => {
    waited.push(locks.withLock('moved', { wait: 10_000 }, ({ fence }) => fence));
    // Long enough for a node to have said ASK.
    await sleep(300);
  });
  expect(waited.length).toBeGreaterThan(0);
  await Promise.all(waited);
  const refused = await Promise.all([from, to].map(({ client }) => client.acl('LOG')));
  // Clients ask for these as well, and do without.
  expect(refused.flat().filter((entry) => !/client\|set(name|info)|readonly|readwrite/.test(String(entry)))).toEqual([]);
  expect(warnings).toEqual([]);
});

test.each(CLUSTER_RIGHTS)('without %s the start fails with an error that names it', async (right) => {
  const error = await refusalOf(() => connectAs(without(right)));
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect((error as LockError).detail).toMatch(/smallest ACL/);
  expect((error as LockError).detail).toContain(`'${right.slice(1)}'`);
});

test('locks that replicas confirm need the right to WAIT besides, and a start without it names it', async () => {
  expect(await refusalOf(() => connectAs(ALL, { minReplicas: 1 }))).toEqual(saying(/'wait'.*smallest ACL/));
  const locks = makeLocks(await connectAs([...ALL, '+wait'], { minReplicas: 1 }));
  await Promise.all(
    KEYS.map((key) =>
      locks.withLock(key, { ttl: 2_000 }, async (lock) => {
        await sleep(1_200);
        expect(lock.isHeld()).toBe(true);
      }),
    ),
  );
  expect(warnings).toEqual([]);
});

test('a node on which the user was given fewer rights fails the calls of its keys, which says so, and no others', async () => {
  const locks = makeLocks(await connectAs(ALL));
  const shard = await cluster.masterOf(lockOf('key 0'));
  await shard.client.acl('SETUSER', 'locker', '-evalsha', '-eval');
  for (const key of KEYS) {
    const outcome = await locks.withLock(key, () => 'served').catch((error: LockError) => error.detail);
    const isThere = (await cluster.masterOf(lockOf(key))) === shard;
    expect(outcome).toMatch(isThere ? new RegExp(`^Lock "${key}": Redis refused a command: NOPERM .*'evalsha'.*smallest ACL`) : /^served$/);
  }
});

test.each([
  ['+publish', /Redis refused PUBLISH on lock:wake:\*: NOPERM .*'publish'.* every 300 ms/],
  ['+subscribe', /Redis refused SUBSCRIBE on lock:wake:\*: NOPERM .*'subscribe'.* every 300 ms/],
])(
  'without %s a warning names it, and waiters poll',
  async (right, warning) => {
    const locks = makeLocks(await connectAs(without(right)));
    const other = makeLocks(await connectAs(without(right)));
    await until('two warnings', () => warnings.length === 2);
    expect(warnings).toEqual([expect.stringMatching(warning), expect.stringMatching(warning)]);
    const held = await locks.acquire('k');
    const waiting = other.withLock('k', () => performance.now());
    await sleep(100);
    const releasedAt = performance.now();
    await held.release();
    expect((await waiting) - releasedAt).toBeLessThan(900);
    // Each subscriber is asked whether it hears after 5 and 10 seconds.
    await sleep(12_000);
    expect(warnings).toHaveLength(2);
  },
  60_000,
);
