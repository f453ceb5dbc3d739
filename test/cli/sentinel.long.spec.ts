import type { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { cli } from '../support/cli';
import { SentinelGroup } from '../support/redis-sentinel';
import { RedisServer } from '../support/redis-server';
import { StoresOnClients } from '../support/stores-on-clients';
import { describeCommands } from './commands-suite';

const PASSWORD = 'not-to-be-printed';

let group: SentinelGroup;
let store: RedisLockStore;
let env: NodeJS.ProcessEnv;
const stores = new StoresOnClients();

const openStore = () => stores.open(group.connect());

beforeAll(async () => {
  group = await SentinelGroup.start();
  for (const { client } of group.servers) {
    await client.call('ACL', 'SETUSER', 'locker', 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', 'allcommands');
  }
  store = await openStore();
  const sentinels = group.sentinelPorts.map((port) => `redis://127.0.0.1:${port}`);
  env = { LOCKS_REDIS_SENTINEL: sentinels.join(','), LOCKS_MASTER: 'locks', LOCKS_USER: 'locker', LOCKS_PASSWORD: PASSWORD };
});
afterAll(async () => {
  await store.close();
  stores.end();
  await group.stop();
});

describeCommands(() => ({ store, env, otherStore: openStore }));

test('the doctor names what each Sentinel says, and the master', async () => {
  const { port } = await group.master();
  const { code, out } = await cli(env, ['doctor']);
  expect(code).toBe(0);
  for (const at of [1, 2, 3]) {
    expect(out).toMatch(new RegExp(`^ok {4}sentinel ${at} of 3: It names the master 127\\.0\\.0\\.1:${port}\\.$`, 'm'));
  }
  expect(out).toMatch(/^ok {4}master: version: Redis \d+/m);
  expect(out).toMatch(/^ok {4}master: replicas: 2 are connected\.$/m);
});

test('a Sentinel that is away is a warning, and the others lead to the master', async () => {
  const away = { ...env, LOCKS_REDIS_SENTINEL: `redis://127.0.0.1:1,${env['LOCKS_REDIS_SENTINEL']}` };
  const { code, out } = await cli(away, ['doctor']);
  expect(out).toMatch(/^warn {2}sentinel 1 of 4: Redis did not answer/m);
  expect(code).toBe(0);
  expect(await cli(away, ['list'])).toMatchObject({ code: 0, err: '' });
});

test('a name that no Sentinel knows is said with those that they know, and a server that is no Sentinel', async () => {
  const strange = { ...env, LOCKS_MASTER: 'other' };
  const doctor = await cli(strange, ['doctor']);
  expect(doctor.code).toBe(1);
  expect(doctor.out).toMatch(/^FAIL {2}sentinel 1 of 3: It knows no master "other"\. It watches locks: pass one to --master\.$/m);
  const list = await cli(strange, ['list']);
  expect(list).toMatchObject({ code: 3, out: '' });
  expect(list.err).toMatch(/^Redis did not answer: .* See which masters the Sentinels watch: doctor\.\n$/);
  const server = await cli({ ...env, LOCKS_REDIS_SENTINEL: (group.servers[1] as RedisServer).url }, ['doctor']);
  expect(server.code).toBe(1);
  expect(server.out).toMatch(/^FAIL {2}sentinel 1 of 1: The server is no Sentinel\. .* one server to --redis\.$/m);
});

test('after a failover, the same URLs lead to the new master', async () => {
  const master = await group.failover('kill');
  const { out } = await cli(env, ['doctor']);
  expect(out).toContain(`It names the master 127.0.0.1:${master.port}.`);
  expect(out).toMatch(/^ok {4}store: It answers/m);
});
