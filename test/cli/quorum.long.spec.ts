import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { cli, cliUntil } from '../support/cli';
import { QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { describeCommands } from './commands-suite';

let stores: QuorumStores;
let store: QuorumLockStore;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  stores = new QuorumStores(await RedisQuorum.start(3));
  store = await stores.open(stores.quorum.urls);
  await stores.allVote(store);
  env = { LOCKS_QUORUM: stores.quorum.urls.join(',') };
});
afterAll(() => stores.stop());

const otherStore = () => stores.open(stores.quorum.urls);

describeCommands(() => ({ store, env, otherStore }));

test('a server that refuses is named with the right that is missing, and no outage is told', async () => {
  const rights = ['on', '>secret', 'allkeys', 'allchannels', 'allcommands'];
  for (const { client } of stores.quorum.servers) {
    await client.call('ACL', 'SETUSER', 'untimed', ...rights, '-time');
    await client.call('ACL', 'SETUSER', 'mute', ...rights, '-publish');
  }
  const as = (user: string, most: number): NodeJS.ProcessEnv => ({
    LOCKS_QUORUM: stores.quorum.urls.map((url, at) => (at < most ? url.replace('//', `//${user}:secret@`) : url)).join(','),
  });
  const minority = await cli(as('untimed', 1), ['doctor']);
  expect(minority.out).toMatch(/^warn {2}server 1 of 3: rights: The user lacks \+time/m);
  const majority = await cli(as('untimed', 2), ['doctor']);
  expect(majority.out).toMatch(/^FAIL {2}store: server 1 of 3 .*Redis refused TIME/m);
  expect(minority.out + majority.out).not.toMatch(/not answer|can be reached/);
  expect(await cli(as('untimed', 2), ['list'])).toMatchObject({ code: 3, out: '', err: expect.stringContaining('Redis refused TIME') });
  const mute = await cliUntil(as('mute', 3), ['processes'], ({ err }) => err.startsWith('Processes cannot be asked: '));
  expect(mute).toMatchObject({ code: 3, out: '', err: expect.stringContaining("'publish'") });
});

test('the doctor says of a server that is full or a replica that it grants nothing, and fails where a majority is', async () => {
  const [full, replica] = [stores.quorum.at(0).client, stores.quorum.at(1).client];
  await full.config('SET', 'maxmemory', 1);
  const one = await cli(env, ['doctor']);
  await replica.replicaof('127.0.0.1', 1);
  const two = await cli(env, ['doctor']);
  await Promise.all([full.config('SET', 'maxmemory', 0), replica.replicaof('NO', 'ONE')]);
  expect(one).toMatchObject({ code: 0, err: '' });
  expect(one.out).toMatch(/^warn {2}server 1 of 3: memory: It is full/m);
  expect(one.out).toMatch(/^warn {2}member 1 of 3: Its memory is full and it evicts nothing, so it grants nothing\./m);
  expect(two).toMatchObject({ code: 1, err: '' });
  expect(two.out).toMatch(/^FAIL {2}store: Fewer servers vote than a majority/m);
  expect(two.out).toMatch(/^warn {2}member 2 of 3: It takes no writes, so it grants nothing\./m);
});

test('the doctor tries to write on each server of a quorum, and fails where a majority refuses', async () => {
  const [first, second] = [stores.quorum.at(0).client, stores.quorum.at(1).client];
  await first.config('SET', 'min-replicas-to-write', 1);
  const one = await cli(env, ['doctor']);
  await second.client('PAUSE', 600_000, 'WRITE');
  const two = await cli(env, ['doctor']);
  await Promise.all([first.config('SET', 'min-replicas-to-write', 0), second.client('UNPAUSE')]);
  expect(one).toMatchObject({ code: 0, err: '' });
  expect(one.out).toMatch(/^warn {2}server 1 of 3: writes: .*NOREPLICAS/m);
  expect(one.out).toMatch(/^ok {4}server 2 of 3: writes: /m);
  expect(two).toMatchObject({ code: 1, err: '' });
  expect(two.out).toMatch(/^warn {2}server 2 of 3: writes: .* CLIENT PAUSE /m);
  expect(two.out).toMatch(/^FAIL {2}store: Fewer servers vote than a majority/m);
});

test('the doctor warns of a server that is away, and fails without a majority', async () => {
  const [first, second, third] = stores.quorum.urls as [string, string, string];
  const gone = 'redis://:not-to-be-printed@127.0.0.1:1';
  const [minority, majority, listed] = await Promise.all([
    cli({ LOCKS_QUORUM: [first, second, gone].join(',') }, ['doctor']),
    cli({ LOCKS_QUORUM: [gone, gone.replace(':1', ':2'), third].join(',') }, ['doctor']),
    cli({ LOCKS_QUORUM: [gone, gone.replace(':1', ':2'), third].join(',') }, ['list']),
  ]);
  expect(minority).toMatchObject({ code: 0, err: '' });
  expect(minority.out).toMatch(/^warn {2}server 3 of 3: Redis did not answer/m);
  expect(majority).toMatchObject({ code: 1, err: '' });
  expect(minority.out).toMatch(/^warn {2}member 3 of 3: .* See why above, at "server 3 of 3"/m);
  expect(majority.out).toMatch(/^FAIL {2}store: /m);
  expect(listed).toMatchObject({ code: 3, out: '' });
  expect(minority.out + majority.out + listed.err).not.toContain('not-to-be-printed');
});
