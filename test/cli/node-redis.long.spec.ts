import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { Certificates } from '../support/certificates';
import { cli, cliUntil } from '../support/cli';
import { makeLocks } from '../support/make-locks';
import { QuorumStores } from '../support/quorum-stores';
import { RedisCluster } from '../support/redis-cluster';
import { RedisQuorum } from '../support/redis-quorum';
import { freePort, RedisServer } from '../support/redis-server';

const WITHOUT_IOREDIS = { NODE_OPTIONS: '--import=./test/support/no-ioredis.mjs' };

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server?.stop());

test('one server, with a user and a database', async () => {
  await server.client.call('ACL', 'SETUSER', 'eve', 'on', '>p:w', '~*', '&*', '+@all');
  const store = new RedisLockStore(`${server.url}/3`);
  await store.open({ prefix: 'lock', warn: () => undefined });
  const locks = makeLocks(store, { ttl: 60_000 });
  const env = { ...WITHOUT_IOREDIS, LOCKS_REDIS: `${server.url.replace('//', '//eve@')}/3`, LOCKS_PASSWORD: 'p:w' };
  const lost = await locks
    .withLock('balance:1', async ({ fence }) => {
      await cliUntil(env, ['list'], ({ out }) => /^balance:1 .* yes$/m.test(out));
      await cli(env, ['release', 'balance:1', '--fence', String(fence), '--yes']);
    })
    .catch((error: Error) => error);
  expect(lost).toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
  expect((await cli(env, ['doctor'])).out).toMatch(/^ok {4}store/m);
  expect((await cli({ ...env, LOCKS_PASSWORD: 'other' }, ['list'])).err).toMatch(/WRONGPASS/);
  await locks.shutdown();
  await store.close();
});

test('a quorum', async () => {
  const stores = new QuorumStores(await RedisQuorum.start(3));
  const { urls } = stores.quorum;
  const store = await stores.open(urls);
  await stores.allVote(store);
  const env = { ...WITHOUT_IOREDIS, LOCKS_QUORUM: urls.join(',') };
  await makeLocks(store, { ttl: 60_000 }).withLock('balance:2', async () => {
    await cliUntil(env, ['list'], ({ out }) => /^balance:2 .* yes$/m.test(out));
  });
  await stores.stop();
}, 120_000);

test('the rules of a store', async () => {
  const { code, out, err } = await cli({ ...WITHOUT_IOREDIS, LOCKS_REDIS: server.url }, ['contract']);
  expect({ code, err, out }).toMatchObject({ code: 0, err: '' });
}, 300_000);

test('a server with a certificate', async () => {
  const files = new Certificates();
  const port = await freePort();
  const encrypted = await RedisServer.start(...files.ofRedis(port));
  const env = { ...WITHOUT_IOREDIS, LOCKS_REDIS: `rediss://127.0.0.1:${port}` };
  const known = ['--ca', files.authority, '--cert', files.path('client.pem'), '--key', files.path('client-key.pem')];
  expect((await cliUntil(env, ['list', ...known], ({ code }) => code === 0)).out).toMatch(/^No locks are held\./);
  expect(await cli(env, ['list'])).toMatchObject({ code: 3 });
  await encrypted.stop();
  files.remove();
});

test('a Cluster', async () => {
  const cluster = await RedisCluster.start();
  const env = { ...WITHOUT_IOREDIS, LOCKS_REDIS_CLUSTER: cluster.nodes[0]?.url };
  expect((await cliUntil(env, ['list'], ({ code }) => code === 0)).out).toMatch(/^No locks are held\./);
  await cluster.stop();
}, 120_000);

test('what only ioredis can do says so', async () => {
  const { url } = server;
  const needsIoredis = { err: expect.stringMatching(/ioredis.*npm install ioredis/) };
  expect(await cli({ ...WITHOUT_IOREDIS, LOCKS_REDIS: `${url}?keyPrefix=app:` }, ['list'])).toMatchObject(needsIoredis);
  expect(await cli({ ...WITHOUT_IOREDIS, LOCKS_REDIS_SENTINEL: url, LOCKS_MASTER: 'locks' }, ['list'])).toMatchObject(needsIoredis);
});
