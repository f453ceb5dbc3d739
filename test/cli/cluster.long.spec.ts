import type { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli, cliUntil } from '../support/cli';
import { RedisCluster } from '../support/redis-cluster';
import { RedisServer } from '../support/redis-server';
import { StoresOnClients } from '../support/stores-on-clients';
import { describeCommands } from './commands-suite';

const PASSWORD = 'not-to-be-printed';

let cluster: RedisCluster;
let store: RedisLockStore;
let env: NodeJS.ProcessEnv;
const stores = new StoresOnClients();

const openStore = () => stores.open(cluster.connect());

beforeAll(async () => {
  cluster = await RedisCluster.start();
  await Promise.all(
    cluster.nodes.map(({ client }) =>
      client.call('ACL', 'SETUSER', 'locker', 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', 'allcommands'),
    ),
  );
  store = await openStore();
  // Two nodes tell of the others, and the login is not in the URLs.
  const [first, second] = cluster.nodes as readonly [RedisServer, RedisServer];
  env = { LOCKS_REDIS_CLUSTER: `${first.url},${second.url}`, LOCKS_USER: 'locker', LOCKS_PASSWORD: PASSWORD };
});
afterAll(async () => {
  await store.close();
  stores.end();
  await cluster.stop();
});

describeCommands(() => ({ store, env, otherStore: openStore }));

test('the doctor names each master, and fails where slots have no node', async () => {
  const whole = await cli(env, ['doctor']);
  expect(whole.out).toMatch(/^ok {4}cluster: slots: Each slot has a node\.$/m);
  const masters = await cluster.masters();
  for (const { port } of masters) {
    expect(whole.out).toMatch(new RegExp(`^ok {4}node 127\\.0\\.0\\.1:${port}: version: Redis \\d+`, 'm'));
  }
  const owner = masters.find(({ port }) => port === cluster.nodes[0]?.port) as RedisServer;
  // The owner first: what it says of its slots, the others would believe.
  for (const { client } of [owner, ...cluster.nodes.filter((node) => node !== owner)]) {
    await client.call('CLUSTER', 'DELSLOTS', 0);
  }
  const part = await cliUntil(env, ['doctor'], ({ out }) => out.includes('have no node'));
  expect(part.code).toBe(1);
  expect(part.out).toMatch(/^FAIL {2}cluster: slots: 1 of 16384 slots have no node/m);
  await owner.client.call('CLUSTER', 'ADDSLOTS', 0);
  await cluster.settled();
});

test('the doctor tries to write on each master', async () => {
  const masters = await cluster.masters();
  const [first] = masters as [RedisServer];
  await first.client.config('SET', 'min-replicas-to-write', 9);
  const refused = await cli(env, ['doctor']);
  await first.client.config('SET', 'min-replicas-to-write', 0);
  expect(refused).toMatchObject({ code: 1, err: '' });
  expect(refused.out.match(/^FAIL.*$/gm)).toEqual([
    expect.stringMatching(new RegExp(`^FAIL {2}node .*:${first.port}: writes: .*NOREPLICAS`)),
  ]);
  expect(refused.out.match(/^ok .*: writes: /gm)).toHaveLength(masters.length - 1);
});

test('a login that is wrong, and a server that is no Cluster, are named with the next step', async () => {
  // The answers of the nodes, and the closing of the connections to them, may come in any order.
  const wrong = await cliUntil({ ...env, LOCKS_PASSWORD: `wrong-${PASSWORD}` }, ['list'], ({ err }) => err.startsWith('Redis refused '));
  expect(wrong).toMatchObject({ code: 3, out: '' });
  expect(wrong.err).toMatch(/^Redis refused .*Correct the user name and password.*\n$/);
  expect(wrong.err).not.toContain(PASSWORD);
  const node = await cli({ ...env, LOCKS_REDIS_CLUSTER: '', LOCKS_REDIS: (cluster.nodes[0] as RedisServer).url }, [
    'inspect',
    'any',
    '--json',
  ]);
  expect(node.code === 1 || /pass its URL to --redis-cluster\.\n$/.test(node.err)).toBe(true);
  const single = await RedisServer.start();
  try {
    const run = await cli({ LOCKS_REDIS_CLUSTER: single.url }, ['list']);
    expect(run).toMatchObject({ code: 3, out: '' });
    expect(run.err).toMatch(/The server is in no Cluster: pass its URL to --redis\.\n$/);
  } finally {
    await single.stop();
  }
});
