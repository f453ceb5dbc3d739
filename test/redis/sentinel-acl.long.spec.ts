import { Redis } from 'ioredis';
import { LockConfigurationError, type LockError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { opened } from '../support/opened';
import { SentinelGroup } from '../support/redis-sentinel';
import { refusalOf } from '../support/refusal-of';
import { until } from '../support/until';

/** Of the user on the servers, which are what one server alone asks for. */
const RIGHTS = [
  '+evalsha', '+eval', '+get', '+getset', '+set', '+del', '+exists', '+hget', '+hset', '+hdel', '+hlen', '+hmget', '+hgetall',
  '+zadd', '+zrange', '+zrank', '+zrem', '+zscore', '+pexpire', '+pttl', '+time', '+publish', '+subscribe', '+ping', '+info',
]; // prettier-ignore
/** Of the user on the sentinels. */
const SENTINEL_RIGHTS = ['+sentinel|get-master-addr-by-name', '+sentinel|sentinels', '+subscribe', '&+switch-master'];

let group: SentinelGroup;
let sentinels: Redis[];
const clients: Redis[] = [];
let warnings: string[];

beforeAll(async () => {
  group = await SentinelGroup.start();
  sentinels = group.sentinelPorts.map((port) => new Redis(port, '127.0.0.1'));
  for (const server of group.servers) {
    await server.client.acl('SETUSER', 'locker', 'reset', 'on', '>secret', '~lock:*', '&lock:wake:*', ...RIGHTS);
  }
});
afterAll(async () => {
  for (const sentinel of sentinels) {
    sentinel.disconnect();
  }
  await group.stop();
});
beforeEach(() => {
  warnings = [];
});
afterEach(async () => {
  clients.splice(0).forEach((client) => client.disconnect());
});

async function connectAs(sentinelRights: readonly string[]): Promise<RedisLockStore> {
  for (const sentinel of sentinels) {
    await sentinel.acl('SETUSER', 'watcher', 'reset', 'on', '>secret', ...sentinelRights);
  }
  const client = new Redis({
    sentinels: group.sentinelPorts.map((port) => ({ host: '127.0.0.1', port })),
    name: 'locks',
    username: 'locker',
    password: 'secret',
    sentinelUsername: 'watcher',
    sentinelPassword: 'secret',
    lazyConnect: true,
  });
  clients.push(client);
  client.on('error', () => undefined);
  return opened(new RedisLockStore(client), (message) => warnings.push(message));
}

test.each(SENTINEL_RIGHTS.slice(0, 2))('without %s on the sentinels the start fails with an error that names it', async (right) => {
  const error = await refusalOf(() => connectAs(SENTINEL_RIGHTS.filter((other) => other !== right)));
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect((error as LockError).detail).toContain(`NOPERM this user has no permissions to run the '${right.slice(1)}' command`);
});

test('the smallest ACL of servers and sentinels is enough, also to leave a deposed master at once', async () => {
  const locks = makeLocks(await connectAs(SENTINEL_RIGHTS));
  expect(await locks.withLock('k', () => 'served')).toBe('served');
  const master = await group.failover('demote');
  const startedAt = performance.now();
  await until('the first grant of the new master', () =>
    locks.withLock('k', { wait: 5_000 }, async ({ fence }) => (await master.client.hget('lock:lock:{k}', 'fence')) === String(fence)),
  );
  // Sentinel notifies the deposed master after 4 s; until then only a client that watches the sentinels leaves it.
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(warnings).toEqual([]);
});
