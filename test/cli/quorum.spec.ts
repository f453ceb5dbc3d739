import type { QuorumLockStore } from '../../lib/stores/quorum/quorum-lock-store';
import { cli } from '../support/cli';
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
  expect(majority.out).toMatch(/^FAIL {2}store: /m);
  expect(listed).toMatchObject({ code: 3, out: '' });
  expect(minority.out + majority.out + listed.err).not.toContain('not-to-be-printed');
});
